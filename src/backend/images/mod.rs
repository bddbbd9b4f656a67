//! The image store and the builders of images: read-only disks, kernels and initial RAM disks,
//! known by the digest of their content.

mod apt;
mod builder;
mod cpio;
mod import;
mod manifest;
mod micro;
mod modules;
mod packages;
mod rootfs;
mod store;

pub use store::{Store, StoredImage};
