//! Notes for people, drawn as rustc draws them, and for programs.

use std::collections::BTreeMap;
use std::io::Read;
use std::ops::Range;
use std::path::{Path, PathBuf};

use annotate_snippets::renderer::DecorStyle;
use annotate_snippets::{AnnotationKind, Group, Level, Renderer, Snippet};

use crate::diag::{Label, Note, Notes, Place, Severity};

/// Notes that are drawn: nobody mends more mistakes than these before trying again.
const DRAWN: usize = 50;

/// Bytes of a source file that are read for drawing; inputs are at most this long.
const SOURCE_LIMIT: u64 = 8 << 20;

/// Draws notes with the lines of the files they are about, which are read again. Ends in a line
/// that counts them; empty when there are none.
pub fn draw(notes: &Notes, colour: bool) -> String {
    if notes.0.is_empty() {
        return String::new();
    }
    let renderer = if colour {
        Renderer::styled()
    } else {
        Renderer::plain()
    };
    let renderer = renderer.decor_style(DecorStyle::Ascii);
    let mut sources = Sources::default();
    for note in notes.0.iter().take(DRAWN) {
        sources.read(
            note.place
                .iter()
                .chain(note.labels.iter().map(|label| &label.place)),
        );
    }
    let mut drawn: Vec<String> = notes
        .0
        .iter()
        .take(DRAWN)
        .map(|note| renderer.render(&[group(note, &sources)]))
        .collect();
    if notes.0.len() > DRAWN {
        drawn.push(format!("… and {} more", notes.0.len() - DRAWN));
    }
    drawn.push(count(notes) + "\n");
    drawn.join("\n\n")
}

/// Notes as a JSON list, for programs.
///
/// # Errors
/// Never for notes made from valid paths; a path that is not UTF-8 cannot be written.
pub fn json(notes: &Notes) -> serde_json::Result<String> {
    serde_json::to_string_pretty(notes)
}

/// How many errors and warnings there are, in words: `2 errors, 1 warning`.
pub fn count(notes: &Notes) -> String {
    let errors = notes
        .0
        .iter()
        .filter(|note| note.severity == Severity::Error)
        .count();
    let counted = [(errors, "error"), (notes.0.len() - errors, "warning")];
    let words = counted
        .iter()
        .filter(|(n, _)| *n > 0)
        .map(|(n, what)| match n {
            1 => format!("1 {what}"),
            n => format!("{n} {what}s"),
        });
    words.collect::<Vec<_>>().join(", ")
}

fn group<'a>(note: &'a Note, sources: &'a Sources) -> Group<'a> {
    let level = match note.severity {
        Severity::Error => Level::ERROR,
        Severity::Warning => Level::WARNING,
    };
    let mut group = Group::with_title(level.primary_title(note.message.as_str()));
    if let Some(place) = &note.place {
        let same_file = |label: &&Label| label.place.file == place.file;
        let mut snippet = sources
            .snippet(place)
            .map(|snippet| snippet.annotation(AnnotationKind::Primary.span(sources.span(place))));
        for label in note.labels.iter().filter(same_file) {
            snippet = snippet.map(|snippet| snippet.annotation(context(label, sources)));
        }
        group = match snippet {
            Some(snippet) => group.element(snippet),
            // The file is gone by now: its place is still worth telling.
            None => group.element(Level::NOTE.message(place.to_string())),
        };
    }
    let elsewhere = note
        .labels
        .iter()
        .filter(|l| note.place.as_ref().is_none_or(|p| p.file != l.place.file));
    for label in elsewhere {
        group = match sources.snippet(&label.place) {
            Some(snippet) => group.element(snippet.annotation(context(label, sources))),
            None => group.element(Level::NOTE.message(format!("{}: {}", label.place, label.text))),
        };
    }
    if let Some(hint) = &note.hint {
        group = group.element(Level::HELP.message(hint.as_str()));
    }
    group
}

fn context<'a>(label: &'a Label, sources: &Sources) -> annotate_snippets::Annotation<'a> {
    AnnotationKind::Context
        .span(sources.span(&label.place))
        .label(label.text.as_str())
}

