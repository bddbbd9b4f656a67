//! The image store and the builders of images: read-only disks, kernels and initial RAM disks,
//! known by the digest of their content.

mod additions;
mod apt;
#[cfg(test)]
mod boot_tests;
mod builder;
mod cpio;
mod debian;
mod download;
mod import;
mod initrd;
mod inventory;
mod link;
mod manifest;
mod micro;
mod modules;
mod packages;
mod rootfs;
mod store;

pub use inventory::{Collected, Hold, StoredContent};
pub use link::{link, linked};
pub use store::{Store, StoredImage};
