//! Measured values.

use std::fmt;

use serde::{Deserialize, Serialize};

/// Which way is good.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Better {
    /// More is better.
    Higher,
    /// Less is better.
    Lower,
}

/// One value that an adapter read from a tool's output.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Metric {
    /// What it is, as in `tps`.
    pub name: String,
    /// The value; always finite.
    pub value: f64,
    /// Its unit, as in `1/s` or `ms`; empty for a plain count.
    pub unit: String,
}

/// A metric that a playbook asks for.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct MetricSpec {
    /// Name the adapter gives it.
    pub name: String,
    /// The one the verdict is about.
    pub primary: bool,
    /// Unit it must have.
    pub unit: String,
    /// Which way is good.
    pub better: Better,
}

impl fmt::Display for Better {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Higher => "higher",
            Self::Lower => "lower",
        })
    }
}
