//! Why the engine gave up.

use super::cancel::Cancelled;
use super::steps::RenderError;
use crate::model::Name;
use crate::ports::PortError;

/// Why a run ended before all its trials were done. The run can be resumed after each of these.
#[derive(Debug, thiserror::Error)]
pub enum EngineError {
    /// The user asked to stop.
    #[error(transparent)]
    Cancelled(#[from] Cancelled),
    /// A guest does not answer, between trials, for longer than a lost connection takes to come back.
    #[error("reach {domain}")]
    Guest {
        /// Which.
        domain: Name,
        /// Why.
        #[source]
        source: PortError,
    },
    /// Something of an earlier trial runs on and cannot be ended.
    #[error("make {domain} quiet: {left} will not end")]
    NotQuiet {
        /// Where.
        domain: Name,
        /// Process numbers and names.
        left: String,
    },
    /// A guest was started anew after the setup, so that what the setup did may be gone.
    #[error("go on with {domain}: it was started anew since the setup; resume to set it up again")]
    Rebooted {
        /// Which.
        domain: Name,
    },
    /// A step of the setup failed.
    #[error("set up: {step}: {message}")]
    Setup {
        /// Which step.
        step: String,
        /// What went wrong.
        message: String,
    },
    /// A step's text could not be rendered.
    #[error("render step {step} for {domain}")]
    Render {
        /// Which step.
        step: String,
        /// For which domain.
        domain: Name,
        /// Why.
        #[source]
        source: RenderError,
    },
    /// A step names a domain that no address is known of.
    #[error("find the address of {0}")]
    NoTarget(Name),
    /// What came of it could not be put away.
    #[error("write to the archive")]
    Archive(#[source] PortError),
    /// A thread of ours panicked.
    #[error("run a task of the engine")]
    Task(#[from] tokio::task::JoinError),
}
