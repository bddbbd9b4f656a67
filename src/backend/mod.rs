//! The outside world for real: libvirt, SSH, the embedded host, images, the machine itself.
//!
//! Each part implements a trait of `ports` or answers a question of `cli`; none knows the engine.

mod clock;
pub mod embedded;
mod lab_journal;
pub mod libvirt;
pub mod ssh;

pub use clock::SystemClock;
pub use lab_journal::LabJournal;
pub mod host;
pub mod images;
pub mod probe;
