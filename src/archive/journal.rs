//! `journal/NAME.ndjson`: what happened, one JSON object a line, one file per writer.
//!
//! A line is `{"at":…,"seq":…,"event":{…},"sum":"…"}`; `sum` is the first 16 digits of the SHA-256
//! of the line's bytes before `,"sum":`. `seq` counts from 1 without gaps. A writer that dies can
//! leave a last line without its end; everything else that does not check is damage.

use std::io::{self, Write};
use std::path::{Path, PathBuf};

use fs_err as fs;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::ArchiveError;
use crate::model::{Digest, Event};

/// One line of a journal.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Entry {
    /// When it was written, UTC.
    pub at: Timestamp,
    /// Its line in this journal, from 1.
    pub seq: u64,
    /// What happened.
    pub event: Event,
}

/// A journal as it was read.
#[derive(Debug, Clone, PartialEq)]
pub struct Journal {
    /// Its whole lines.
    pub entries: Vec<Entry>,
    /// Bytes after the last whole line: what a writer left that died while it wrote.
    pub torn: usize,
}

/// Digits of a line's checksum.
const SUM_DIGITS: usize = 16;
/// What stands between the summed part of a line and the checksum.
const SUM_KEY: &str = r#","sum":""#;
/// What stands after the checksum.
const SUM_END: &str = r#""}"#;

impl Journal {
    /// Reads a journal.
    ///
    /// # Errors
    /// [`ArchiveError::Journal`] with the line for any damage but a torn last line.
    pub fn read(file: &Path) -> Result<Self, ArchiveError> {
        let bytes = fs::read(file).map_err(ArchiveError::io("read a journal"))?;
        let whole = bytes
            .iter()
            .rposition(|b| *b == b'\n')
            .map_or(0, |end| end + 1);
        let mut entries: Vec<Entry> = Vec::new();
        for (index, line) in bytes[..whole].split_inclusive(|b| *b == b'\n').enumerate() {
            let expected = index as u64 + 1;
            let entry = parse_line(&line[..line.len() - 1])
                .and_then(|entry| match entry.seq {
                    seq if seq == expected => Ok(entry),
                    seq => Err(format!(
                        "it is entry {seq} where entry {expected} should be"
                    )),
                })
                .map_err(|why| ArchiveError::Journal {
                    file: file.to_owned(),
                    line: index + 1,
                    why,
                })?;
            entries.push(entry);
        }
        Ok(Self {
            entries,
            torn: bytes.len() - whole,
        })
    }
}

/// Checks and reads a line without its end.
fn parse_line(line: &[u8]) -> Result<Entry, String> {
    let text = std::str::from_utf8(line).map_err(|_| "it is not text".to_owned())?;
    let tail = SUM_KEY.len() + SUM_DIGITS + SUM_END.len();
    let (body, sum) = text
        .len()
        .checked_sub(tail)
        .and_then(|at| text.split_at_checked(at))
        .and_then(|(body, tail)| Some((body, tail.strip_prefix(SUM_KEY)?.strip_suffix(SUM_END)?)))
        .ok_or("it has no checksum")?;
    if Digest::of(body).short(SUM_DIGITS) != sum {
        return Err("its checksum does not match".to_owned());
    }
    serde_json::from_str(text).map_err(|error| error.to_string())
}

/// Writes a line with its end.
fn format_line(entry: &Entry) -> Result<String, serde_json::Error> {
    let mut line = serde_json::to_string(entry)?;
    line.truncate(line.len() - 1); // the closing brace comes after the checksum
    let sum = Digest::of(&line).short(SUM_DIGITS);
    Ok(format!("{line}{SUM_KEY}{sum}{SUM_END}\n"))
}

/// A journal that is being written.
#[derive(Debug)]
pub(super) struct JournalWriter {
    file: fs::File,
    path: PathBuf,
    /// Bytes of whole lines.
    length: u64,
    /// Number of the next line.
    next: u64,
}

impl JournalWriter {
    /// Opens a journal at its end, or creates it. A torn last line is cut off; how many bytes that
    /// were is returned.
    pub fn open(path: PathBuf) -> Result<(Self, usize), ArchiveError> {
        let failed = || ArchiveError::io("open the journal");
        let file = fs::OpenOptions::new()
            .create(true)
            .append(true)
            .open(&path)
            .map_err(failed())?;
        let journal = Journal::read(&path)?;
        let length = file.metadata().map_err(failed())?.len() - journal.torn as u64;
        if journal.torn > 0 {
            file.set_len(length).map_err(failed())?;
        }
        file.sync_all().map_err(failed())?;
        let next = journal.entries.len() as u64 + 1;
        Ok((
            Self {
                file,
                path,
                length,
                next,
            },
            journal.torn,
        ))
    }

    /// Appends a line. It is durable after [`Self::sync`].
    pub fn append(&mut self, at: Timestamp, event: &Event) -> Result<(), ArchiveError> {
        let entry = Entry {
            at,
            seq: self.next,
            event: event.clone(),
        };
        let what = || "an event".to_owned();
        let line = format_line(&entry).map_err(|source| ArchiveError::Encode {
            what: what(),
            source,
        })?;
        if !parse_line(line.trim_end().as_bytes()).is_ok_and(|read| read == entry) {
            return Err(ArchiveError::Unfaithful { what: what() });
        }
        if let Err(error) = self.file.write_all(line.as_bytes()) {
            return Err(self.undo(error));
        }
        self.length += line.len() as u64;
        self.next += 1;
        Ok(())
    }

    /// Makes all lines durable.
    pub fn sync(&self) -> Result<(), ArchiveError> {
        self.file
            .sync_data()
            .map_err(ArchiveError::io("save the journal"))
    }

