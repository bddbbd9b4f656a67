//! Expressions in a topology: `{{ … }}` in its scalars, filled in before they are read.

use serde_json::{Map, Value, json};
use tera::Context;

use super::read::{Doc, Spot};
use super::shape::{Form, Shape};
use super::suggest;
use super::templates::split_fields;
use super::tree::{Kind, Node};
use super::vars::Vars;
use crate::model::Name;
use crate::render::context::RESERVED;
use crate::render::{TemplateError, Templates};

/// Keys of the language whose values are filled in later, with all that template files see.
const LATER: [&str; 2] = ["vars", "settings"];

/// The longest value that an expression may give; notes show values.
const VALUE_MAX: usize = 64 << 10;

/// A domain that expressions are filled in for.
pub(super) struct Member<'a> {
    pub group: &'a Name,
    /// Position in its group, from 1.
    pub index: u32,
    pub count: u32,
}

/// Fills in expressions.
pub(super) struct Expressions<'a> {
    doc: &'a Doc,
    texts: Templates,
    values: &'a Map<String, Value>,
    /// The same, as contexts share it.
    vars: tera::Value,
    secrets: Vec<String>,
    lab: Option<Name>,
}

impl Member<'_> {
    /// Its name, as resolving makes it.
    pub fn name(&self) -> String {
        match self.count {
            1 => self.group.to_string(),
            _ => format!("{}{}", self.group, self.index),
        }
    }
}

impl<'a> Expressions<'a> {
    /// Expressions that see `vars`, but no secrets.
    pub fn new(doc: &'a Doc, vars: &'a Vars) -> Self {
        Self {
            doc,
            texts: Templates::at(None),
            values: &vars.values,
            vars: tera::Value::from_serializable(&vars.values),
            secrets: vars.sources.keys().cloned().collect(),
            lab: None,
        }
    }

    /// Lets them see the lab's name.
    pub fn set_lab(&mut self, name: &Name) {
        self.lab = Some(name.clone());
    }

    /// Fills in all entries of the document, whose keys a table gives, but those that are filled in
    /// `later`.
    pub fn render_sections(&self, root: &mut Node, shape: &'static Shape, later: &[&str]) {
        let Kind::Map(map) = &mut root.kind else {
            return;
        };
        for entry in map.entries_mut() {
            if let Some(key) = shape.key(&entry.key)
                && !later.contains(&key.name)
            {
                self.render(&mut entry.value, &key.form, key.name, None);
            }
        }
    }

    /// Fills in all expressions of a tree, but those under keys that are filled in later. One that
    /// cannot be is noted, and its value unknown from then on. `form` is what may stand there.
    pub fn render(
        &self,
        node: &mut Node,
        form: &'static Form,
        path: &str,
        member: Option<&Member<'_>>,
    ) {
        if !has_expression(node, form) {
            return;
        }
        let mut context = Context::new();
        context.insert_value("vars", self.vars.clone());
        if let Some(lab) = &self.lab {
            context.insert("lab", &json!({ "name": lab }));
        }
        if let Some(member) = member {
            context.insert("name", &member.name());
            context.insert("index", &member.index);
            context.insert("count", &member.count);
        }
        self.walk(node, form, path, &context);
    }

