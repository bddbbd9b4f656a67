//! Statistics of few trials: medians, ratios, equivalence, several tests at once. Pure functions
//! over finite numbers; each says what it assumes and where it comes from.
//!
//! A value is one *trial's* result. Requests or seconds within a trial are no replicates (Kalibera
//! and Jones, "Rigorous benchmarking in reasonable time", ISMM 2013).

mod moments;
mod multiple;
mod order;
mod ratio;

pub use multiple::holm;
pub use order::{median, quantile, range_coverage, repetitions_for_median};
pub use ratio::{Interval, Ratio, RatioError};
