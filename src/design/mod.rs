//! From a playbook to its trials: which, in what order, and how long they take.

mod estimate;
mod trials;

pub use estimate::estimate;
pub use trials::trials;