    /// Takes back a line that was written in part, so that the next one does not run into it.
    fn undo(&self, error: io::Error) -> ArchiveError {
        if let Err(second) = self.file.set_len(self.length) {
            tracing::warn!(journal = %self.path.display(), error = %second, "a line that was written in part stays");
        }
        ArchiveError::io("write the journal")(error)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event(text: &str) -> Event {
        Event::StepStarted {
            trial: Some(7),
            step: text.to_owned(),
        }
    }

    fn journal_of(texts: &[&str]) -> (tempfile::TempDir, PathBuf) {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("a.ndjson");
        let (mut writer, _) = JournalWriter::open(path.clone()).unwrap();
        for text in texts {
            writer.append(Timestamp::UNIX_EPOCH, &event(text)).unwrap();
        }
        writer.sync().unwrap();
        (directory, path)
    }

    fn step(entry: &Entry) -> &str {
        match &entry.event {
            Event::StepStarted { step, .. } => step,
            other => panic!("{other:?}"),
        }
    }

    fn steps(journal: &Journal) -> Vec<&str> {
        journal.entries.iter().map(step).collect()
    }

    #[test]
    fn lines_are_json_with_a_checksum_anyone_can_check() {
        let (_directory, path) = journal_of(&["warm\nup \"x\""]);
        let text = std::fs::read_to_string(path).unwrap();
        let line = text.strip_suffix('\n').unwrap();
        assert!(!line.contains('\n'));
        let value: serde_json::Value = serde_json::from_str(line).unwrap();
        assert_eq!(value["event"]["step"], "warm\nup \"x\"");
        let (body, _) = line.rsplit_once(r#","sum":"#).unwrap();
        assert_eq!(value["sum"], Digest::of(body).short(16));
    }

    #[test]
    fn a_torn_last_line_is_tolerated_wherever_it_is_torn() {
        let (_directory, path) = journal_of(&["one", "two"]);
        let bytes = std::fs::read(&path).unwrap();
        let first = bytes.iter().position(|b| *b == b'\n').unwrap() + 1;
        for cut in first..bytes.len() {
            std::fs::write(&path, &bytes[..cut]).unwrap();
            let journal = Journal::read(&path).unwrap();
            assert_eq!(steps(&journal), ["one"], "cut at {cut}");
            assert_eq!(journal.torn, cut - first);
        }
    }

    #[test]
    fn a_writer_goes_on_after_a_torn_line() {
        let (_directory, path) = journal_of(&["one", "two"]);
        let bytes = std::fs::read(&path).unwrap();
        std::fs::write(&path, &bytes[..bytes.len() - 9]).unwrap();
        let (mut writer, torn) = JournalWriter::open(path.clone()).unwrap();
        assert!(torn > 9);
        writer
            .append(Timestamp::UNIX_EPOCH, &event("three"))
            .unwrap();
        let journal = Journal::read(&path).unwrap();
        assert_eq!((steps(&journal), journal.torn), (vec!["one", "three"], 0));
    }

    #[test]
    fn any_other_damage_is_an_error_with_its_line() {
        let (_directory, path) = journal_of(&["one", "two", "three"]);
        let good = std::fs::read_to_string(&path).unwrap();
        let lines: Vec<_> = good.split_inclusive('\n').collect();
        let cases = [
            (good.replace("two", "twa"), 2, "checksum"),
            (
                format!("{}{}", lines[0], lines[2]),
                2,
                "entry 3 where entry 2",
            ),
            (
                format!("{}{}{}", lines[0], &lines[1][9..], lines[2]),
                2,
                "checksum",
            ),
            (format!("{good}\n"), 4, "no checksum"),
            (
                format!("{}{}{}", lines[0], lines[1], "{\"at\":1}\n"),
                3,
                "no checksum",
            ),
            (format!("{good}{}\n", "é".repeat(30)), 4, "no checksum"),
            (format!("{}{good}", lines[0]), 2, "entry 1 where entry 2"),
        ];
        for (text, expected, reason) in cases {
            std::fs::write(&path, &text).unwrap();
            match Journal::read(&path) {
                Err(ArchiveError::Journal { file, line, why }) => {
                    assert_eq!((file, line), (path.clone(), expected), "{text}");
                    assert!(why.contains(reason), "{why} is not about {reason}");
                }
                other => panic!("{other:?} for {text}"),
            }
        }
    }

    #[test]
    fn an_event_that_would_not_read_back_is_refused() {
        let (_directory, path) = journal_of(&["one"]);
        let (mut writer, _) = JournalWriter::open(path.clone()).unwrap();
        let error = writer
            .append(
                Timestamp::UNIX_EPOCH,
                &Event::PlanDone { seconds: f64::NAN },
            )
            .unwrap_err();
        assert!(matches!(error, ArchiveError::Unfaithful { .. }));
        writer.append(Timestamp::UNIX_EPOCH, &event("two")).unwrap();
        assert_eq!(steps(&Journal::read(&path).unwrap()), ["one", "two"]);
    }

    #[test]
    fn a_full_disk_is_an_error_with_advice() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("a.ndjson");
        std::os::unix::fs::symlink("/dev/full", &path).unwrap();
        let file = fs::OpenOptions::new().append(true).open(&path).unwrap();
        let mut writer = JournalWriter {
            file,
            path,
            length: 0,
            next: 1,
        };
        let error = writer
            .append(Timestamp::UNIX_EPOCH, &event("one"))
            .unwrap_err();
        assert!(
            error
                .hint()
                .is_some_and(|hint| hint.contains("free some space")),
            "{error:?}"
        );
        assert_eq!(writer.next, 1);
    }
}
