//! What tests with real guests share: labs that clean up after themselves, commands with a
//! deadline, and processes told apart.

#![allow(
    dead_code,
    reason = "every test binary has its own copy and uses a part"
)]
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test may fail")]

mod command;
mod lab;
mod processes;

pub use command::{Ended, Running};
pub use lab::Lab;
pub use processes::Process;

use std::time::{Duration, Instant};

/// Waits until something holds; fails with `what` when it does not come true in a minute.
#[track_caller]
pub fn until(what: &str, mut holds: impl FnMut() -> bool) {
    let began = Instant::now();
    while !holds() {
        assert!(
            began.elapsed() < Duration::from_secs(60),
            "waited a minute for: {what}"
        );
        std::thread::sleep(Duration::from_millis(20));
    }
}
