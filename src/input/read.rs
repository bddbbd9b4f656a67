//! A typed reader over the tree: it takes what is right and notes all that is not.

use std::fmt::Display;
use std::str::FromStr;

use serde_json::{Map, Value};

pub(super) use super::doc::{Doc, Spot, Written};
use super::scalar::meaning;
use super::shape::{Form, Shape, Word};
use super::suggest;
use super::tree::{Entry, Kind, Mapping, Node, Span};
use crate::model::Name;

/// A position in the tree.
#[derive(Clone)]
pub(super) struct At<'a> {
    doc: &'a Doc,
    node: &'a Node,
    key: Option<Span>,
    path: String,
    /// What may stand here, where a table says so.
    form: Option<&'static Form>,
}

/// A map whose keys have been checked.
pub(super) struct Fields<'a> {
    at: At<'a>,
    map: &'a Mapping,
    shape: &'static Shape,
    /// Whether a key was refused: then it may be the one that seems to be missing.
    refused: bool,
}

impl<'a> At<'a> {
    /// The top of the document.
    pub fn top(doc: &'a Doc, node: &'a Node) -> Self {
        Self {
            doc,
            node,
            key: None,
            path: String::new(),
            form: None,
        }
    }

    /// The same with what may stand here.
    fn formed(self, form: &'static Form) -> Self {
        Self {
            form: Some(form),
            ..self
        }
    }

    /// The same place with another value there, made of the one that was written.
    pub fn of<'b>(&'b self, node: &'b Node) -> At<'b> {
        At {
            node,
            path: self.path.clone(),
            ..*self
        }
    }

