//! Images without content.

use std::path::Path;
use std::sync::Arc;

use super::{Faults, Operation};
use crate::model::{Digest, Image};
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
                let holds = image.source.holds();
                Ok(ImageFiles {
                    digest: image.key,
                    disk: file(holds.disk, "disk.qcow2"),
                    kernel: file(holds.kernel, "vmlinuz"),
                    initrd: file(holds.initrd, "initrd"),
                    packages: Vec::new(),
                })
            })
    }
}
