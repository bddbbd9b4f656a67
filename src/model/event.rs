//! What the engine says while it works; terminal, JSON output and archive listen alike.

use serde::{Deserialize, Serialize};

use super::{Metric, Name};

/// How much a message matters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Level {
    /// Good to know.
    Info,
    /// Should be looked at.
    Warning,
}

/// How far a domain is on its way to ready, in order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Phase {
    /// libvirt runs it.
    Started,
    /// Its SSH port answers with a banner.
    Banner,
    /// labrig is logged in.
    Login,
    /// Its seed was taken and its boot is done.
    Ready,
}

/// One thing that happened.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "snake_case")]
pub enum Event {
    /// A plan begins.
    PlanStarted {
        /// How many actions it has.
        actions: usize,
    },
    /// An action of a plan begins.
    ActionStarted {
        /// Its index in the plan.
        action: usize,
        /// What it does, as in `start domain db`.
        title: String,
        /// Why.
        reason: String,
        /// The domain it belongs to, if one.
        domain: Option<Name>,
        /// Whether it may take minutes on its own and tells how it goes on.
        #[serde(default)]
        long: bool,
    },
    /// A long action tells what it is doing.
    ActionProgress {
        /// Its index in the plan.
        action: usize,
        /// What it is doing.
        detail: String,
    },
    /// An action is done.
    ActionDone {
        /// Its index in the plan.
        action: usize,
        /// Seconds it took.
        seconds: f64,
    },
    /// An action failed.
    ActionFailed {
        /// Its index in the plan.
        action: usize,
        /// Why, the whole chain.
        error: String,
    },
    /// A domain reached a phase.
    DomainPhase {
        /// Which.
        domain: Name,
        /// How far it is.
        phase: Phase,
        /// Seconds since it was started.
        seconds: f64,
    },
    /// A plan is done.
    PlanDone {
        /// Seconds it took.
        seconds: f64,
    },
    /// A run begins or goes on.
    RunStarted {
        /// Its directory.
        directory: String,
        /// Trials in all.
        trials: usize,
        /// Trials committed before, by an earlier writer.
        done: usize,
    },
    /// A step of the setup or of a trial begins.
    StepStarted {
        /// Trial number; none in setup.
        trial: Option<u32>,
        /// The step's name.
        step: String,
    },
    /// A trial begins.
    TrialStarted {
        /// Its number.
        trial: u32,
        /// Its levels in one line.
        label: String,
        /// Attempt number, from 1.
        attempt: u32,
    },
    /// A trial is committed.
    TrialDone {
        /// Its number.
        trial: u32,
        /// Its levels in one line.
        label: String,
        /// What was measured of the metrics that the playbook asks for.
        metrics: Vec<Metric>,
        /// Why it failed, if it did.
        failure: Option<String>,
        /// Seconds it took.
        seconds: f64,
    },
    /// A run is over.
    RunDone {
        /// Trials with good metrics.
        good: usize,
        /// Trials that failed.
        failed: usize,
    },
    /// Anything else worth saying.
    Message {
        /// How much it matters.
        level: Level,
        /// The text.
        text: String,
    },
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn journals_from_before_long_actions_were_marked_are_read() {
        let line =
            r#"{"event":"action_started","action":1,"title":"t","reason":"r","domain":null}"#;
        let event: Event = serde_json::from_str(line).unwrap();
        assert!(matches!(event, Event::ActionStarted { long: false, .. }));
    }
}
