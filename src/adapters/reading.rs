//! What an adapter says about an output.

use crate::model::Metric;

/// What was measured.
#[derive(Debug, Clone, PartialEq)]
pub struct Reading {
    /// The metrics, in the order the tool printed them.
    pub metrics: Vec<Metric>,
    /// Whether they are the whole story.
    pub verdict: Verdict,
}

/// Whether a reading is the whole story.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    /// A complete run with a complete report. The tool may have counted errors.
    Ok,
    /// The run or its output was cut short, for this reason; what is there is right.
    Partial(String),
}

/// Why an output is no usable measurement.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// Nobody reads this tool.
    #[error("no adapter is called {0:?}; there are {known}", known = super::NAMES.join(", "))]
    UnknownAdapter(String),
    /// The output could not be read.
    #[error("read the output")]
    Io(#[from] std::io::Error),
    /// The tool says itself that it failed.
    #[error("the tool failed with exit status {exit}: {line}")]
    Tool {
        /// Its exit status.
        exit: i32,
        /// The line that says so.
        line: String,
    },
    /// The tool printed nothing that is a result.
    #[error("no {what} in the output; exit status {exit}")]
    Missing {
        /// What was looked for.
        what: &'static str,
        /// The tool's exit status.
        exit: i32,
    },
    /// A line is not what it has to be.
    #[error("{reason}: {line:?}")]
    Line {
        /// What is wrong with it.
        reason: &'static str,
        /// The line.
        line: String,
    },
    /// A complete report about no work at all; its latencies were never measured.
    #[error("the tool reports that it did nothing: {line}")]
    NothingDone {
        /// The line that says so.
        line: String,
        /// What counts even so.
        metrics: Vec<Metric>,
    },
}