    /// What stands here.
    pub fn node(&self) -> &'a Node {
        self.node
    }

    /// Its path in the document.
    pub fn path(&self) -> &str {
        &self.path
    }

    /// What stands under a key, if this is a map and has it.
    pub fn section(&self, key: &str) -> Option<Self> {
        match &self.node.kind {
            Kind::Map(map) => map.get(key).map(|entry| self.child(entry)),
            _ => None,
        }
    }

    /// Where it is.
    pub fn spot(&self) -> Spot {
        let span = match (&self.node.kind, self.key) {
            // Nothing is written: the key is what can be seen.
            (Kind::Scalar { text, .. }, Some(key)) if text.is_empty() => key,
            (Kind::Scalar { .. }, _) => self.node.span,
            (_, Some(key)) => key,
            (_, None) => Span {
                end: self.node.span.start + 1,
                ..self.node.span
            },
        };
        Spot {
            path: self.path.clone(),
            span,
        }
    }

    /// Notes an error here.
    pub fn error(&self, message: impl Into<String>, hint: impl Into<String>) {
        self.doc
            .push(self.doc.error(&self.spot(), message).hint(hint));
    }

    /// Notes an error here that another place is about as well.
    pub fn error_beside(
        &self,
        message: impl Into<String>,
        hint: impl Into<String>,
        other: &Self,
        text: &str,
    ) {
        let note = self.doc.error(&self.spot(), message).hint(hint);
        self.doc
            .push(note.label(Some(self.doc.place(&other.spot())), text));
    }

    /// Notes an error here that has another side.
    pub fn conflict(&self, message: impl Into<String>, hint: impl Into<String>, other: &Spot) {
        let note = self.doc.error(&self.spot(), message).hint(hint);
        let other = self.doc.place(other);
        self.doc.push(note.label(Some(other), "the other one"));
    }

    /// Notes an error at the key of what is here.
    pub fn key_error(&self, message: impl Into<String>, hint: impl Into<String>) {
        let spot = Spot {
            path: self.path.clone(),
            span: self.key.unwrap_or(self.node.span),
        };
        self.doc.push(self.doc.error(&spot, message).hint(hint));
    }

    /// Whether nothing is written here.
    pub fn is_null(&self) -> bool {
        self.node.is_null()
    }

    fn wrong_kind(&self, wanted: &str, example: &str) {
        if matches!(self.node.kind, Kind::Unknown) {
            return;
        }
        self.error(
            format!("{wanted} is wanted here, this is {}", self.kind()),
            format!("as in {example}"),
        );
    }

    /// What is written, in words.
    fn kind(&self) -> &'static str {
        match &self.node.kind {
            Kind::Unknown => "unknown",
            Kind::List(_) => "a list",
            Kind::Map(_) => "a map",
            Kind::Scalar { .. } if self.is_null() => "nothing",
            Kind::Scalar { plain: false, .. } => "a text",
            Kind::Scalar { text, plain: true } => match meaning(text) {
                Value::Bool(_) => "a truth value",
                Value::Number(_) => "a number",
                _ => "a text",
            },
        }
    }

    /// A map with the keys of a table. Keys that it does not know, and those that must be there and
    /// are not, are noted.
    pub fn fields(&self, shape: &'static Shape) -> Option<Fields<'a>> {
        let fields = self.part(shape)?;
        for key in shape.keys.iter().filter(|key| key.is_required) {
            if fields.map.get(key.name).is_none() {
                fields.is_missing(key.name, key.example);
            }
        }
        Some(fields)
    }

    /// A map with keys of a table, of which any may be missing.
    pub fn part(&self, shape: &'static Shape) -> Option<Fields<'a>> {
        let known = || shape.keys.iter().map(|key| key.name);
        let map = self.mapping(&format!("{}: …", known().next().unwrap_or("key")))?;
        let mut refused = false;
        for entry in map.entries() {
            if shape.key(&entry.key).is_none() {
                refused = true;
                let spot = Spot {
                    path: self.path_of(entry),
                    span: entry.key_span,
                };
                let message = format!("unknown key {:?}", entry.key);
                let hint = suggest::advice(&entry.key, "known keys here", known());
                self.doc.push(self.doc.error(&spot, message).hint(hint));
            }
        }
        Some(Fields {
            at: self.clone(),
            map,
            shape,
            refused,
        })
    }

    /// A map with keys of the person's own choice: each key's spot with its value.
    pub fn entries(&self, example: &str) -> Vec<(Written<&'a str>, At<'a>)> {
        let Some(map) = self.mapping(example) else {
            return Vec::new();
        };
        map.entries()
            .iter()
            .map(|entry| {
                let child = self.child(entry);
                let spot = Spot {
                    path: child.path.clone(),
                    span: entry.key_span,
                };
                (
                    Written {
                        value: entry.key.as_str(),
                        spot,
                    },
                    child,
                )
            })
            .collect()
    }

    /// The same, with keys that must be names. A wrong one is noted, and its value left out.
    pub fn named(&self, example: &str) -> Vec<(Written<Name>, At<'a>)> {
        let mut named = Vec::new();
        for (key, child) in self.entries(example) {
            match key.value.parse() {
                Ok(value) => named.push((
                    Written {
                        value,
                        spot: key.spot,
                    },
                    child,
                )),
                Err(e) => {
                    let e: crate::model::ParseNameError = e;
                    self.doc.push(
                        self.doc
                            .error(&key.spot, e.to_string())
                            .hint("choose another name"),
                    );
                }
            }
        }
        named
    }

    /// The map that stands here; that it is none is noted.
    pub fn mapping(&self, example: &str) -> Option<&'a Mapping> {
        match &self.node.kind {
            Kind::Map(map) => Some(map),
            _ => {
                self.wrong_kind("a map", &format!("{{{example}}}"));
                None
            }
        }
    }

    fn path_of(&self, entry: &Entry) -> String {
        match self.path.is_empty() {
            true => entry.key.clone(),
            false => format!("{}.{}", self.path, entry.key),
        }
    }

    fn child(&self, entry: &'a Entry) -> Self {
        Self {
            doc: self.doc,
            node: &entry.value,
            key: Some(entry.key_span),
            path: self.path_of(entry),
            form: None,
        }
    }

    /// Whether this is a list.
    pub fn is_list(&self) -> bool {
        matches!(self.node.kind, Kind::List(_))
    }

    /// A list's items.
    pub fn items(&self, example: &str) -> Vec<Self> {
        let Kind::List(items) = &self.node.kind else {
            self.wrong_kind("a list", &format!("[{example}]"));
            return Vec::new();
        };
        items
            .iter()
            .enumerate()
            .map(|(i, node)| Self {
                node,
                key: None,
                path: format!("{}[{i}]", self.path),
                form: None,
                ..self.clone()
            })
            .collect()
    }

    /// A text that is not empty. What YAML reads as a number or a truth value is none.
    pub fn text(&self, example: &str) -> Option<Written<&'a str>> {
        let Kind::Scalar { text, plain } = &self.node.kind else {
            self.wrong_kind("a text", example);
            return None;
        };
        if *plain && !meaning(text).is_string() {
            if self.is_null() {
                self.wrong_kind("a text", example);
            } else {
                let message = format!("a text is wanted here, {text} is {}", self.kind());
                self.error(
                    message,
                    format!("as in {example}; quotes make it a text: {text:?}"),
                );
            }
            return None;
        }
        if text.trim().is_empty() {
            self.error("this text is empty", format!("as in {example}"));
            return None;
        }
        Some(Written {
            value: text,
            spot: self.spot(),
        })
    }

    /// A text that is read as a `T`.
    pub fn parse<T: FromStr<Err: Display>>(&self, example: &str) -> Option<Written<T>> {
        let text = match &self.node.kind {
            // A bare number may be just a quantity without its unit: `T` knows better what to say.
            Kind::Scalar { text, plain: true } if meaning(text).is_number() => text,
            _ => self.text(example)?.value,
        };
        match text.parse() {
            Ok(value) => Some(Written {
                value,
                spot: self.spot(),
            }),
            Err(e) => {
                self.error(e.to_string(), format!("as in {example}"));
                None
            }
        }
    }

    /// A whole number in a range.
    pub fn integer(&self, least: u64, most: u64) -> Option<u64> {
        let range = format!("a whole number from {least} to {most}");
        let number = match &self.node.kind {
            Kind::Scalar { text, plain: true } => meaning(text),
            _ => Value::Null,
        };
        match number {
            Value::Number(n) => match n.as_u64().filter(|n| (least..=most).contains(n)) {
                Some(n) => return Some(n),
                None => self.error(format!("{n} is not {range}"), format!("write {range}")),
            },
            _ => self.wrong_kind(&range, &least.to_string()),
        }
        None
    }

    /// A whole number in the range that the table of keys gives.
    pub fn whole(&self) -> Option<u64> {
        let (least, most) = self.form.and_then(Form::range).unwrap_or((0, u64::MAX));
        self.integer(least, most)
    }

    /// Whether a map stands here.
    pub fn is_map(&self) -> bool {
        matches!(self.node.kind, Kind::Map(_))
    }

    /// Whether this very text stands here.
    pub fn is_text(&self, wanted: &str) -> bool {
        matches!(&self.node.kind, Kind::Scalar { text, .. } if text == wanted)
    }

    /// Whether a text stands here, rather than a number or a truth value.
    pub fn is_textual(&self) -> bool {
        match &self.node.kind {
            Kind::Scalar { text, plain } => !*plain || meaning(text).is_string(),
            _ => false,
        }
    }

    /// `true` or `false`.
    pub fn boolean(&self) -> Option<bool> {
        if let Kind::Scalar { text, plain: true } = &self.node.kind
            && let Value::Bool(value) = meaning(text)
        {
            return Some(value);
        }
        self.wrong_kind("true or false", "true");
        None
    }

    /// One of the words of `T`.
    pub fn word<T: Word>(&self) -> Option<T> {
        let words = || T::WORDS.iter().map(|(word, _)| *word);
        let text = self.text(words().next().unwrap_or_default())?;
        let found = T::WORDS.iter().find(|(word, _)| *word == text.value);
        if found.is_none() {
            let hint = suggest::advice(text.value, "known words", words());
            self.error(format!("{:?} is not known here", text.value), hint);
        }
        found.map(|(_, value)| *value)
    }

    /// Any scalar that is not null.
    pub fn scalar(&self, example: &str) -> Option<Value> {
        match &self.node.kind {
            Kind::Scalar { .. } if !self.is_null() => self.value(),
            _ => {
                self.wrong_kind("a single value", example);
                None
            }
        }
    }

    /// Any value at all.
    pub fn value(&self) -> Option<Value> {
        Some(match &self.node.kind {
            Kind::Scalar { text, plain: false } => Value::String(text.clone()),
            Kind::Scalar { text, plain: true } => match meaning(text) {
                Value::Null if !self.is_null() => {
                    self.error(
                        format!("{text} is not a number that can be kept"),
                        "write a finite number",
                    );
                    return None;
                }
                value => value,
            },
            Kind::Unknown => return None,
            Kind::List(_) => Value::Array(
                self.items("")
                    .iter()
                    .map(Self::value)
                    .collect::<Option<_>>()?,
            ),
            Kind::Map(_) => Value::Object(self.object()?),
        })
    }

    /// A map of any values.
    pub fn object(&self) -> Option<Map<String, Value>> {
        self.mapping("name: value")?;
        self.entries("")
            .iter()
            .map(|(key, at)| Some((key.value.to_owned(), at.value()?)))
            .collect()
    }
}