    fn walk(&self, node: &mut Node, form: &'static Form, path: &str, context: &Context) {
        match &mut node.kind {
            Kind::Scalar { text, plain } => {
                if !is_expression(text) {
                    return;
                }
                match self.texts.render_text("expression", text, context) {
                    Ok(rendered) if rendered.len() > VALUE_MAX => {
                        let spot = Spot {
                            path: path.to_owned(),
                            span: node.span,
                        };
                        let note = self.doc.error(&spot, "this becomes longer than 64 KiB");
                        self.doc.push(note.hint("let its loops end sooner"));
                        node.kind = Kind::Unknown;
                    }
                    Ok(rendered) => {
                        // What is nothing but an expression is read as if its value stood there.
                        *plain = whole(text).is_some_and(|inner| !self.is_text(inner));
                        *text = rendered;
                    }
                    Err(error) => {
                        let spot = Spot {
                            path: path.to_owned(),
                            span: node.span,
                        };
                        self.note(&spot, &error, context.contains_key("name"));
                        node.kind = Kind::Unknown;
                    }
                }
            }
            Kind::Unknown => {}
            Kind::List(items) => {
                for (i, item) in items.iter_mut().enumerate() {
                    self.walk(item, form.item(), &format!("{path}[{i}]"), context);
                }
            }
            Kind::Map(map) => {
                for entry in map.entries_mut() {
                    let Some(form) = filled_in_now(form, &entry.key) else {
                        continue;
                    };
                    if has_expression(&entry.value, form) {
                        let path = format!("{path}.{}", entry.key);
                        self.walk(&mut entry.value, form, &path, context);
                    }
                }
            }
        }
    }

    /// Whether an expression is nothing but the name of a text: it stays one, whatever it looks like.
    fn is_text(&self, inner: &str) -> bool {
        let inner = inner.trim();
        if matches!(inner, "name" | "lab.name") {
            return true;
        }
        let mut parts = inner.split('.');
        let (root, first) = (parts.next(), parts.next().and_then(|n| self.values.get(n)));
        let value = parts.try_fold(first, |value, part| Some(value?.get(part)));
        root == Some("vars") && matches!(value, Some(Some(Value::String(_))))
    }

    fn note(&self, spot: &Spot, error: &TemplateError, in_domain: bool) {
        let (message, hint) = match error {
            TemplateError::Undefined { names, .. } => {
                let first = names.first().map_or("", String::as_str);
                let known: &[&str] = match in_domain {
                    true => &["vars", "lab", "name", "index", "count"],
                    false => &["vars", "lab"],
                };
                let hint = match RESERVED.contains(&first) {
                    true => format!("{first:?} is known in template files only"),
                    false => suggest::advice(first, "known here", known.iter().copied()),
                };
                (format!("undefined variable {}", names.join(", ")), hint)
            }
            TemplateError::Tera { message, .. } => {
                let (message, hint) = split_fields(message);
                let secret = self
                    .secrets
                    .iter()
                    .find(|s| message.contains(&format!("`{s}`")));
                let hint = match secret {
                    Some(_) => {
                        "it is a secret: template files see it, the topology does not".to_owned()
                    }
                    None => hint.unwrap_or_else(|| "as in {{ vars.users }}".to_owned()),
                };
                (message.to_owned(), hint)
            }
            other => (other.to_string(), "as in {{ vars.users }}".to_owned()),
        };
        self.doc.push(self.doc.error(spot, message).hint(hint));
    }
}

/// Whether a tree holds an expression that is filled in before it is read. `form` is what may stand
/// there.
pub(super) fn has_expression(node: &Node, form: &'static Form) -> bool {
    match &node.kind {
        Kind::Scalar { text, .. } => is_expression(text),
        Kind::Unknown => false,
        Kind::List(items) => items.iter().any(|item| has_expression(item, form.item())),
        Kind::Map(map) => map.entries().iter().any(|entry| {
            filled_in_now(form, &entry.key).is_some_and(|form| has_expression(&entry.value, form))
        }),
    }
}

/// What may stand under a key; none when it is filled in later. Names of a person's own choice are
/// not keys of the language, whatever they are.
fn filled_in_now(form: &'static Form, key: &str) -> Option<&'static Form> {
    if form.is_map() && LATER.contains(&key) {
        return None;
    }
    Some(form.under(key))
}

/// Whether a text holds an expression.
pub(super) fn is_expression(text: &str) -> bool {
    text.contains("{{") || text.contains("{%")
}

/// The inner part of a text that is one expression and nothing else.
fn whole(text: &str) -> Option<&str> {
    let inner = text.trim().strip_prefix("{{")?.strip_suffix("}}")?;
    (!inner.contains("{{") && !inner.contains("}}")).then_some(inner)
}
