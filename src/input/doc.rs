//! What is being read: its files, the places in them, and the notes so far.

use std::cell::RefCell;
use std::collections::HashSet;
use std::path::{Path, PathBuf};

use super::files::beside;
use super::source;
use super::tree::Span;
use crate::diag::{Note, Notes, Place};

/// The file that is being read with those that it includes, and the notes about them so far.
pub(super) struct Doc {
    pub file: PathBuf,
    /// All files, in the order of [`Span::file`]; `file` is the first.
    files: RefCell<Vec<PathBuf>>,
    notes: RefCell<Notes>,
    /// What was noted where: a value that is read for many domains is wrong once.
    noted: RefCell<HashSet<(Place, String)>>,
}

/// A path of the document and where it stands; what later checks point at.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
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

impl Doc {
    pub fn new(file: &Path) -> Self {
        Self {
            file: file.to_owned(),
            files: RefCell::new(vec![file.to_owned()]),
            notes: RefCell::default(),
            noted: RefCell::default(),
        }
    }

    /// Takes up another file; gives what its spans call it.
    pub fn add_file(&self, file: &Path) -> u16 {
        let mut files = self.files.borrow_mut();
        files.push(file.to_owned());
        // There are never so many: an include is refused long before.
        u16::try_from(files.len() - 1).unwrap_or(u16::MAX)
    }

    /// All files so far.
    pub fn files(&self) -> Vec<PathBuf> {
        self.files.borrow().clone()
    }

    /// A path that is written relative to the file in which it is written.
    pub fn beside(&self, written: &Written<PathBuf>) -> PathBuf {
        let files = self.files.borrow();
        let home = files[usize::from(written.spot.span.file)].parent();
        beside(home.unwrap_or(Path::new("")), &written.value)
    }

    /// Adds a note.
    pub fn push(&self, note: Note) {
        let mut noted = self.noted.borrow_mut();
        let is_new = match &note.place {
            Some(place) => noted.insert((place.clone(), note.message.clone())),
            None => true,
        };
        if is_new {
            self.notes.borrow_mut().push(note);
        }
    }

    /// How many notes there are so far.
    pub fn count(&self) -> usize {
        self.notes.borrow().0.len()
    }

    /// An error at a spot, to be pushed.
    pub fn error(&self, spot: &Spot, message: impl Into<String>) -> Note {
        Note::error(&spot.path, message).at(self.place(spot))
    }

    /// The place of a spot.
    pub fn place(&self, spot: &Spot) -> Place {
        self.place_of(spot.span)
    }

    /// The place of a span.
    pub fn place_of(&self, span: Span) -> Place {
        source::place(&self.files.borrow(), span)
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