impl<'a> Fields<'a> {
    /// The value of a key, when it is written.
    pub fn get(&self, key: &str) -> Option<At<'a>> {
        let at = self.map.get(key).map(|entry| self.at.child(entry))?;
        Some(match self.shape.key(key) {
            Some(key) => at.formed(&key.form),
            None => at,
        })
    }

    fn is_missing(&self, key: &str, example: &str) {
        self.at.error(
            format!("{key:?} is missing"),
            format!("add it, as in {key}: {example}"),
        );
    }

    /// The value of a key that must be there; its absence is noted.
    pub fn need(&self, key: &str, example: &str) -> Option<At<'a>> {
        let found = self.get(key);
        if found.is_none() {
            self.is_missing(key, example);
        }
        found
    }

    /// The one key of `keys` that is there; that none or several are is noted.
    pub fn one_of(&self, keys: &[&str]) -> Option<(&'a str, At<'a>)> {
        let mut found = self
            .map
            .entries()
            .iter()
            .filter(|e| keys.contains(&e.key.as_str()));
        match (found.next(), found.next()) {
            (Some(first), None) => Some((&first.key, self.get(&first.key)?)),
            (None, _) if self.refused => None,
            (None, _) => {
                self.at.error(
                    "what to do is missing",
                    format!("add one of: {}", keys.join(", ")),
                );
                None
            }
            (Some(first), Some(second)) => {
                let doc = self.at.doc;
                let child = self.at.child(second);
                let spot = Spot {
                    path: child.path,
                    span: second.key_span,
                };
                let first_place = doc.place_of(first.key_span);
                let message = format!("{:?} and {:?} exclude each other", first.key, second.key);
                let note = doc.error(&spot, message).hint("keep one of them");
                doc.push(note.label(Some(first_place), "the other"));
                None
            }
        }
    }
}
