//! Time.

use std::time::{Duration, Instant};

use jiff::Timestamp;

/// Time as the engine sees it; tests pass another one.
pub trait Clock: Send + Sync {
    /// Now, UTC.
    fn now(&self) -> Timestamp;

    /// Now, on a clock that never steps.
    fn monotonic(&self) -> Instant;

    /// Sleeps.
    fn sleep(&self, span: Duration);
}
