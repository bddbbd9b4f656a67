//! Observed and wanted to ordered actions: pure, so that `labrig plan` is the dry run of
//! `labrig up`.
//!
//! This module decides everything and does nothing; it reads no clock, no file, no host.

mod action;
mod budget;
mod changes;
mod desired;
mod planner;

pub use action::{Action, ActionKind, Plan};
pub use budget::check_budget;
pub use changes::{Change, Effect, changes};
pub use desired::{Desired, DesiredDisk, DesiredDomain, DesiredImage, DesiredNetwork, GuestFiles};
pub use planner::{plan, removal};
