//! Names of files and directories in a run directory.

use std::collections::BTreeMap;
use std::io;
use std::path::Path;

use fs_err as fs;
use jiff::Timestamp;

use crate::model::{Digest, Digester, Trial};

pub(super) const MANIFEST: &str = "run.json";
pub(super) const LOCK: &str = "lock.json";
pub(super) const PLAN: &str = "plan.json";
pub(super) const INPUTS: &str = "inputs";
pub(super) const JOURNAL: &str = "journal";
pub(super) const TRIALS: &str = "trials";
pub(super) const INDEX: &str = "results.sqlite";
/// Locked by the writer for as long as it lives.
pub(super) const WRITER: &str = "writer.lock";

/// In a trial's directory.
pub(super) const TRIAL: &str = "trial.json";
/// In an attempt's directory.
pub(super) const OUTCOME: &str = "outcome.json";

/// The longest label in a directory name, in bytes; file systems take 255 for a whole name.
const LABEL_MAX: usize = 80;

/// The directory of a run: when it was made, and six digits that tell runs of one second apart.
/// `salt` goes up while the name is taken.
pub(super) fn run_directory(created: Timestamp, root: Digest, salt: u32) -> String {
    let tag = Digester::default()
        .field(root.bytes())
        .field(created.as_nanosecond().to_be_bytes())
        .field(std::process::id().to_be_bytes())
        .field(salt.to_be_bytes())
        .finish();
    format!("{}-{}", created.strftime("%Y%m%dT%H%M%SZ"), tag.short(6))
}

/// The directory of a trial: its number, by which it is found again, and its label as far as file
/// names can hold it, for people.
pub(super) fn trial_directory(trial: &Trial) -> String {
    let mut label: String = trial
        .label()
        .chars()
        .map(|c| {
            if c.is_ascii_alphanumeric() || "=,.+-_".contains(c) {
                c
            } else {
                '_'
            }
        })
        .collect();
    label.truncate(LABEL_MAX);
    format!("{:04}-{label}", trial.number)
}

/// The number a trial's directory begins with.
fn trial_number(directory: &str) -> Option<u32> {
    directory
        .split_once('-')
        .and_then(|(number, _)| number.parse().ok())
}

/// The trial directories there are, by number.
pub(super) fn trial_directories(trials: &Path) -> io::Result<BTreeMap<u32, String>> {
    let mut found = BTreeMap::new();
    for entry in fs::read_dir(trials)? {
        let name = entry?.file_name().to_string_lossy().into_owned();
        if let Some(number) = trial_number(&name) {
            found.insert(number, name);
        }
    }
    Ok(found)
}

/// What the name of an attempt's directory says.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum AttemptName {
    /// Part of the archive.
    Committed(u32),
    /// Being written, or left by a writer that died.
    Open(u32),
    /// Left by a writer that died, and put aside.
    Abandoned(u32),
}

impl AttemptName {
    /// The attempt's number.
    pub const fn number(self) -> u32 {
        match self {
            Self::Committed(n) | Self::Open(n) | Self::Abandoned(n) => n,
        }
    }

    /// Reads a directory's name.
    pub fn parse(name: &str) -> Option<Self> {
        let number = |text: &str| text.parse::<u32>().ok().filter(|n| *n > 0);
        if let Some(rest) = name.strip_prefix(".attempt-") {
            return rest.strip_suffix(".tmp").and_then(number).map(Self::Open);
        }
        let rest = name.strip_prefix("attempt-")?;
        match rest.strip_suffix(".abandoned") {
            Some(rest) => number(rest).map(Self::Abandoned),
            None => number(rest).map(Self::Committed),
        }
    }
}

impl std::fmt::Display for AttemptName {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Committed(n) => write!(f, "attempt-{n}"),
            Self::Open(n) => write!(f, ".attempt-{n}.tmp"),
            Self::Abandoned(n) => write!(f, "attempt-{n}.abandoned"),
        }
    }
}

/// The attempts in a trial's directory, in any state, sorted; none when there is no directory.
pub(super) fn attempt_names(trial: &Path) -> io::Result<Vec<AttemptName>> {
    let entries = match fs::read_dir(trial) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        entries => entries?,
    };
    let mut names = Vec::new();
    for entry in entries {
        names.extend(AttemptName::parse(&entry?.file_name().to_string_lossy()));
    }
    names.sort_unstable();
    Ok(names)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Level;

    fn trial(level: &str) -> Trial {
        Trial {
            number: 7,
            block: 1,
            levels: vec![("query".parse().unwrap(), Level::Text(level.to_owned()))],
            identity: Digest::of("x"),
        }
    }

    #[test]
    fn any_label_becomes_one_safe_file_name() {
        let cases = [
            ("ram", "0007-query=ram"),
            ("../../etc/passwd", "0007-query=.._.._etc_passwd"),
            ("a b\n\0'\"$(x)*", "0007-query=a_b______x__"),
            ("größe 🦀", "0007-query=gr__e__"),
            ("", "0007-query="),
        ];
        for (level, expected) in cases {
            let name = trial_directory(&trial(level));
            assert_eq!(name, expected, "{level:?}");
            assert_eq!(trial_number(&name), Some(7));
        }
        assert!(trial_directory(&trial(&"x".repeat(5000))).len() < 100);
    }

    #[test]
    fn attempt_names_are_read_back() {
        for name in [
            AttemptName::Committed(1),
            AttemptName::Open(12),
            AttemptName::Abandoned(3),
        ] {
            assert_eq!(AttemptName::parse(&name.to_string()), Some(name));
        }
        for other in [
            "attempt-0",
            "attempt-",
            "attempt-1.tmp",
            ".attempt-1",
            "trial.json",
            "attempt--1",
        ] {
            assert_eq!(AttemptName::parse(other), None, "{other}");
        }
    }
}
