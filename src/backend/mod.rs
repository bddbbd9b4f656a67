//! The outside world for real: image store, host facts and probes, libvirt, SSH.

pub mod images;

mod tool;
