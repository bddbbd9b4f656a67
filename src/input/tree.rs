//! YAML text as a tree whose every node knows its place.
//!
//! Only the part of YAML is taken that means the same to every reader: one document, plain keys,
//! no anchors, aliases, merge keys or tags. A file that uses more is refused, so it cannot grow
//! without bound either.

use std::collections::HashMap;

use saphyr_parser::{Event, Marker, Parser, ScalarStyle, ScanError, Span as RawSpan};

use super::scalar::is_null;

/// Entries from which on a map has an index: fewer are compared in less time than one is hashed.
const INDEXED: usize = 16;

/// How deep lists and maps may nest; what labrig reads needs fewer than ten levels.
const DEPTH: usize = 64;

/// A range of the text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub(super) struct Span {
    /// Which file it is of, as its reader counts them.
    pub file: u16,
    /// First byte.
    pub start: usize,
    /// First byte after it.
    pub end: usize,
    /// Line of the first byte, from 1.
    pub line: usize,
    /// Column of the first byte in characters, from 1.
    pub column: usize,
}

/// A value.
#[derive(Debug, Clone)]
pub(super) struct Node {
    /// Where a scalar stands, or where a list or map begins.
    pub span: Span,
    /// What it is.
    pub kind: Kind,
}

/// The kinds of values.
#[derive(Debug, Clone)]
pub(super) enum Kind {
    /// A text, number, truth value or nothing; `plain` when it stands without quotes.
    Scalar { text: String, plain: bool },
    /// A list.
    List(Vec<Node>),
    /// A map.
    Map(Mapping),
    /// What an expression would have given that is wrong, which was noted.
    Unknown,
}

/// A map in the file's order.
#[derive(Debug, Clone, Default)]
pub(super) struct Mapping {
    entries: Vec<Entry>,
    /// Where the keys of a large map are; empty while it is small, as nearly all are.
    index: HashMap<String, usize>,
}

/// A key with its value.
#[derive(Debug, Clone)]
pub(super) struct Entry {
    /// The key.
    pub key: String,
    /// Where the key stands.
    pub key_span: Span,
    /// Its value.
    pub value: Node,
}

/// Something that is wrong with the text as YAML.
#[derive(Debug)]
pub(super) struct Flaw {
    pub span: Span,
    pub message: String,
    pub hint: Option<String>,
    pub other: Option<(Span, &'static str)>,
}

impl Mapping {
    /// The entries in the file's order.
    pub fn entries(&self) -> &[Entry] {
        &self.entries
    }

    /// The entries, to change their values.
    pub fn entries_mut(&mut self) -> &mut [Entry] {
        &mut self.entries
    }

    /// The entries themselves.
    pub fn into_entries(self) -> Vec<Entry> {
        self.entries
    }

    /// The entry of a key.
    pub fn get(&self, key: &str) -> Option<&Entry> {
        self.position(key).map(|i| &self.entries[i])
    }

    /// The entry of a key, to be changed.
    pub fn get_mut(&mut self, key: &str) -> Option<&mut Entry> {
        self.position(key).map(|i| &mut self.entries[i])
    }

    /// Takes the entry of a key out.
    pub fn take(&mut self, key: &str) -> Option<Entry> {
        let taken = self.entries.remove(self.position(key)?);
        let rest = std::mem::take(self).entries;
        rest.into_iter().for_each(|entry| self.set(entry));
        Some(taken)
    }

    /// Adds an entry, in the place of one with the same key.
    pub fn set(&mut self, entry: Entry) {
        if let Some(i) = self.position(&entry.key) {
            self.entries[i] = entry;
            return;
        }
        self.entries.push(entry);
        let count = self.entries.len();
        // All that came before, when it has just become large.
        let new = if count == INDEXED { 0 } else { count - 1 };
        if count >= INDEXED {
            let new = (new..).zip(&self.entries[new..]);
            self.index
                .extend(new.map(|(i, entry)| (entry.key.clone(), i)));
        }
    }

