//! The wish to stop.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use tokio::sync::Notify;

use crate::ports::Clock;

/// How long a blocking wait may take to notice that it was cancelled.
const NOTICE: Duration = Duration::from_millis(100);

/// The wish to stop, made once and for good. Clones share it.
#[derive(Debug, Clone, Default)]
pub struct Cancel(Arc<Inner>);

#[derive(Debug, Default)]
struct Inner {
    flag: AtomicBool,
    notify: Notify,
}

/// The user asked to stop.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("stopped on request")]
pub struct Cancelled;

impl Cancel {
    /// Asks everyone to stop.
    pub fn cancel(&self) {
        self.0.flag.store(true, Ordering::SeqCst);
        self.0.notify.notify_waiters();
    }

    /// Whether someone asked to stop.
    pub fn is_cancelled(&self) -> bool {
        self.0.flag.load(Ordering::SeqCst)
    }

    /// Fails when someone asked to stop.
    ///
    /// # Errors
    /// [`Cancelled`].
    pub fn check(&self) -> Result<(), Cancelled> {
        if self.is_cancelled() {
            Err(Cancelled)
        } else {
            Ok(())
        }
    }

    /// Returns as soon as someone asks to stop.
    pub async fn cancelled(&self) {
        let notified = self.0.notify.notified();
        tokio::pin!(notified);
        // Listen first, then look: a wish in between is not missed.
        notified.as_mut().enable();
        if !self.is_cancelled() {
            notified.await;
        }
    }

    /// Sleeps on this thread, but no longer than until someone asks to stop.
    ///
    /// # Errors
    /// [`Cancelled`].
    pub fn sleep(&self, clock: &dyn Clock, span: Duration) -> Result<(), Cancelled> {
        let end = clock.monotonic() + span;
        loop {
            self.check()?;
            let left = end.saturating_duration_since(clock.monotonic());
            if left.is_zero() {
                return Ok(());
            }
            clock.sleep(left.min(NOTICE));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::testing::FastClock;

    #[tokio::test]
    async fn wakes_who_waits_and_who_comes_late() {
        let cancel = Cancel::default();
        let waiting = tokio::spawn({
            let cancel = cancel.clone();
            async move { cancel.cancelled().await }
        });
        tokio::task::yield_now().await;
        assert_eq!(cancel.check(), Ok(()));
        cancel.cancel();
        waiting.await.unwrap();
        cancel.cancelled().await;
        assert_eq!(
            cancel.sleep(&*FastClock::new(), Duration::from_secs(3600)),
            Err(Cancelled)
        );
    }
}
