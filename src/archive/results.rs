//! What a run gave: the common ground of index, comparison and reports.

use crate::model::{Factor, Level, MetricSpec, Name, Outcome, Playbook, Trial};

/// A run's trials with their committed attempts.
#[derive(Debug, Clone, PartialEq)]
pub struct Results {
    /// The experiment.
    pub playbook: Playbook,
    /// Every planned trial in the run's order, with its committed attempts by number.
    pub trials: Vec<(Trial, Vec<Outcome>)>,
}

/// A value in another unit than its metric should have.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("there are values in {found:?} where {wanted:?} is asked for")]
pub struct OtherUnit {
    /// The unit a value has.
    pub found: String,
    /// The metric's unit.
    pub wanted: String,
}

/// All trials with the same levels.
#[derive(Debug, Clone, PartialEq)]
pub struct Cell<'r> {
    /// The level of each factor.
    pub levels: &'r [(Name, Level)],
    /// Its trials in the run's order, with their committed attempts.
    pub trials: Vec<(&'r Trial, &'r [Outcome])>,
}

impl Results {
    /// The cells of the design, in the order of the playbook's levels, the last factor fastest.
    pub fn cells(&self) -> Vec<Cell<'_>> {
        let mut cells: Vec<Cell<'_>> = Vec::new();
        for (trial, outcomes) in &self.trials {
            let entry = (trial, outcomes.as_slice());
            match cells.iter_mut().find(|cell| cell.levels == trial.levels) {
                Some(cell) => cell.trials.push(entry),
                None => cells.push(Cell {
                    levels: &trial.levels,
                    trials: vec![entry],
                }),
            }
        }
        let position = |cell: &Cell<'_>, factor: &Factor| {
            let level = cell
                .trials
                .first()
                .and_then(|(trial, _)| trial.level(factor));
            factor.levels.iter().position(|known| Some(known) == level)
        };
        let factors = &self.playbook.factors;
        cells.sort_by_cached_key(|cell| {
            factors
                .iter()
                .map(|f| position(cell, f))
                .collect::<Vec<_>>()
        });
        cells
    }

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

impl<'r> Cell<'r> {
    /// The attempts that count, one per trial at most, in the run's order.
    pub fn good(&self) -> impl Iterator<Item = &'r Outcome> {
        self.trials
            .iter()
            .filter_map(|(_, outcomes)| Results::good(outcomes))
    }

    /// The values of a metric in the attempts that count, in the run's order.
    ///
    /// # Errors
    /// When one has another unit than the metric should have.
    pub fn values(&self, metric: &MetricSpec) -> Result<Vec<f64>, OtherUnit> {
        self.good()
            .filter_map(|outcome| {
                outcome
                    .metrics
                    .iter()
                    .find(|found| found.name == metric.name)
            })
            .map(|found| {
                let other = || OtherUnit {
                    found: found.unit.clone(),
                    wanted: metric.unit.clone(),
                };
                if found.unit == metric.unit {
                    Ok(found.value)
                } else {
                    Err(other())
                }
            })
            .collect()
    }

    /// The levels in one line.
    pub fn label(&self) -> String {
        self.trials
            .first()
            .map(|(trial, _)| trial.label())
            .unwrap_or_default()
    }
}
