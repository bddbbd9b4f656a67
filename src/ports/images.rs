//! Where images are kept.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use super::PortError;
use crate::model::{Digest, Image};

/// A distribution package in an image.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Package {
    /// Its name.
    pub name: String,
    /// Its version.
    pub version: String,
}

/// An image in the store.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ImageFiles {
    /// Digest of the content: disk, kernel and initial RAM disk.
    pub digest: Digest,
    /// qcow2 disk, read-only.
    pub disk: Option<PathBuf>,
    /// Kernel for direct boot.
    pub kernel: Option<PathBuf>,
    /// Initial RAM disk for direct boot.
    pub initrd: Option<PathBuf>,
    /// Packages in it, sorted; empty when it was not built by labrig.
    pub packages: Vec<Package>,
}

/// A store of read-only images.
pub trait ImageStore: Send + Sync {
    /// Finds an image.
    fn find(&self, key: Digest) -> Result<Option<ImageFiles>, PortError>;

    /// Finds an image, or builds or imports it. Safe against other processes that do the same;
    /// nothing half made is ever found. `progress` hears what is being done.
    fn ensure(
        &self,
        image: &Image,
        progress: &(dyn Fn(&str) + Sync),
    ) -> Result<ImageFiles, PortError>;
}
