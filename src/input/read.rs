//! A typed reader over the tree: it takes what is right and notes all that is not.

use std::cell::RefCell;
use std::fmt::Display;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use serde_json::{Map, Value};

use super::source;
use super::suggest;
use super::tree::{Entry, Kind, Mapping, Node, Span};
use crate::diag::{Note, Notes, Place};
use crate::model::Name;

/// The file that is being read, and the notes about it so far.
pub(super) struct Doc {
    pub file: PathBuf,
    notes: RefCell<Notes>,
}

/// A path of the document and where it stands; what later checks point at.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Spot {
    pub path: String,
    pub span: Span,
}

/// A value as written, with its spot.
#[derive(Debug, Clone)]
pub(super) struct Written<T> {
    pub value: T,
    pub spot: Spot,
}

/// A position in the tree.
#[derive(Clone)]
pub(super) struct At<'a> {
    doc: &'a Doc,
    node: &'a Node,
    key: Option<Span>,
    path: String,
}

/// A map whose keys have been checked.
pub(super) struct Fields<'a> {
    at: At<'a>,
    map: &'a Mapping,
    /// Whether a key was refused: then it may be the one that seems to be missing.
    refused: bool,
}

impl Doc {
    pub fn new(file: &Path) -> Self {
        Self {
            file: file.to_owned(),
            notes: RefCell::default(),
        }
    }

    /// Adds a note.
    pub fn push(&self, note: Note) {
        self.notes.borrow_mut().push(note);
    }

    /// An error at a spot, to be pushed.
    pub fn error(&self, spot: &Spot, message: impl Into<String>) -> Note {
        Note::error(&spot.path, message).at(self.place(spot))
    }

    /// The place of a spot.
    pub fn place(&self, spot: &Spot) -> Place {
        source::place(&self.file, spot.span)
    }

    /// Whether one of the notes so far is an error.
    pub fn has_errors(&self) -> bool {
        self.notes.borrow().has_errors()
    }

    /// All notes.
    pub fn into_notes(self) -> Notes {
        self.notes.into_inner()
    }
}

impl<'a> At<'a> {
    /// The top of the document.
    pub fn top(doc: &'a Doc, node: &'a Node) -> Self {
        Self {
            doc,
            node,
            key: None,
            path: String::new(),
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

    /// Whether nothing is written here.
    pub fn is_null(&self) -> bool {
        self.node.is_null()
    }

    fn wrong_kind(&self, wanted: &str, example: &str) {
        self.error(
            format!("{wanted} is wanted here, this is {}", self.kind()),
            format!("as in {example}"),
        );
    }

    /// What is written, in words.
    fn kind(&self) -> &'static str {
        match &self.node.kind {
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

    /// A map with these keys only.
    pub fn fields(&self, known: &[&str]) -> Option<Fields<'a>> {
        let map = self.mapping(&format!("{}: …", known.first().unwrap_or(&"key")))?;
        let mut refused = false;
        for entry in map.entries() {
            if !known.contains(&entry.key.as_str()) {
                refused = true;
                let child = self.child(entry);
                let spot = Spot {
                    path: child.path,
                    span: entry.key_span,
                };
                let hint = suggest::advice(&entry.key, "known keys here", known.iter().copied());
                self.doc.push(
                    self.doc
                        .error(&spot, format!("unknown key {:?}", entry.key))
                        .hint(hint),
                );
            }
        }
        Some(Fields {
            at: self.clone(),
            map,
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

    fn mapping(&self, example: &str) -> Option<&'a Mapping> {
        match &self.node.kind {
            Kind::Map(map) => Some(map),
            _ => {
                self.wrong_kind("a map", &format!("{{{example}}}"));
                None
            }
        }
    }

    fn child(&self, entry: &'a Entry) -> Self {
        let path = match self.path.is_empty() {
            true => entry.key.clone(),
            false => format!("{}.{}", self.path, entry.key),
        };
        Self {
            doc: self.doc,
            node: &entry.value,
            key: Some(entry.key_span),
            path,
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

    /// One of some words.
    pub fn choice<T: Copy>(&self, words: &[(&str, T)]) -> Option<T> {
        let text = self.text(words.first().map_or("", |(word, _)| word))?;
        let found = words.iter().find(|(word, _)| *word == text.value);
        if found.is_none() {
            let hint = suggest::advice(
                text.value,
                "known words",
                words.iter().map(|(word, _)| *word),
            );
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
        self.map.get(key).map(|entry| self.at.child(entry))
    }

    /// The value of a key that must be there; its absence is noted.
    pub fn need(&self, key: &str, example: &str) -> Option<At<'a>> {
        let found = self.get(key);
        if found.is_none() {
            self.at.error(
                format!("{key:?} is missing"),
                format!("add it, as in {key}: {example}"),
            );
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
            (Some(first), None) => Some((&first.key, self.at.child(first))),
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
                let first_place = source::place(&doc.file, first.key_span);
                let message = format!("{:?} and {:?} exclude each other", first.key, second.key);
                let note = doc.error(&spot, message).hint("keep one of them");
                doc.push(note.label(Some(first_place), "the other"));
                None
            }
        }
    }
}

/// What a plain scalar means: serde_yaml decides. A number that JSON cannot hold comes out as null.
fn meaning(text: &str) -> Value {
    // Most scalars are words; only these beginnings can be anything else.
    let other = |b: u8| b.is_ascii_digit() || matches!(b, b'+' | b'-' | b'.' | b'~');
    let word = matches!(text.len(), 4 | 5);
    match text.bytes().next() {
        None => Value::Null,
        Some(first) if other(first) || word => match serde_yaml::from_str(text) {
            Ok(value @ (Value::Null | Value::Bool(_) | Value::Number(_))) => value,
            _ => Value::String(text.to_owned()),
        },
        Some(_) => Value::String(text.to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plain_scalars_mean_what_yaml_1_2_says() {
        let cases = [
            ("1", Value::from(1)),
            ("-1.5", Value::from(-1.5)),
            ("1.0", Value::from(1.0)),
            ("0x1F", Value::from(31)),
            ("true", Value::Bool(true)),
            ("null", Value::Null),
            ("~", Value::Null),
            ("", Value::Null),
            ("yes", Value::from("yes")),
            ("off", Value::from("off")),
            ("0755", Value::from("0755")),
            ("12:34:56", Value::from("12:34:56")),
            ("10.10.0.1", Value::from("10.10.0.1")),
            ("2026-12-01", Value::from("2026-12-01")),
        ];
        for (text, value) in cases {
            assert_eq!(meaning(text), value, "{text}");
        }
    }
}
