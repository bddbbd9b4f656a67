//! The archive: one directory per run that holds what went in, what was planned, what happened and
//! what came out. It is written as it happens and never overwritten; the format is described in
//! `docs/archive-format.md`.
//!
//! [`RunDir`] creates and reads; [`Writer`] is the one process that adds trials. This module knows
//! nothing of hypervisors, guests or statistics.

mod durable;
mod error;
mod index;
mod inputs;
mod journal;
mod layout;
mod list;
mod lock;
mod manifest;
mod results;
mod run_dir;
#[cfg(test)]
pub(crate) mod testing;
#[cfg(test)]
mod tests;
mod writer;

pub use error::ArchiveError;
pub use inputs::relative_layout;
pub use journal::{Entry, Journal};
pub use list::{RunState, RunSummary, list};
pub use lock::{Difference, DifferenceKind, Lock};
pub use manifest::{DerivedFrom, Format, Manifest, Tool};
pub use results::{Cell, OtherUnit, Results};
pub use run_dir::RunDir;
pub use writer::Writer;
