//! Trials and what came of them.

use std::collections::BTreeMap;
use std::fmt;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::{Digest, Factor, Level, Metric, Name};

/// One cell of the design, run once.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Trial {
    /// Position in the run's order, from 1.
    pub number: u32,
    /// Which block (repetition) it belongs to, from 1.
    pub block: u32,
    /// The level of each factor, in the playbook's order.
    pub levels: Vec<(Name, Level)>,
    /// Digest of all that decides it: factors, levels, block and the playbook's steps.
    pub identity: Digest,
}

/// How an attempt at a trial ended.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Outcome {
    /// Attempt number, from 1.
    pub attempt: u32,
    /// When it began, UTC.
    pub started: Timestamp,
    /// When it ended, UTC.
    pub ended: Timestamp,
    /// Steps in the order they were done.
    pub steps: Vec<StepRecord>,
    /// What the adapter read; empty when the attempt failed before.
    pub metrics: Vec<Metric>,
    /// Why it failed; none when it is good.
    pub failure: Option<Failure>,
    /// Digests of files that were rendered for it, by `domain:path`.
    pub rendered: BTreeMap<String, Digest>,
}

/// What one step did on one domain.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct StepRecord {
    /// The step's name.
    pub step: String,
    /// Where.
    pub domain: Name,
    /// Seconds it took, by the guest's own clock for commands.
    pub seconds: f64,
    /// Exit status of its command, where it has one; 128 + n after signal n.
    pub exit: Option<i32>,
}

/// Why an attempt failed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Failure {
    /// The kind, which decides on retries.
    pub kind: FailureKind,
    /// The step that failed.
    pub step: String,
    /// What went wrong, for people.
    pub message: String,
}

/// Kinds of failure.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum FailureKind {
    /// The guest or the way to it.
    Guest,
    /// The step's command or the load tool.
    Tool,
    /// A deadline.
    Timeout,
    /// The tool ended well but its output is no measurement.
    Output,
}

impl Trial {
    /// The levels in one line, as in `threads=4,storage=ram`; `all` when there is no factor.
    pub fn label(&self) -> String {
        if self.levels.is_empty() {
            return "all".to_owned();
        }
        let pairs: Vec<_> = self
            .levels
            .iter()
            .map(|(name, level)| format!("{name}={level}"))
            .collect();
        pairs.join(",")
    }

    /// The level of a factor.
    pub fn level(&self, factor: &Factor) -> Option<&Level> {
        self.levels
            .iter()
            .find(|(name, _)| *name == factor.name)
            .map(|(_, level)| level)
    }
}

impl fmt::Display for FailureKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Guest => "guest",
            Self::Tool => "tool",
            Self::Timeout => "timeout",
            Self::Output => "output",
        })
    }
}

impl Outcome {
    /// Whether its metrics count.
    pub fn is_good(&self) -> bool {
        self.failure.is_none()
    }
}
