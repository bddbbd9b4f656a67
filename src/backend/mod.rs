//! The outside world for real: libvirt, SSH, the embedded host, images, the machine itself.
//!
//! Each part implements a trait of `ports` or answers a question of `cli`; none knows the engine.

mod clock;
pub mod doctor;
pub mod embedded;
pub mod fake;
mod files;
pub mod host;
pub mod images;
mod lab_journal;
pub mod libvirt;
pub mod machine;
mod namespaces;
pub mod probe;
pub mod ssh;
mod tool;

pub use clock::SystemClock;
pub use files::remove_tree;
pub use lab_journal::LabJournal;
