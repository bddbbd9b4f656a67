//! The outside world for real: libvirt, SSH, the embedded host, images, the machine itself.

pub mod embedded;
pub mod libvirt;
pub mod ssh;
