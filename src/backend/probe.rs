//! temporary
use crate::model::*;
use std::path::Path;
/// x
pub struct Verdict {
    /// x
    pub acceleration: Acceleration,
    /// x
    pub reason: String,
}
/// x
pub fn acceleration(_: &Path, _: &Path, _: Option<&Path>) -> Verdict {
    Verdict {
        acceleration: Acceleration::Emulation,
        reason: "stub".into(),
    }
}
