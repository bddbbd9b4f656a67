//! Where the engine says what happens.

use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};

use jiff::Timestamp;

use crate::model::Event;
use crate::ports::Clock;

/// The near end of a listener's channel.
type Listener = Sender<(Timestamp, Event)>;

/// Passes events on to everyone who listens, each stamped with its time. Clones share listeners.
///
/// Sending never blocks: a listener that is slow or gone cannot hold up a measurement.
#[derive(Clone)]
pub struct Bus {
    clock: Arc<dyn Clock>,
    listeners: Arc<Mutex<Vec<Listener>>>,
}

impl Bus {
    /// A bus without listeners.
    pub fn new(clock: Arc<dyn Clock>) -> Self {
        Self {
            clock,
            listeners: Arc::default(),
        }
    }

    /// A listener that hears all events from now on; its channel ends with the last clone of the bus.
    pub fn subscribe(&self) -> Receiver<(Timestamp, Event)> {
        let (sender, receiver) = channel();
        self.listeners
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .push(sender);
        receiver
    }

    /// Lets all listeners go: their channels end, though clones of the bus may live on in work that
    /// was left behind.
    pub fn close(&self) {
        self.listeners
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clear();
    }

    /// Tells everyone what happened just now.
    pub fn send(&self, event: &Event) {
        let now = self.clock.now();
        tracing::debug!(?event);
        let mut listeners = self
            .listeners
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        listeners.retain(|listener| listener.send((now, event.clone())).is_ok());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::testing::FastClock;

    #[test]
    fn all_listeners_hear_all_and_the_gone_are_forgotten() {
        let bus = Bus::new(FastClock::new());
        let (first, second) = (bus.subscribe(), bus.subscribe());
        bus.clone().send(&Event::PlanStarted { actions: 1 });
        drop(first);
        bus.send(&Event::PlanDone { seconds: 1.0 });
        bus.close();
        bus.send(&Event::PlanDone { seconds: 2.0 });
        let heard: Vec<_> = second.iter().map(|(_, event)| event).collect();
        assert_eq!(
            heard,
            [
                Event::PlanStarted { actions: 1 },
                Event::PlanDone { seconds: 1.0 }
            ]
        );
    }
}
