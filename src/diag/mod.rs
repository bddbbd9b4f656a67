//! Notes: what is wrong with an input, where, and what to do about it.

mod note;
mod place;

pub use note::{Label, Note, Notes, Severity};
pub use place::Place;
