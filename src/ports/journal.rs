//! What labrig is about to do to a lab, written down before it is done.

use super::PortError;

/// The lab's journal.
pub trait Journal: Send + Sync {
    /// Writes down that something is about to be done; durable when it returns.
    fn intend(&self, title: &str, reason: &str) -> Result<(), PortError>;
}
