//! What can go wrong with an embedded host.

use std::path::PathBuf;
use std::time::Duration;

/// Why an embedded host could not be started, reached or ended.
#[derive(Debug, thiserror::Error)]
pub enum EmbeddedError {
    /// A file or directory of it could not be used; fs-err names it.
    #[error("use the embedded host's files")]
    File(#[from] std::io::Error),
    /// A kernel call failed.
    #[error("{call}")]
    System {
        /// Which call, and for what.
        call: String,
        /// Why.
        source: nix::Error,
    },
    /// A program it needs is not installed or did not start.
    #[error("start {program}")]
    Program {
        /// The program.
        program: &'static str,
        /// Why.
        source: std::io::Error,
    },
    /// Its directory is no place for it.
    #[error("use {directory} for the embedded host: {why}")]
    Directory {
        /// The directory.
        directory: PathBuf,
        /// Why not.
        why: String,
    },
    /// It ended while it was starting.
    #[error("start the embedded host: it ended ({status}); its log's last lines:\n{log}")]
    Ended {
        /// How.
        status: String,
        /// Last lines of its log.
        log: String,
    },
    /// It did not answer, or did not end, in time.
    #[error("{what} within {}s; its log's last lines:\n{log}", deadline.as_secs())]
    Deadline {
        /// What was waited for.
        what: &'static str,
        /// How long.
        deadline: Duration,
        /// Last lines of its log.
        log: String,
    },
}

impl EmbeddedError {
    /// A failed kernel call.
    pub(super) fn system(call: impl Into<String>) -> impl FnOnce(nix::Error) -> Self {
        let call = call.into();
        |source| Self::System { call, source }
    }
}
