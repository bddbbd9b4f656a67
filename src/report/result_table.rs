//! The results of one run.

use std::fmt::Write as _;

use serde::Serialize;

use super::number::{count, figure, plain};
use super::table::Table;
use crate::archive::{Cell, Results};
use crate::model::{Failure, Level, MetricSpec, Name};
use crate::stats;

/// The coverage that an interval of a median should have.
const WANTED_COVERAGE: f64 = 0.95;

/// The results of one run, one row per cell.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ResultTable {
    /// Names of the factors.
    pub factors: Vec<Name>,
    /// The metrics.
    pub metrics: Vec<MetricSpec>,
    /// One row per cell, in the order of the design.
    pub cells: Vec<CellRow>,
    /// Every attempt that failed, those that a later one made good included.
    pub failures: Vec<FailedAttempt>,
}

/// One cell.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct CellRow {
    /// The level of each factor.
    pub levels: Vec<(Name, Level)>,
    /// Trials in the plan.
    pub planned: usize,
    /// Trials with an attempt that counts.
    pub good: usize,
    /// Attempts that failed.
    pub failed_attempts: usize,
    /// One entry per metric, in their order.
    pub metrics: Vec<MetricCell>,
}

/// One metric in one cell.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct MetricCell {
    /// The values of the trials that count, in the run's order.
    pub values: Vec<f64>,
    /// Their median; none without values.
    pub median: Option<f64>,
    /// The least.
    pub min: Option<f64>,
    /// The largest.
    pub max: Option<f64>,
    /// Why there are no values where there should be.
    pub problem: Option<String>,
}

/// An attempt that failed.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct FailedAttempt {
    /// The trial's number.
    pub trial: u32,
    /// The trial's levels in one line.
    pub label: String,
    /// The attempt's number.
    pub attempt: u32,
    /// Why it failed.
    pub failure: Failure,
    /// The attempt that was good instead, if one was.
    pub made_good_by: Option<u32>,
}

impl ResultTable {
    /// Gathers the results of a run.
    pub fn new(results: &Results) -> Self {
        let metrics = &results.playbook.metrics;
        Self {
            factors: results
                .playbook
                .factors
                .iter()
                .map(|factor| factor.name.clone())
                .collect(),
            metrics: metrics.clone(),
            cells: results
                .cells()
                .iter()
                .map(|cell| CellRow::new(cell, metrics))
                .collect(),
            failures: failures(results),
        }
    }

    /// Draws it, at most `width` columns wide where that is known.
    pub fn text(&self, width: Option<u16>) -> String {
        let heads = self
            .factors
            .iter()
            .map(ToString::to_string)
            .chain(["good".to_owned(), "failed".to_owned()])
            .chain(self.metrics.iter().map(metric_head));
        let mut table = Table::new(heads, width);
        for cell in &self.cells {
            let levels = cell.levels.iter().map(|(_, level)| level.to_string());
            let counts = [
                format!("{}/{}", cell.good, cell.planned),
                cell.failed_attempts.to_string(),
            ];
            let metrics = cell
                .metrics
                .iter()
                .zip(&self.metrics)
                .map(|(m, spec)| m.text(&spec.unit, cell.good));
            table.row(levels.chain(counts).chain(metrics));
        }
        table.keep_whole(self.factors.len());
        let mut text = table.text();
        text.push('\n');
        text.push_str(&self.legend());
        self.write_failures(&mut text);
        text
    }

    /// What the figures are, and how much they can say.
    fn legend(&self) -> String {
        let mut text = "good: trials that count / planned; failed: failed attempts.\n".to_owned();
        let sizes = self
            .cells
            .iter()
            .flat_map(|cell| &cell.metrics)
            .map(|metric| metric.values.len());
        let Some(least) = sizes.filter(|n| *n > 0).min() else {
            return text;
        };
        text.push_str("Figures: median [least .. most] of the trials that count.\n");
        let covered = stats::range_coverage(least);
        let wanted = stats::repetitions_for_median(WANTED_COVERAGE);
        let wanted = format!("; {} % takes {wanted} trials.", WANTED_COVERAGE * 100.0);
        if least == 1 {
            text.push_str("One trial has no spread: how sure its figure is cannot be said");
        } else {
            // Rounded down: 99.99 % is not 100 %.
            let percent = (covered * 1000.0).floor() / 10.0;
            let _ = write!(
                text,
                "The range of {least} trials holds the true median with {percent} %"
            );
        }
        text.push_str(if covered < WANTED_COVERAGE {
            &wanted
        } else {
            "."
        });
        text.push('\n');
        text
    }

    fn write_failures(&self, text: &mut String) {
        if self.failures.is_empty() {
            return;
        }
        let _ = write!(
            text,
            "\n{}:\n",
            count(self.failures.len(), "failed attempt")
        );
        for failed in &self.failures {
            let fate = match failed.made_good_by {
                Some(attempt) => format!("attempt {attempt} is good"),
                None => "the trial does not count".to_owned(),
            };
            let Failure {
                kind,
                step,
                message,
            } = &failed.failure;
            let _ = writeln!(
                text,
                "  trial {} ({}), attempt {}, step {}: {kind} failure; {fate}",
                failed.trial,
                plain(&failed.label),
                failed.attempt,
                plain(step),
            );
            for line in message.lines() {
                let _ = writeln!(text, "    {}", plain(line));
            }
        }
    }
}

