//! labrig holds a whole performance lab in one file, brings it up, runs an experiment on it, and
//! runs that same experiment again next year.
//!
//! The crate is layered; `ARCHITECTURE.md` draws the picture and `tests/layering.rs` enforces it.

pub mod adapters;
pub mod analyse;
pub mod archive;
pub mod backend;
pub mod cli;
pub mod databases;
pub mod design;
pub mod diag;
pub mod engine;
pub mod input;
pub mod model;
pub mod plan;
pub mod ports;
pub mod render;
pub mod report;
pub mod stats;