    fn position(&self, key: &str) -> Option<usize> {
        if self.index.is_empty() {
            return self.entries.iter().position(|entry| entry.key == key);
        }
        self.index.get(key).copied()
    }
}

impl Node {
    /// Whether it is YAML's null, written or left out.
    pub fn is_null(&self) -> bool {
        matches!(&self.kind, Kind::Scalar { text, plain: true } if is_null(text))
    }
}

/// Reads the text of the `file`-th file. The tree is there only when the whole text was understood;
/// flaws may come with it all the same.
pub(super) fn parse(text: &str, file: u16) -> (Option<Node>, Vec<Flaw>) {
    let mut builder = Builder {
        lines: Lines::new(text, file),
        stack: Vec::new(),
        root: None,
        flaws: Vec::new(),
    };
    if let Some(flaw) = unprintable(text, file) {
        return (None, vec![flaw]);
    }
    let mut parser = Parser::new_from_str(text);
    let mut documents = 0;
    while let Some(next) = parser.next_event() {
        let (event, raw) = match next {
            Ok(pair) => pair,
            Err(error) => {
                let flaw = builder.syntax(text, &error);
                builder.flaws.push(flaw);
                return (None, builder.flaws);
            }
        };
        if let Event::DocumentStart(_) = event {
            documents += 1;
            if documents > 1 {
                let span = builder.lines.span(raw);
                builder.flaw(
                    span,
                    "a second document begins here",
                    "keep one document in a file",
                );
                return (None, builder.flaws);
            }
        }
        if !builder.take(event, raw) {
            return (None, builder.flaws);
        }
    }
    (builder.root, builder.flaws)
}

/// The first character that YAML does not allow (YAML 1.2.2, 5.1) and the parser lets through:
/// drawn on a terminal, it could do harm.
fn unprintable(text: &str, file: u16) -> Option<Flaw> {
    let wrong = |c: char| c.is_control() && !matches!(c, '\t' | '\n' | '\r' | '\u{85}');
    let (start, c) = text.char_indices().find(|(_, c)| wrong(*c))?;
    let line_start = text[..start].rfind('\n').map_or(0, |at| at + 1);
    let span = Span {
        file,
        start,
        end: start + c.len_utf8(),
        line: text[..start].matches('\n').count() + 1,
        column: text[line_start..start].chars().count() + 1,
    };
    let hint = Some("remove it, or write it as an escape between double quotes".to_owned());
    Some(Flaw {
        span,
        message: format!("not valid YAML: control character {c:?}"),
        hint,
        other: None,
    })
}

struct Builder<'t> {
    lines: Lines<'t>,
    stack: Vec<Open>,
    root: Option<Node>,
    flaws: Vec<Flaw>,
}

/// A list or map that has not ended yet.
enum Open {
    List(Span, Vec<Node>),
    Map {
        span: Span,
        map: Mapping,
        key: Option<(String, Span)>,
    },
}