impl CellRow {
    fn new(cell: &Cell<'_>, metrics: &[MetricSpec]) -> Self {
        let attempts = cell.trials.iter().flat_map(|(_, outcomes)| outcomes.iter());
        Self {
            levels: cell.levels.to_vec(),
            planned: cell.trials.len(),
            good: cell.good().count(),
            failed_attempts: attempts.filter(|outcome| !outcome.is_good()).count(),
            metrics: metrics
                .iter()
                .map(|metric| MetricCell::new(cell, metric))
                .collect(),
        }
    }
}

impl MetricCell {
    fn new(cell: &Cell<'_>, metric: &MetricSpec) -> Self {
        let (values, problem) = match cell.values(metric) {
            Ok(values) => (values, None),
            Err(error) => (Vec::new(), Some(error.to_string())),
        };
        Self {
            median: stats::median(&values),
            min: values.iter().copied().min_by(f64::total_cmp),
            max: values.iter().copied().max_by(f64::total_cmp),
            values,
            problem,
        }
    }

    /// `good` is how many values there should be.
    fn text(&self, unit: &str, good: usize) -> String {
        if let Some(problem) = &self.problem {
            return problem.clone();
        }
        let (Some(median), Some(min), Some(max)) = (self.median, self.min, self.max) else {
            return "-".to_owned();
        };
        let mut text = figure(median, unit);
        if self.values.len() > 1 {
            let _ = write!(text, " [{} .. {}]", figure(min, unit), figure(max, unit));
        }
        if self.values.len() < good {
            let _ = write!(text, " (of {})", count(self.values.len(), "value"));
        }
        text
    }
}

/// `tps (1/s)`.
pub(super) fn metric_head(metric: &MetricSpec) -> String {
    if metric.unit.is_empty() {
        metric.name.clone()
    } else {
        format!("{} ({})", metric.name, metric.unit)
    }
}

fn failures(results: &Results) -> Vec<FailedAttempt> {
    let mut failures = Vec::new();
    for (trial, outcomes) in &results.trials {
        let made_good_by = Results::good(outcomes).map(|outcome| outcome.attempt);
        failures.extend(outcomes.iter().filter_map(|outcome| {
            Some(FailedAttempt {
                trial: trial.number,
                label: trial.label(),
                attempt: outcome.attempt,
                failure: outcome.failure.clone()?,
                made_good_by,
            })
        }));
    }
    failures
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::archive::testing::{bad, good, results};

    fn sample() -> Results {
        let mut results = results(&[(1, &[31.8, 32.4, 30.9]), (16, &[95.5, 93.25])]);
        results.trials[0]
            .1
            .insert(0, bad(1, "exit 1\nFATAL: \x1b[31mno such table"));
        results.trials[0].1[1].attempt = 2;
        results.trials[5].1 = vec![bad(1, "the deadline passed")];
        results
    }

    #[test]
    fn a_table_shows_every_cell_and_every_failure() {
        insta::assert_snapshot!(ResultTable::new(&sample()).text(None));
    }

    #[test]
    fn a_narrow_terminal_gets_a_narrow_table() {
        let text = ResultTable::new(&sample()).text(Some(50));
        let table = text.split("\n\n").next().unwrap();
        assert!(
            table.lines().all(|line| line.chars().count() <= 50),
            "{table}"
        );
        assert!(table.contains("3/3"), "{table}");
    }

    #[test]
    fn values_that_are_missing_or_of_another_unit_are_said() {
        let mut results = results(&[(1, &[31.8, 32.4])]);
        results.trials[0].1[0].metrics.remove(0);
        results.trials[1].1[0].metrics[1].unit = "s".to_owned();
        let table = ResultTable::new(&results);
        let texts: Vec<_> = table.cells[0]
            .metrics
            .iter()
            .map(|metric| metric.text("ms", 2))
            .collect();
        assert_eq!(
            texts,
            [
                "32.40 (of 1 value)",
                r#"there are values in "s" where "ms" is asked for"#
            ]
        );
    }

    #[test]
    fn the_legend_says_what_the_range_is_worth() {
        for (n, expected) in [
            (1, "no spread"),
            (3, "75 %; 95 % takes 6 trials."),
            (6, "96.8 %."),
            (30, "99.9 %."),
        ] {
            let mut results = results(&[(1, &vec![1.0; n])]);
            results.trials[0].1[0] = good(1, 1.0, 1.0);
            let legend = ResultTable::new(&results).legend();
            assert!(legend.contains(expected), "{legend}");
        }
    }

    #[test]
    fn the_json_has_what_the_text_has() {
        let json = serde_json::to_value(ResultTable::new(&sample())).unwrap();
        assert_eq!(
            json["cells"][0]["metrics"][0]["values"],
            serde_json::json!([31.8, 32.4, 30.9])
        );
        assert_eq!(
            json["cells"][1]["levels"],
            serde_json::json!([["threads", 16]])
        );
        assert_eq!(
            json["failures"][1]["failure"]["message"],
            "the deadline passed"
        );
    }
}
