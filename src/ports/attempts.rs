//! Where the engine leaves what a trial gave.

use std::path::PathBuf;

use super::PortError;
use crate::model::{Event, Outcome, Trial};

/// A place for one attempt's raw files; not part of the archive until it is committed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Attempt {
    /// Attempt number, from 1.
    pub number: u32,
    /// Directory to write raw files into.
    pub directory: PathBuf,
}

/// The archive of one run, as the engine sees it.
pub trait Attempts: Send + Sync {
    /// Whether the trial has a committed attempt that is good.
    fn is_done(&self, trial: &Trial) -> bool;

    /// Opens the next attempt of a trial.
    fn begin(&self, trial: &Trial) -> Result<Attempt, PortError>;

    /// Makes an attempt part of the archive, whole or not at all; durable when it returns.
    fn commit(&self, trial: &Trial, attempt: Attempt, outcome: &Outcome) -> Result<(), PortError>;

    /// Writes down what happened.
    fn record(&self, event: &Event) -> Result<(), PortError>;
}
