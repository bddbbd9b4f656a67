//! The JSON Schema (draft 2020-12) of the language, made of the tables that its reader uses.

use serde_json::{Map, Value, json};

use super::shape::{Form, Shape};
use super::topology::TOPOLOGY;

/// What a scalar looks like whose value an expression gives.
const EXPRESSION: &str = "\\{[{%]";

/// The schema of topologies.
pub fn topology_schema() -> Value {
    let mut schema = of_shape(&TOPOLOGY);
    schema["$schema"] = "https://json-schema.org/draft/2020-12/schema".into();
    schema["title"] = "labrig topology".into();
    schema
}

fn of_shape(shape: &Shape) -> Value {
    let properties: Map<String, Value> = shape
        .keys
        .iter()
        .map(|key| {
            let mut form = of_form(&key.form);
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

fn of_form(form: &Form) -> Value {
    match form {
        Form::Text => json!({"type": "string", "minLength": 1}),
        Form::Syntax(pattern) => {
            json!({"type": "string", "pattern": format!("{pattern}|{EXPRESSION}")})
        }
        Form::Whole { least, most } => {
            let mut number = json!({"type": "integer", "minimum": least});
            if *most < u64::MAX {
                number["maximum"] = (*most).into();
            }
            or_expression(number)
        }
        Form::Truth => or_expression(json!({"type": "boolean"})),
        Form::Words(words) => or_expression(json!({"enum": words()})),
        Form::Scalar => json!({"type": ["string", "number", "boolean"]}),
        Form::Any => json!({}),
        Form::Map(shape) => of_shape(shape),
        Form::Named(form) => {
            json!({"type": "object", "propertyNames": of_form(&super::shape::NAME), "additionalProperties": of_form(form)})
        }
        Form::Keyed(form) => json!({"type": "object", "additionalProperties": of_form(form)}),
        Form::List(form) => json!({"type": "array", "items": of_form(form)}),
        Form::Either(forms) => json!({"anyOf": forms.iter().map(of_form).collect::<Vec<_>>()}),
    }
}

fn or_expression(form: Value) -> Value {
    json!({"anyOf": [form, {"type": "string", "pattern": EXPRESSION}]})
}
