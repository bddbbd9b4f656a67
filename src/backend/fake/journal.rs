//! A journal in memory.

use std::sync::{Arc, Mutex, PoisonError};

use super::{Faults, Operation};
use crate::ports::{Journal, PortError};

/// A journal that can be read. For tests.
pub struct FakeJournal {
    lines: Mutex<Vec<String>>,
    faults: Arc<Faults>,
}

impl FakeJournal {
    /// An empty journal.
    pub fn new(faults: Arc<Faults>) -> Self {
        Self {
            lines: Mutex::default(),
            faults,
        }
    }

    /// Titles of all that was about to be done, in order.
    pub fn lines(&self) -> Vec<String> {
        let lines = self.lines.lock().unwrap_or_else(PoisonError::into_inner);
        lines.clone()
    }
}

impl Journal for FakeJournal {
    fn intend(&self, title: &str, _: &str) -> Result<(), PortError> {
        self.faults.call(Operation::Intend, title, || {
            let mut lines = self.lines.lock().unwrap_or_else(PoisonError::into_inner);
            lines.push(title.to_owned());
            Ok(())
        })
    }
}
