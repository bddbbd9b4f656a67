//! One finding about an input, and the list of all of them.

use std::fmt;

use serde::Serialize;

use super::Place;

/// How much a note matters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// Nothing is created while there is one.
    Error,
    /// Should be looked at.
    Warning,
}

/// Another place that a note is about: the other side of a conflict, say.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Label {
    /// Where.
    pub place: Place,
    /// What is there, as a fragment: `first used here`.
    pub text: String,
}

/// One finding about an input.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Note {
    /// How much it matters.
    pub severity: Severity,
    /// Path in the document, as in `domains.db.vnets[0].ip`; empty for the document itself.
    pub path: String,
    /// Where; none when the input has no text (a value from the command line).
    pub place: Option<Place>,
    /// What is wrong, as a lowercase fragment.
    pub message: String,
    /// What to do about it.
    pub hint: Option<String>,
    /// Other places it is about.
    pub labels: Vec<Label>,
}

impl Note {
    /// An error at a path of the document.
    pub fn error(path: impl Into<String>, message: impl Into<String>) -> Self {
        Self {
            severity: Severity::Error,
            path: path.into(),
            place: None,
            message: message.into(),
            hint: None,
            labels: Vec::new(),
        }
    }

    /// A warning at a path of the document.
    pub fn warning(path: impl Into<String>, message: impl Into<String>) -> Self {
        Self {
            severity: Severity::Warning,
            ..Self::error(path, message)
        }
    }

    /// The same with a place.
    #[must_use]
    pub fn at(mut self, place: impl Into<Option<Place>>) -> Self {
        self.place = place.into();
        self
    }

    /// The same with advice.
    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    /// The same with another place.
    #[must_use]
    pub fn label(mut self, place: Option<Place>, text: impl Into<String>) -> Self {
        self.labels.extend(place.map(|place| Label {
            place,
            text: text.into(),
        }));
        self
    }
}

impl fmt::Display for Note {
    /// One line, for logs; people get the drawn form.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(place) = &self.place {
            write!(f, "{place}: ")?;
        }
        f.write_str(&self.message)
    }
}

/// All notes about an input; as an error it means that at least one of them is an error.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Notes(pub Vec<Note>);

impl Notes {
    /// Adds a note.
    pub fn push(&mut self, note: Note) {
        self.0.push(note);
    }

    /// Whether one of them is an error.
    pub fn has_errors(&self) -> bool {
        self.0.iter().any(|n| n.severity == Severity::Error)
    }

    /// In the order of the file, errors before warnings at one place; without repeats.
    #[must_use]
    pub fn sorted(mut self) -> Self {
        self.0.sort_by(|a, b| {
            (&a.place, a.severity, &a.path, &a.message)
                .cmp(&(&b.place, b.severity, &b.path, &b.message))
        });
        self.0.dedup();
        self
    }
}

impl fmt::Display for Notes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, note) in self.0.iter().enumerate() {
            if i > 0 {
                f.write_str("\n")?;
            }
            note.fmt(f)?;
        }
        Ok(())
    }
}

impl std::error::Error for Notes {}
