//! The image store and the builders of images: read-only disks, kernels and initial RAM disks,
//! known by the digest of their content.

mod apt;
#[cfg(test)]
mod boot_tests;
mod builder;
mod cpio;
mod debian;
mod import;
mod initrd;
mod link;
mod manifest;
mod micro;
mod modules;
mod packages;
mod rootfs;
mod store;

// By the name the builders know it by: their source is their version, and a change of it makes
// every image anew.
use super::namespaces as namespace;

pub use link::link;
pub use store::{Store, StoredImage};
