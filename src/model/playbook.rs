//! An experiment with everything decided: roles are lists of domains, every step has a deadline.

use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Serialize};

use super::{MetricSpec, Name, Seconds};

/// An experiment.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Playbook {
    /// Its name; runs are filed under it.
    pub name: Name,
    /// Domains by role.
    pub roles: BTreeMap<Name, Vec<Name>>,
    /// What is varied, in the file's order.
    pub factors: Vec<Factor>,
    /// How trials are made from the factors.
    pub design: Design,
    /// Done once, before the first trial.
    pub setup: Vec<Step>,
    /// Done for every trial; exactly one step is a load.
    pub trial: Vec<Step>,
    /// What is measured, in the file's order.
    pub metrics: Vec<MetricSpec>,
    /// Relative margin within which two results count as the same; 0.1 is 10 %.
    pub margin: f64,
}

/// Something that is varied.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Factor {
    /// Its name, which templates see.
    pub name: Name,
    /// Its values.
    pub levels: Vec<Level>,
}

/// A factor's value. `1`, `1.0` and `"1"` are three different levels.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Level {
    /// `true` or `false`.
    Bool(bool),
    /// A whole number.
    Int(i64),
    /// A number with a point.
    Float(f64),
    /// A text.
    Text(String),
}

impl fmt::Display for Level {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Bool(b) => write!(f, "{b}"),
            Self::Int(n) => write!(f, "{n}"),
            // {:?} keeps the point of 1.0.
            Self::Float(x) => write!(f, "{x:?}"),
            Self::Text(s) => f.pad(s),
        }
    }
}

/// In which order trials run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Order {
    /// Randomised complete blocks: every block has each cell once, shuffled.
    Blocks,
}

/// How trials are made from factors.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Design {
    /// How often each cell runs.
    pub repetitions: u32,
    /// The order.
    pub order: Order,
    /// Seed of the shuffles.
    pub seed: u64,
}

/// One thing done on some domains, side by side.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Step {
    /// What people see: the file's `name`, or the action in a few words.
    pub name: String,
    /// Domains it is done on.
    pub on: Vec<Name>,
    /// What is done.
    pub action: StepAction,
    /// When it is given up, counted on the guest.
    pub timeout: Seconds,
}

/// What a step does. Texts are Tera templates over the trial's context.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum StepAction {
    /// Runs a shell command; fails when it does not exit with 0.
    Run {
        /// The command.
        command: String,
    },
    /// Renders a template into a file on the guest.
    Template {
        /// Template, relative to the template directory.
        template: String,
        /// Absolute path on the guest.
        to: String,
        /// Permission bits.
        mode: u32,
        /// Values the template sees as `vars`; texts in it are templates themselves.
        vars: serde_json::Map<String, serde_json::Value>,
    },
    /// Copies a file to the guest as it is.
    Copy {
        /// File, relative to the playbook.
        from: String,
        /// Absolute path on the guest.
        to: String,
        /// Permission bits.
        mode: u32,
    },
    /// Starts, stops or restarts a service.
    Service {
        /// What to do.
        verb: ServiceVerb,
        /// The service.
        service: String,
    },
    /// Waits until something holds.
    Wait {
        /// What must hold.
        until: WaitFor,
    },
    /// The measured workload; started at most once an attempt.
    Load {
        /// The command.
        command: String,
        /// Which adapter reads its output.
        adapter: String,
        /// How long it should take; estimates use it.
        expect: Seconds,
    },
}

/// What to do to a service.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ServiceVerb {
    /// Start it.
    Start,
    /// Stop it.
    Stop,
    /// Stop and start it.
    Restart,
}

impl fmt::Display for ServiceVerb {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Start => "start",
            Self::Stop => "stop",
            Self::Restart => "restart",
        })
    }
}

/// What a wait step waits for, on the guest it runs on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum WaitFor {
    /// A TCP port of the guest accepts.
    Port(u16),
    /// A shell command exits with 0.
    Command(String),
}
