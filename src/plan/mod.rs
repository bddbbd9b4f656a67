//! Observed and wanted to ordered actions: pure, so that `labrig plan` is the dry run of
//! `labrig up`.
//!
//! This module decides everything and does nothing; it reads no clock, no file, no host.

mod action;
mod budget;
mod desired;
mod planner;

pub use action::{Action, ActionKind, Plan};
pub use budget::check_budget;
pub use desired::{
    Desired, DesiredDisk, DesiredDomain, DesiredImage, DesiredMachine, DesiredNetwork, GuestFiles,
};
pub use planner::{plan, removal};
