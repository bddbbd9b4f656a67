//! Comparing two runs: what can be said about their ratio, and the verdict.
//!
//! Pure: results in, comparison out. It reads no archive and draws no table.

mod compare;
mod comparison;

pub use compare::compare;
pub use comparison::{
    ALPHA, CellComparison, Comparison, Counts, INTERVAL_LEVEL, MetricComparison, OnlyIn, Overall,
    RatioEstimate, Side, Verdict,
};

pub(crate) use comparison::percent;
