//! The JSON Schema (draft 2020-12) of the language, made of the tables that its readers use.

use serde_json::{Map, Value, json};

use super::Language;
use super::shape::{Form, NAME, Shape};

/// What a scalar looks like whose value an expression gives.
const EXPRESSION: &str = "\\{[{%]";

impl Language {
    /// The schema, for editors. What takes more than one place to judge is left to `check`.
    pub fn schema(self) -> Value {
        let mut schema = Maker(self).shape(self.shape());
        schema["$schema"] = "https://json-schema.org/draft/2020-12/schema".into();
        schema["title"] = format!("labrig {self}").into();
        schema
    }
}

struct Maker(Language);

impl Maker {
    fn shape(&self, shape: &Shape) -> Value {
        let properties: Map<String, Value> = shape
            .keys
            .iter()
            .map(|key| {
                let mut form = self.form(&key.form);
                form["description"] = key.about.into();
                (key.name.to_owned(), form)
            })
            .collect();
        let required = shape.keys.iter().filter(|key| key.is_required);
        // What may come from defaults, groups or an included file can be missing where it is read.
        let required: Vec<_> = match shape.is_merged {
            true => Vec::new(),
            false => required.map(|key| key.name).collect(),
        };
        json!({
            "type": "object",
            "description": shape.about,
            "properties": properties,
            "required": required,
            "additionalProperties": false,
        })
    }

    fn form(&self, form: &Form) -> Value {
        match form {
            Form::Text => self.or_nothing(json!({"type": "string", "minLength": 1})),
            Form::Syntax(pattern) => {
                self.or_expression(json!({"type": "string", "pattern": pattern}))
            }
            Form::Whole { least, most } => {
                let mut number = json!({"type": "integer", "minimum": least});
                if *most < u64::MAX {
                    number["maximum"] = (*most).into();
                }
                self.or_expression(number)
            }
            Form::Truth => self.or_expression(json!({"type": "boolean"})),
            Form::Words(words) => self.or_expression(json!({"enum": words()})),
            Form::Scalar => json!({"type": ["string", "number", "boolean"]}),
            Form::Any => json!({}),
            Form::Map(shape) => self.or_nothing(self.shape(shape)),
            Form::Named(form) => self.or_nothing(json!({
                "type": "object",
                "propertyNames": Self(Language::Playbook).form(&NAME),
                "additionalProperties": self.or_nothing(self.form(form)),
            })),
            Form::Keyed(form) => self.or_nothing(
                json!({"type": "object", "additionalProperties": self.or_nothing(self.form(form))}),
            ),
            Form::List(form) => self.or_nothing(json!({"type": "array", "items": self.form(form)})),
            Form::Either(forms) => {
                json!({"anyOf": forms.iter().map(|form| self.form(form)).collect::<Vec<_>>()})
            }
        }
    }

    /// Where expressions are filled in before a value is read, one may stand for it.
    fn or_expression(&self, form: Value) -> Value {
        match self.0 {
            Language::Topology => {
                json!({"anyOf": [form, {"type": "string", "pattern": EXPRESSION}, {"type": "null"}]})
            }
            Language::Playbook => form,
        }
    }

    /// Where files and maps are laid over others, null takes away what lies below.
    fn or_nothing(&self, mut form: Value) -> Value {
        if self.0 == Language::Topology && form["type"].is_string() {
            form["type"] = json!([form["type"], "null"]);
        }
        form
    }
}
