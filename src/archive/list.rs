//! The runs below a directory, broken ones included.

use std::io;
use std::path::{Path, PathBuf};

use fs_err as fs;
use jiff::Timestamp;
use serde::Serialize;

use super::run_dir::read_manifest;
use super::{ArchiveError, RunDir};
use crate::ports::chain;

/// How far a run is. It follows from its trials.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum RunState {
    /// Every trial has a committed attempt.
    Finished,
    /// Some trial has none yet: running on it resumes.
    Unfinished,
    /// It cannot be read.
    Broken {
        /// Why, the whole chain.
        problem: String,
    },
}

/// A run in a list.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct RunSummary {
    /// The playbook's name, which is that of the directory it lies in.
    pub playbook: String,
    /// The run directory's own name.
    pub name: String,
    /// Where it is.
    pub path: PathBuf,
    /// When it was created; none when that cannot be read.
    pub created: Option<Timestamp>,
    /// Trials in its plan.
    pub planned: usize,
    /// Trials with an attempt that counts.
    pub done: usize,
    /// Trials that were tried and have none.
    pub failed: usize,
    /// How far it is.
    pub state: RunState,
}

/// Lists the runs below `root`, by playbook, oldest first. A run that cannot be read is listed with
/// its problem. Without the directory there are no runs.
///
/// # Errors
/// When `root` itself cannot be read.
pub fn list(root: &Path) -> Result<Vec<RunSummary>, ArchiveError> {
    let failed = || ArchiveError::io("list the runs");
    let mut runs = Vec::new();
    for playbook in directories(root).map_err(failed())? {
        for run in directories(&playbook).map_err(failed())? {
            runs.push(summarise(run));
        }
    }
    Ok(runs)
}

/// The directories in a directory, sorted; hidden ones are drafts.
fn directories(path: &Path) -> io::Result<Vec<PathBuf>> {
    let entries = match fs::read_dir(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        entries => entries?,
    };
    let mut found = Vec::new();
    for entry in entries {
        let path = entry?.path();
        if path.is_dir() && !file_name(&path).starts_with('.') {
            found.push(path);
        }
    }
    found.sort();
    Ok(found)
}

fn summarise(path: PathBuf) -> RunSummary {
    let mut summary = RunSummary {
        playbook: path.parent().map(file_name).unwrap_or_default(),
        name: file_name(&path),
        created: read_manifest(&path).ok().map(|manifest| manifest.created),
        planned: 0,
        done: 0,
        failed: 0,
        state: RunState::Unfinished,
        path,
    };
    match RunDir::open(&summary.path).and_then(|run| run.results()) {
        Ok(results) => {
            summary.planned = results.trials.len();
            summary.done = results.done();
            summary.failed = results.failed();
            if results.untried() == 0 {
                summary.state = RunState::Finished;
            }
        }
        Err(error) => {
            summary.state = RunState::Broken {
                problem: chain(&error),
            }
        }
    }
    summary
}

fn file_name(path: &Path) -> String {
    path.file_name()
        .unwrap_or_default()
        .to_string_lossy()
        .into_owned()
}
