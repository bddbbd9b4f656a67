//! The topology's variables: values, what the command line makes of them, secrets of the environment.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use super::expressions::has_expression;
use super::read::{At, Doc, Written};
use super::shape::{Form, Key, Shape};
use super::suggest;
use crate::diag::Note;
use crate::model::Secrets;

/// A variable whose value the environment gives.
const SECRET: Shape = Shape::new(
    "A secret.",
    &[Key::required(
        "env",
        Form::Text,
        "DB_PASSWORD",
        "Environment variable that it comes from.",
    )],
);

/// The variables of a topology.
#[derive(Default)]
pub(super) struct Vars {
    /// Values that everything may show.
    pub values: Map<String, Value>,
    /// Environment variables that secrets come from, by the name of the topology's variable.
    pub sources: BTreeMap<String, String>,
    /// The secrets, which go into guests' files and nowhere else.
    pub secrets: Secrets,
}

impl Vars {
    /// Reads `vars`, with the values that were `set` on the command line.
    pub fn read(doc: &Doc, at: Option<&At<'_>>, set: &BTreeMap<String, Value>) -> Self {
        let mut vars = Self::default();
        for (name, at) in at.map(|at| at.entries("users: 100")).unwrap_or_default() {
            vars.read_one(doc, &name, &at);
        }
        for (name, given) in set {
            match vars.values.get_mut(name) {
                Some(value) => *value = given.clone(),
                None => doc.push(vars.unknown(name)),
            }
        }
        vars
    }

    fn read_one(&mut self, doc: &Doc, name: &Written<&str>, at: &At<'_>) {
        let is_word = |c: char| c.is_ascii_alphanumeric() || c == '_';
        if !name.value.starts_with(|c: char| c.is_ascii_alphabetic())
            || !name.value.chars().all(is_word)
        {
            let message = format!("{:?} is no name for a variable", name.value);
            let hint = "letters, digits and _ make a name, as in db_port";
            doc.push(doc.error(&name.spot, message).hint(hint));
            return;
        }
        if !(at.is_map() && at.section("env").is_some()) {
            self.read_value(name.value, at);
            return;
        }
        let source = at.fields(&SECRET).and_then(|fields| fields.get("env"));
        let Some((source, variable)) =
            source.and_then(|at| Some((at.clone(), at.text("DB_PASSWORD")?.value)))
        else {
            return;
        };
        match std::env::var(variable) {
            Ok(secret) if !secret.is_empty() => self.secrets.insert(name.value, secret),
            _ => source.error(
                format!("environment variable {variable} is not set"),
                format!("set it for labrig, as in {variable}=… labrig up …"),
            ),
        }
        self.sources
            .insert(name.value.to_owned(), variable.to_owned());
    }

    fn read_value(&mut self, name: &str, at: &At<'_>) {
        if has_expression(at.node(), &Form::Any) {
            at.error(
                "a variable is a value: it holds no expression",
                "write the value, or the expression where the variable is used",
            );
        } else if let Some(value) = at.value() {
            self.values.insert(name.to_owned(), value);
        }
    }

    fn unknown(&self, name: &str) -> Note {
        let message = format!("--set names a variable {name:?} that the topology does not have");
        let hint = match self.sources.get(name) {
            Some(variable) => format!("it is a secret: environment variable {variable} gives it"),
            None => suggest::advice(name, "variables", self.values.keys().map(String::as_str)),
        };
        Note::error("vars", message).hint(hint)
    }
}
