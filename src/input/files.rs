//! Reads the files that make up an input, and keeps them as they were.

use std::io::{self, Read};
use std::path::{Component, Path, PathBuf};

use super::read::Doc;
use super::tree::{self, Node, Span};
use crate::diag::{Note, Place};

/// Largest file that is read whole.
const LIMIT: u64 = 8 << 20;

/// A file that was read, exactly as it was.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InputFile {
    /// Where it was, as the person or the file that names it said.
    pub path: PathBuf,
    /// Its content.
    pub content: Vec<u8>,
}

/// Reads a file, if it is a regular one of bearable size.
pub(super) fn read(path: &Path) -> io::Result<Vec<u8>> {
    let facts = std::fs::metadata(path)?;
    if facts.is_dir() {
        return Err(io::Error::other("it is a directory"));
    }
    if !facts.is_file() {
        return Err(io::Error::other("it is not a regular file"));
    }
    let mut content = Vec::new();
    std::fs::File::open(path)?
        .take(LIMIT + 1)
        .read_to_end(&mut content)?;
    if content.len() as u64 > LIMIT {
        return Err(io::Error::other("it is over 8 MiB"));
    }
    Ok(content)
}

/// Joins a relative path, and takes leading `..` steps out where they undo a plain step, so that
/// files are called as a person would call them.
pub(super) fn beside(home: &Path, relative: &Path) -> PathBuf {
    let (mut path, mut rest) = (home.to_owned(), relative);
    while let Ok(shorter) = rest.strip_prefix("..")
        && matches!(path.components().next_back(), Some(Component::Normal(_)))
    {
        path.pop();
        rest = shorter;
    }
    path.join(rest)
}

/// Reads a YAML file into a tree; `number` is what the document calls it. What is wrong is noted; the
/// tree is there when the file could be understood.
pub(super) fn read_tree(doc: &Doc, file: &Path, number: u16) -> Option<(InputFile, Node)> {
    let content = match read(file) {
        Ok(content) => content,
        Err(e) => {
            let message = format!("{} cannot be read: {e}", file.display());
            doc.push(Note::error("", message).hint("check the path"));
            return None;
        }
    };
    let text = match std::str::from_utf8(&content) {
        Ok(text) => text,
        Err(e) => {
            let place = place_of_byte(file, &content, e.valid_up_to());
            let note = Note::error("", "not UTF-8 text from here on").at(place);
            doc.push(note.hint("save the file as UTF-8"));
            return None;
        }
    };
    let (root, flaws) = tree::parse(text, number);
    let flawed = !flaws.is_empty();
    for flaw in flaws {
        let place = |span: Span| doc.place_of(span);
        let mut note = Note::error("", flaw.message).at(place(flaw.span));
        note.hint = flaw.hint;
        let other = flaw.other.map(|(span, text)| (place(span), text));
        doc.push(match other {
            Some((place, text)) => note.label(Some(place), text),
            None => note,
        });
    }
    match root {
        Some(root) if !root.is_null() => Some((
            InputFile {
                path: file.to_owned(),
                content,
            },
            root,
        )),
        Some(_) => {
            doc.push(empty(file));
            None
        }
        None => {
            if !flawed {
                doc.push(empty(file));
            }
            None
        }
    }
}

fn empty(file: &Path) -> Note {
    let place = Place {
        file: file.to_owned(),
        line: 1,
        column: 1,
        start: 0,
        end: 0,
    };
    Note::error("", "the file is empty")
        .at(place)
        .hint("README.md shows a first topology and playbook")
}

fn place_of_byte(file: &Path, content: &[u8], byte: usize) -> Place {
    let before = &content[..byte];
    let line_start = before
        .iter()
        .rposition(|&b| b == b'\n')
        .map_or(0, |at| at + 1);
    Place {
        file: file.to_owned(),
        line: before.iter().filter(|&&b| b == b'\n').count() + 1,
        column: String::from_utf8_lossy(&before[line_start..])
            .chars()
            .count()
            + 1,
        start: byte,
        end: byte + 1,
    }
}
