//! (being laid)

/// Names of all adapters.
pub const NAMES: &[&str] = &["lines", "sysbench"];
