//! What a run gave: the common ground of index, comparison and reports.

use crate::model::{Outcome, Playbook, Trial};

/// A run's trials with their committed attempts.
#[derive(Debug, Clone, PartialEq)]
pub struct Results {
    /// The experiment.
    pub playbook: Playbook,
    /// Every planned trial in the run's order, with its committed attempts by number.
    pub trials: Vec<(Trial, Vec<Outcome>)>,
}

impl Results {
    /// The attempt of a trial that counts: its first good one. Which one is taken does not depend
    /// on what it measured.
    pub fn good(outcomes: &[Outcome]) -> Option<&Outcome> {
        outcomes.iter().find(|outcome| outcome.is_good())
    }

    /// How many trials have an attempt that counts.
    pub fn done(&self) -> usize {
        self.trials
            .iter()
            .filter(|(_, outcomes)| Self::good(outcomes).is_some())
            .count()
    }

    /// How many trials were tried and have no attempt that counts.
    pub fn failed(&self) -> usize {
        self.trials
            .iter()
            .filter(|(_, outcomes)| !outcomes.is_empty() && Self::good(outcomes).is_none())
            .count()
    }

    /// How many trials were not tried yet.
    pub fn untried(&self) -> usize {
        self.trials
            .iter()
            .filter(|(_, outcomes)| outcomes.is_empty())
            .count()
    }
}
