//! Observed and wanted to ordered actions: pure, so that `labrig plan` is the dry run of
//! `labrig up`.
//!
//! This module decides everything and does nothing; it reads no clock, no file, no host.

mod action;
mod budget;
mod changes;
mod desired;
mod network;
mod planner;
mod platform;
mod ram_disks;
mod shares;

pub use action::{Action, ActionKind, Plan};
pub use budget::check_budget;
pub use changes::{Change, Effect, changes};
pub use desired::{
    Desired, DesiredDisk, DesiredDomain, DesiredImage, DesiredNetwork, DesiredPort, GuestFiles,
};
pub use network::{check_network, needs_network_facts, without_optional};
pub use planner::{plan, removal};
pub use platform::check_platform;
pub use ram_disks::{check_ram_disks, ram_disks};
pub use shares::{DomainShare, NodeShare, Shares};
