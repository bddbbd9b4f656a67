//! What can go wrong with an archive.

use std::io;
use std::path::{Path, PathBuf};

use crate::model::Digest;
use crate::ports::{ErrorKind, PortError};

/// What can go wrong with an archive.
#[derive(Debug, thiserror::Error)]
pub enum ArchiveError {
    /// The file system did not do what was asked.
    #[error("{what}")]
    Io {
        /// What was tried, as a fragment fit for "failed to …".
        what: String,
        /// Why it failed; names the file.
        #[source]
        source: io::Error,
    },
    /// The directory is not one of ours.
    #[error("{} is not a run directory: it has no run.json", .0.display())]
    NotARun(PathBuf),
    /// The directory was written by a labrig of another age.
    #[error("{} has archive format {found}, this labrig reads format {known}", path.display())]
    OtherFormat {
        /// The run directory.
        path: PathBuf,
        /// Major version found.
        found: u32,
        /// Major version of this program.
        known: u32,
    },
    /// A file is not the JSON it should be.
    #[error("{} is damaged", file.display())]
    Json {
        /// The file.
        file: PathBuf,
        /// Where and why.
        #[source]
        source: serde_json::Error,
    },
    /// A value cannot be written as JSON.
    #[error("{what} cannot be archived")]
    Encode {
        /// The value.
        what: String,
        /// Why.
        #[source]
        source: serde_json::Error,
    },
    /// A value would come back as another one, or not at all: JSON has no NaN, say.
    #[error("{what} cannot be archived: it would not read back the same")]
    Unfaithful {
        /// The value.
        what: String,
    },
    /// A journal has damage other than a torn last line.
    #[error("{}:{line}: the journal is damaged: {why}", file.display())]
    Journal {
        /// The journal.
        file: PathBuf,
        /// Line, from 1.
        line: usize,
        /// What is wrong with the line.
        why: String,
    },
    /// A file or directory contradicts another one.
    #[error("{}: {why}", path.display())]
    Inconsistent {
        /// The file or directory.
        path: PathBuf,
        /// What is wrong with it.
        why: String,
    },
    /// The root digest of a lock is not that of its leaves.
    #[error("the lock was changed: its root digest is {stored}, its leaves give {computed}")]
    LockRoot {
        /// The digest in the file.
        stored: Digest,
        /// The digest of the leaves.
        computed: Digest,
    },
    /// Another process writes to the run.
    #[error("{} is being written by {holder}", path.display())]
    InUse {
        /// The run directory.
        path: PathBuf,
        /// Who, as far as it is known.
        holder: String,
    },
    /// An input's path would leave the archive, or two inputs have one path.
    #[error("input path {path:?} cannot be archived: {why}")]
    InputPath {
        /// The path.
        path: PathBuf,
        /// What is wrong with it.
        why: &'static str,
    },
    /// A trial that is not in the run's plan, or not the way the plan has it.
    #[error("trial {number} is not in the plan of {}", path.display())]
    UnknownTrial {
        /// The run directory.
        path: PathBuf,
        /// The trial's number.
        number: u32,
    },
    /// The results index could not be made.
    #[error("the results index {} could not be made", file.display())]
    Index {
        /// The index.
        file: PathBuf,
        /// Why.
        #[source]
        source: rusqlite::Error,
    },
}

impl ArchiveError {
    /// What to do about it, where there is something.
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::Io { source, .. } => match source.kind() {
                io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => Some(
                    "free some space on that file system, then run again on the same directory: \
                     committed trials are safe and the run goes on after them"
                        .to_owned(),
                ),
                io::ErrorKind::ReadOnlyFilesystem | io::ErrorKind::PermissionDenied => Some(
                    "the run directory must be writable for the user who runs labrig".to_owned(),
                ),
                _ => None,
            },
            Self::NotARun(_) => Some("`labrig runs` lists the runs there are".to_owned()),
            Self::OtherFormat { .. } => {
                Some("use the labrig that wrote it, or a newer one".to_owned())
            }
            Self::InUse { .. } => {
                Some("wait for it or stop it; a process that died holds nothing".to_owned())
            }
            Self::Index { .. } => {
                Some("the trials are safe: the index is rebuilt from them at will".to_owned())
            }
            Self::LockRoot { .. } | Self::Journal { .. } | Self::Json { .. } => {
                Some("something else than labrig changed it: restore it from a copy".to_owned())
            }
            Self::Unfaithful { .. } => Some("numbers must be finite".to_owned()),
            _ => None,
        }
    }

    /// Says what was tried when a file operation failed.
    pub(super) fn io(what: impl Into<String>) -> impl FnOnce(io::Error) -> Self {
        let what = what.into();
        move |source| Self::Io { what, source }
    }

    /// Says which file is not the JSON it should be.
    pub(super) fn json(file: &Path) -> impl FnOnce(serde_json::Error) -> Self {
        let file = file.to_owned();
        move |source| Self::Json { file, source }
    }
}

impl From<ArchiveError> for PortError {
    fn from(error: ArchiveError) -> Self {
        let (what, hint) = (error.to_string(), error.hint());
        let mut port = Self::new(ErrorKind::Fatal, what);
        port.hint = hint;
        // The text is taken already; only what lies below it is a further cause.
        port.source = match error {
            ArchiveError::Io { source, .. } => Some(source.into()),
            ArchiveError::Json { source, .. } | ArchiveError::Encode { source, .. } => {
                Some(source.into())
            }
            ArchiveError::Index { source, .. } => Some(source.into()),
            _ => None,
        };
        port
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_disk_comes_with_advice_and_its_cause() {
        let full = io::Error::from(io::ErrorKind::StorageFull);
        let port = PortError::from(ArchiveError::io("commit trial 7")(full));
        assert_eq!(port.what, "commit trial 7");
        assert!(port.hint.unwrap().contains("free some space"));
        assert!(port.source.is_some());
    }
}
