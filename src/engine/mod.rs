//! Carries out what was decided: runs experiments on guests, tells what happens, can be stopped.
//!
//! The engine sees the outside world through `ports` only, never prints, and reports through the
//! [`Bus`]; terminal, JSON output and archive are equal listeners.

mod bus;
mod cancel;
mod error;
mod experiment;
mod guest;
mod steps;
#[cfg(test)]
mod testing;
mod trial;
mod unit;

pub use bus::Bus;
pub use cancel::{Cancel, Cancelled};
pub use error::EngineError;
pub use experiment::{Experiment, FailedTrial, Summary, World, run};
pub use steps::{Content, RenderError, ResolvedStep, StepRenderer};
