//! The outside world for real: libvirt, SSH, the embedded host, images, the machine itself.
//!
//! Each part implements a trait of `ports` or answers a question of `cli`; none knows the engine.

mod clock;
pub mod disks;
pub mod doctor;
pub mod embedded;
pub mod fake;
mod files;
pub mod host;
pub mod host_shape;
pub mod images;
mod lab_journal;
pub mod libvirt;
mod namespaces;
mod network_facts;
pub mod platform;
pub mod probe;
pub mod ram;
pub mod ssh;
mod tool;
pub mod traffic;

pub use clock::SystemClock;
pub use files::remove_tree;
pub use lab_journal::LabJournal;
pub use network_facts::network_facts;
