//! Executes plans and trials, emits events. It decides nothing: what it does is in the plan.
//!
//! It knows the outside world by `ports` alone, never by `backend`, and it never prints.

mod apply;
mod bus;
mod cancel;
mod ready;
#[cfg(test)]
mod testing;

pub use apply::{Applier, ApplyError};
pub use bus::Bus;
pub use cancel::{Cancel, Cancelled};
