//! The outside world as traits: what the engine asks of a hypervisor, of guests, of the image
//! store and of time. Only the calls that are used; every one may block, none may panic.

mod attempts;
mod clock;
mod error;
mod hypervisor;
mod images;
mod journal;
mod remote;

pub use attempts::{Attempt, Attempts};
pub use clock::Clock;
pub use error::{ErrorKind, PortError, chain};
pub use hypervisor::Hypervisor;
pub use images::{ImageFiles, ImageStore, Package};
pub use journal::Journal;
pub use remote::{Exit, Output, Remote, Target};
