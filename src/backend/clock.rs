//! The machine's clock.

use std::time::{Duration, Instant};

use jiff::Timestamp;

use crate::ports::Clock;

/// Time as this machine has it.
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    fn now(&self) -> Timestamp {
        Timestamp::now()
    }

    fn monotonic(&self) -> Instant {
        Instant::now()
    }

    fn sleep(&self, span: Duration) {
        std::thread::sleep(span);
    }
}
