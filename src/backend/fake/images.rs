//! Images without content.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::{Faults, Operation};
use crate::model::{Digest, Image, ImageRecipe, ImageSource};
use crate::ports::{ImageFiles, ImageStore, PortError};

/// A store that has every image at once. For tests.
pub struct FakeImages {
    faults: Arc<Faults>,
}

impl FakeImages {
    /// The store.
    pub fn new(faults: Arc<Faults>) -> Self {
        Self { faults }
    }
}

impl ImageStore for FakeImages {
    fn find(&self, _: Digest) -> Result<Option<ImageFiles>, PortError> {
        Ok(None)
    }

    fn ensure(
        &self,
        image: &Image,
        progress: &(dyn Fn(&str) + Sync),
    ) -> Result<ImageFiles, PortError> {
        self.faults
            .call(Operation::EnsureImage, &image.key.to_string(), || {
                progress("made up");
                let directory = Path::new("/store").join(image.key.short(16));
                let file = |held: bool, name: &str| held.then(|| directory.join(name));
                let (disk, kernel, initrd) = holds(&image.source);
                Ok(ImageFiles {
                    digest: image.key,
                    disk: file(disk, "disk.qcow2"),
                    kernel: file(kernel, "vmlinuz"),
                    initrd: file(initrd, "initrd"),
                    packages: Vec::new(),
                })
            })
    }
}

/// Whether an image has a disk, a kernel, an initial RAM disk.
fn holds(source: &ImageSource) -> (bool, bool, bool) {
    let is_there = |path: &Option<PathBuf>| path.is_some();
    match source {
        ImageSource::Build(ImageRecipe::Debian { .. }) => (true, true, true),
        ImageSource::Build(ImageRecipe::Micro { .. }) => (false, true, true),
        ImageSource::Path {
            disk,
            kernel,
            initrd,
        } => (is_there(disk), is_there(kernel), is_there(initrd)),
    }
}
