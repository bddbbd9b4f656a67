//! Carries out what was decided: plans and experiments. It decides nothing itself.
//!
//! It knows the outside world by `ports` alone, never by `backend`, and never prints: what happens
//! goes to the [`Bus`], where terminal, JSON output and archive are equal listeners.

mod apply;
mod bus;
mod cancel;
mod error;
mod experiment;
mod guest;
mod images;
mod machines;
mod ready;
mod steps;
mod template_renderer;
#[cfg(test)]
mod testing;
mod trial;
mod unit;

pub use apply::{Applier, ApplyError};
pub use bus::Bus;
pub use cancel::{Cancel, Cancelled};
pub use error::EngineError;
pub use experiment::{Experiment, FailedTrial, Summary, World, run};
pub use images::provide;
pub use machines::{clear_machine, observe_machine};
pub use steps::{Content, RenderError, ResolvedStep, StepRenderer};
pub use template_renderer::TemplateRenderer;
