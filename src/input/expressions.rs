//! Expressions in a topology: `{{ … }}` in its scalars, filled in before they are read.

use serde_json::json;
use tera::{Context, Value};

use super::read::{Doc, Spot};
use super::suggest;
use super::templates::split_fields;
use super::tree::{Kind, Node};
use super::vars::Vars;
use crate::model::Name;
use crate::render::context::RESERVED;
use crate::render::{TemplateError, Templates};

/// Keys whose values are filled in later, with all that template files see.
const LATER: [&str; 2] = ["vars", "settings"];

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
    vars: Value,
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
    pub fn new(doc: &'a Doc, vars: &Vars) -> Self {
        Self {
            doc,
            texts: Templates::at(None),
            vars: Value::from_serializable(&vars.values),
            secrets: vars.sources.keys().cloned().collect(),
            lab: None,
        }
    }

    /// Lets them see the lab's name.
    pub fn set_lab(&mut self, name: &Name) {
        self.lab = Some(name.clone());
    }

    /// Fills in all entries of the document but those that are filled in `later`.
    pub fn render_sections(&self, root: &mut Node, later: &[&str]) {
        let Kind::Map(map) = &mut root.kind else {
            return;
        };
        for entry in map.entries_mut() {
            if !later.contains(&entry.key.as_str()) && has_expression(&entry.value) {
                self.render(&mut entry.value, &entry.key, None);
            }
        }
    }

    /// Fills in all expressions of a tree, but those under keys that are filled in later. One that
    /// cannot be is noted, and its value unknown from then on.
    pub fn render(&self, node: &mut Node, path: &str, member: Option<&Member<'_>>) {
        if !has_expression(node) {
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
        self.walk(node, path, &context, member.is_some());
    }

    fn walk(&self, node: &mut Node, path: &str, context: &Context, in_domain: bool) {
        match &mut node.kind {
            Kind::Scalar { text, plain } => {
                if !is_expression(text) {
                    return;
                }
                match self.texts.render_text("expression", text, context) {
                    Ok(rendered) => {
                        // What is nothing but an expression is read as if its value stood there.
                        *plain = is_whole(text);
                        *text = rendered;
                    }
                    Err(error) => {
                        let spot = Spot {
                            path: path.to_owned(),
                            span: node.span,
                        };
                        self.note(&spot, &error, in_domain);
                        node.kind = Kind::Unknown;
                    }
                }
            }
            Kind::Unknown => {}
            Kind::List(items) => {
                for (i, item) in items.iter_mut().enumerate() {
                    self.walk(item, &format!("{path}[{i}]"), context, in_domain);
                }
            }
            Kind::Map(map) => {
                for entry in map.entries_mut() {
                    if !LATER.contains(&entry.key.as_str()) && has_expression(&entry.value) {
                        let path = format!("{path}.{}", entry.key);
                        self.walk(&mut entry.value, &path, context, in_domain);
                    }
                }
            }
        }
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

/// Whether a tree holds an expression that is filled in before it is read.
pub(super) fn has_expression(node: &Node) -> bool {
    match &node.kind {
        Kind::Scalar { text, .. } => is_expression(text),
        Kind::Unknown => false,
        Kind::List(items) => items.iter().any(has_expression),
        Kind::Map(map) => map
            .entries()
            .iter()
            .any(|e| !LATER.contains(&e.key.as_str()) && has_expression(&e.value)),
    }
}

fn is_expression(text: &str) -> bool {
    text.contains("{{") || text.contains("{%")
}

/// Whether a text is one expression and nothing else.
fn is_whole(text: &str) -> bool {
    let inner = text
        .trim()
        .strip_prefix("{{")
        .and_then(|t| t.strip_suffix("}}"));
    inner.is_some_and(|inner| !inner.contains("{{") && !inner.contains("}}"))
}
