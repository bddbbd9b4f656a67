//! The outside world for real: image store, host facts and probes, libvirt, SSH.

pub mod doctor;
pub mod host;
pub mod images;
pub mod probe;

mod tool;
