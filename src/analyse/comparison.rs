//! What a comparison of two runs says.

use serde::Serialize;

use crate::model::{Level, MetricSpec, Name};

/// The chance of a false claim, `reproduced` or `differs`, that is accepted: 5 %.
pub const ALPHA: f64 = 0.05;

/// The level of the intervals: 1 − 2α, so that an interval within the margin is an equivalence test
/// at α.
pub const INTERVAL_LEVEL: f64 = 1.0 - 2.0 * ALPHA;

/// A comparison of a second run with a first one. All ratios are second over first.
///
/// For each cell and metric the ratio of geometric means is taken with a 90 % interval by Welch's t
/// on logarithms, which assumes independent trials with roughly log-normal values. With the margin
/// `m`, ratios from 1/(1 + m) to 1 + m count as the same.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Comparison {
    /// The metric that the overall verdict is about.
    pub primary: Option<MetricSpec>,
    /// The relative margin within which results count as the same.
    pub margin: f64,
    /// The cells that both runs have, in the order of the design.
    pub cells: Vec<CellComparison>,
    /// The cells that only one run has.
    pub missing: Vec<OnlyIn>,
    /// The verdict over the cells of the primary metric.
    pub overall: Overall,
}

/// One of the two runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Side {
    /// The first run.
    First,
    /// The second run.
    Second,
}

/// A cell that only one run has.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct OnlyIn {
    /// The cell's levels in one line.
    pub label: String,
    /// The run that has it.
    pub side: Side,
}

/// A cell that both runs have.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct CellComparison {
    /// The level of each factor.
    pub levels: Vec<(Name, Level)>,
    /// The levels in one line.
    pub label: String,
    /// One entry per metric of the playbook, in its order.
    pub metrics: Vec<MetricComparison>,
}

/// What one run has of a metric in a cell.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Counts {
    /// Trials in the plan.
    pub planned: usize,
    /// Trials with a value.
    pub values: usize,
    /// Median of the values; none without values.
    pub median: Option<f64>,
}

/// A ratio with its interval.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct RatioEstimate {
    /// Geometric mean of the second run over that of the first.
    pub ratio: f64,
    /// Lower end of the 90 % interval.
    pub low: f64,
    /// Upper end of the 90 % interval.
    pub high: f64,
    /// p-value of "beyond the margin", adjusted by Holm over the metric's cells.
    pub p_beyond: f64,
}

/// One metric in one cell.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct MetricComparison {
    /// The metric.
    pub metric: MetricSpec,
    /// The first run.
    pub first: Counts,
    /// The second run.
    pub second: Counts,
    /// The ratio, where there is one.
    pub ratio: Option<RatioEstimate>,
    /// What it comes to.
    pub verdict: Verdict,
}

/// What can be said about one metric in one cell.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(tag = "verdict", rename_all = "lowercase")]
pub enum Verdict {
    /// The same within the margin: the whole interval lies there.
    Reproduced {
        /// The margin.
        margin: f64,
    },
    /// Not the same: beyond the margin with an adjusted p-value of at most 5 %.
    Differs,
    /// Neither can be claimed.
    Inconclusive {
        /// Why, as a fragment.
        why: String,
    },
}

/// The verdict over all cells of the primary metric.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(tag = "verdict", rename_all = "lowercase")]
pub enum Overall {
    /// Every cell is reproduced, and no cell is missing.
    Reproduced {
        /// The margin.
        margin: f64,
    },
    /// Some cell differs.
    Differs {
        /// The labels of those cells.
        cells: Vec<String>,
    },
    /// Neither can be claimed.
    Inconclusive {
        /// Why, as a fragment.
        why: String,
    },
}

impl Verdict {
    /// The verdict in one word.
    pub const fn word(&self) -> &'static str {
        match self {
            Self::Reproduced { .. } => "reproduced",
            Self::Differs => "differs",
            Self::Inconclusive { .. } => "inconclusive",
        }
    }
}

/// A margin as people write it: `10 %`.
pub(crate) fn percent(margin: f64) -> String {
    format!("{} %", (margin * 1e4).round() / 1e2)
}