impl Builder<'_> {
    /// Takes an event; false when it makes no sense to go on.
    fn take(&mut self, event: Event<'_>, raw: RawSpan) -> bool {
        let span = self.lines.span(raw);
        let (anchor, tagged) = match &event {
            Event::Scalar(_, _, anchor, tag) => (*anchor, tag.is_some()),
            Event::SequenceStart(anchor, tag) | Event::MappingStart(anchor, tag) => {
                (*anchor, tag.is_some())
            }
            _ => (0, false),
        };
        if anchor != 0 {
            self.flaw(
                span,
                "anchors (&name) are not read",
                "write the value out where it is needed",
            );
        }
        if tagged {
            self.flaw(
                span,
                "tags (!name) are not read",
                "leave the tag out; quotes make a text",
            );
        }
        if matches!(event, Event::SequenceStart(..) | Event::MappingStart(..))
            && self.stack.len() == DEPTH
        {
            self.flaw(
                span,
                "nested too deeply",
                &format!("{DEPTH} levels are read at most"),
            );
            return false;
        }
        match event {
            Event::Scalar(text, style, ..) => {
                let plain = style == ScalarStyle::Plain;
                self.add(Node {
                    span,
                    kind: Kind::Scalar {
                        text: text.into_owned(),
                        plain,
                    },
                });
            }
            Event::Alias(_) => {
                let hint = "write the value out where it is needed";
                self.flaw(span, "aliases (*name) are not read", hint);
                self.add(Node {
                    span,
                    kind: Kind::Scalar {
                        text: String::new(),
                        plain: true,
                    },
                });
            }
            Event::SequenceStart(..) => self.stack.push(Open::List(span, Vec::new())),
            Event::MappingStart(..) => {
                self.stack.push(Open::Map {
                    span,
                    map: Mapping::default(),
                    key: None,
                });
            }
            Event::SequenceEnd | Event::MappingEnd => match self.stack.pop() {
                Some(Open::List(span, items)) => self.add(Node {
                    span,
                    kind: Kind::List(items),
                }),
                Some(Open::Map { span, map, .. }) => self.add(Node {
                    span,
                    kind: Kind::Map(map),
                }),
                None => {}
            },
            _ => {}
        }
        true
    }

    fn add(&mut self, node: Node) {
        match self.stack.last_mut() {
            None => self.root = Some(node),
            Some(Open::List(_, items)) => items.push(node),
            Some(Open::Map { map, key, .. }) => match key.take() {
                None => {
                    let span = node.span;
                    let (text, wrong) = match node.kind {
                        Kind::Scalar { text, plain } => {
                            let merge = ("merge keys (<<) are not read", "write the keys out");
                            let wrong = (plain && text == "<<").then_some(merge);
                            (text, wrong)
                        }
                        Kind::List(_) | Kind::Map(_) => {
                            let hint = "put quotes around a text that holds {{ }}";
                            (String::new(), Some(("a key must be a plain text", hint)))
                        }
                        Kind::Unknown => (String::new(), None),
                    };
                    *key = Some((text, span));
                    if let Some((message, hint)) = wrong {
                        self.flaw(span, message, hint);
                    }
                }
                Some((key, key_span)) => {
                    if let Some(first) = map.get(&key) {
                        let other = Some((first.key_span, "first given here"));
                        let message = format!("key {key:?} is given twice");
                        let hint = Some("keep one of them".to_owned());
                        self.flaws.push(Flaw {
                            span: key_span,
                            message,
                            hint,
                            other,
                        });
                    } else {
                        map.set(Entry {
                            key,
                            key_span,
                            value: node,
                        });
                    }
                }
            },
        }
    }

    fn flaw(&mut self, span: Span, message: &str, hint: &str) {
        let (message, hint) = (message.to_owned(), Some(hint.to_owned()));
        self.flaws.push(Flaw {
            span,
            message,
            hint,
            other: None,
        });
    }

    fn syntax(&self, text: &str, error: &ScanError) -> Flaw {
        let mut span = self.lines.span(RawSpan::empty(*error.marker()));
        let line_start = text[..span.start].rfind('\n').map_or(0, |at| at + 1);
        let line = text[line_start..].lines().next().unwrap_or_default();
        let indent = line.len() - line.trim_start().len();
        let mut hint = None;
        if let Some(at) = line[..indent].find('\t') {
            hint = Some("indent with spaces: YAML takes no tabs".to_owned());
            span.start = line_start + at;
            span.column = at + 1;
        } else if line.contains("{{") || line.contains("{%") {
            hint = Some("put quotes around a text that holds braces".to_owned());
        }
        span.end = text[span.start..]
            .chars()
            .next()
            .map_or(span.start, |c| span.start + c.len_utf8());
        Flaw {
            span,
            message: format!("not valid YAML: {}", error.info()),
            hint,
            other: None,
        }
    }
}

/// Turns the parser's character positions into bytes.
struct Lines<'t> {
    text: &'t str,
    file: u16,
    /// Byte of every character; none when all characters are one byte.
    bytes: Option<Vec<u32>>,
}

impl<'t> Lines<'t> {
    fn new(text: &'t str, file: u16) -> Self {
        // Files are at most 8 MiB, so u32 holds every position.
        let bytes =
            (!text.is_ascii()).then(|| text.char_indices().map(|(at, _)| at as u32).collect());
        Self { text, file, bytes }
    }

    fn byte(&self, marker: Marker) -> usize {
        match &self.bytes {
            None => marker.index().min(self.text.len()),
            Some(bytes) => bytes
                .get(marker.index())
                .map_or(self.text.len(), |&at| at as usize),
        }
    }

    fn span(&self, raw: RawSpan) -> Span {
        let start = self.byte(raw.start);
        let end = self.byte(raw.end).max(start);
        Span {
            file: self.file,
            start,
            end,
            line: raw.start.line(),
            column: raw.start.col() + 1,
        }
    }
}

#[cfg(test)]
mod tests;