/// The files that notes are about.
#[derive(Default)]
struct Sources(BTreeMap<PathBuf, Option<String>>);

impl Sources {
    fn read<'a>(&mut self, places: impl Iterator<Item = &'a Place>) {
        for place in places {
            if !self.0.contains_key(&place.file) {
                self.0.insert(place.file.clone(), read_text(&place.file));
            }
        }
    }

    fn text(&self, place: &Place) -> Option<&str> {
        self.0.get(&place.file)?.as_deref()
    }

    fn snippet(&self, place: &Place) -> Option<Snippet<'_, annotate_snippets::Annotation<'_>>> {
        let text = self.text(place)?;
        Some(Snippet::source(text).path(place.file.display().to_string()))
    }

    /// The bytes that are meant, kept within one line and on character borders: the file may have
    /// changed since.
    fn span(&self, place: &Place) -> Range<usize> {
        let text = self.text(place).unwrap_or_default();
        let border = |at: usize| {
            (0..=at.min(text.len()))
                .rev()
                .find(|&at| text.is_char_boundary(at))
        };
        let start = border(place.start).unwrap_or(0);
        let line_end = text[start..].find('\n').map_or(text.len(), |at| start + at);
        let end = border(place.end).unwrap_or(0).clamp(start, line_end);
        start..end
    }
}

fn read_text(file: &Path) -> Option<String> {
    let mut bytes = Vec::new();
    std::fs::File::open(file)
        .ok()?
        .take(SOURCE_LIMIT)
        .read_to_end(&mut bytes)
        .ok()?;
    Some(String::from_utf8_lossy(&bytes).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place(file: &Path, line: usize, column: usize, start: usize, end: usize) -> Place {
        Place {
            file: file.to_owned(),
            line,
            column,
            start,
            end,
        }
    }

    #[test]
    fn draws_both_places_of_a_conflict() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("t.yaml");
        std::fs::write(&file, "a: 10.0.0.1\nb: ü\nc: 10.0.0.1\n").unwrap();
        let note = Note::error("c", "address 10.0.0.1 is given twice")
            .at(place(&file, 3, 4, 21, 29))
            .label(Some(place(&file, 1, 4, 3, 11)), "first given here")
            .hint("change one of them");
        let drawn = draw(&Notes(vec![note]), false)
            .replace(&format!("{}/", directory.path().display()), "");
        let expected = "\
error: address 10.0.0.1 is given twice
 --> t.yaml:3:4
  |
1 | a: 10.0.0.1
  |    -------- first given here
2 | b: ü
3 | c: 10.0.0.1
  |    ^^^^^^^^
  |
  = help: change one of them

1 error
";
        assert_eq!(drawn, expected);
    }

    #[test]
    fn survives_files_that_are_gone_or_changed() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("t.yaml");
        let note = |start, end| {
            Note::warning("", "odd")
                .at(place(&file, 9, 9, start, end))
                .label(Some(place(&file, 1, 1, end, start)), "x")
        };
        assert!(draw(&Notes(vec![note(0, 1)]), false).contains("t.yaml:9:9"));
        std::fs::write(&file, "ä\n€").unwrap();
        for (start, end) in [(0, 1), (1, 1), (2, 5), (4, 99), (99, 3)] {
            assert!(draw(&Notes(vec![note(start, end)]), true).contains("odd"));
        }
    }

    #[test]
    fn counts_in_words() {
        let notes = |errors: usize, warnings: usize| {
            let errors = (0..errors).map(|_| Note::error("", "e"));
            Notes(
                errors
                    .chain((0..warnings).map(|_| Note::warning("", "w")))
                    .collect(),
            )
        };
        assert_eq!(count(&notes(2, 1)), "2 errors, 1 warning");
        assert_eq!(count(&notes(0, 3)), "3 warnings");
        assert_eq!(draw(&notes(0, 0), false), "");
        assert!(draw(&notes(60, 0), false).ends_with("… and 10 more\n\n60 errors\n"));
    }
}
