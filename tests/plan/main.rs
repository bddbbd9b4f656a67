//! Plans and their execution, on hosts in memory: from every half-built world to the one that is
//! wanted, and to nothing.

#![allow(clippy::unwrap_used, reason = "a test may fail")]

mod changes;
mod faults;
mod host;
mod network;
mod order;
mod placement;
mod properties;
mod snapshots;
mod worlds;
