//! `image.json`: what an image in the store holds, and how to tell cheaply that it still does.

use std::collections::BTreeMap;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use fs_err::File;
use serde::{Deserialize, Serialize};

use crate::model::{Digest, Digester, ImageRecipe};
use crate::ports::{ImageFiles, Package};

/// File name of the manifest in an image's directory.
pub const FILE_NAME: &str = "image.json";
/// Version of the manifest's form.
const FORMAT: u32 = 1;

/// What a part of an image is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    /// Disk.
    Disk,
    /// Kernel.
    Kernel,
    /// Initial RAM disk.
    Initrd,
    /// The root filesystem, packed: what layers start from.
    Tree,
}

impl Role {
    /// Its file name in the store.
    pub const fn file_name(self) -> &'static str {
        match self {
            Self::Disk => "disk.qcow2",
            Self::Kernel => "vmlinuz",
            Self::Initrd => "initrd",
            Self::Tree => "tree.tar.zst",
        }
    }
}

/// A file's outside: while it is the same, the content is taken to be the same.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stamp {
    size: u64,
    modified_ns: i64,
    inode: u64,
}

impl Stamp {
    /// Reads it off a file.
    ///
    /// # Errors
    /// When the file is not there.
    pub fn of(path: &Path) -> io::Result<Self> {
        let data = fs_err::metadata(path)?;
        let modified_ns = data.mtime() * 1_000_000_000 + data.mtime_nsec();
        Ok(Self {
            size: data.size(),
            modified_ns,
            inode: data.ino(),
        })
    }
}

/// One part of an image.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Part {
    /// Digest of the file.
    pub sha256: Digest,
    /// Its outside when the digest was taken.
    pub stamp: Stamp,
}

impl Part {
    /// Size of the file in bytes.
    pub fn size(&self) -> u64 {
        self.stamp.size
    }

    /// Takes the digest of a file.
    ///
    /// # Errors
    /// When it cannot be read.
    pub fn of(path: &Path) -> io::Result<Self> {
        Ok(Self {
            stamp: Stamp::of(path)?,
            sha256: Digest::of_reader(File::open(path)?)?,
        })
    }
}

/// Why an image in the store is not what it says.
#[derive(Debug, thiserror::Error)]
pub enum DamageError {
    /// The manifest or a part is missing or unreadable.
    #[error("a file of the image cannot be read")]
    Unreadable(#[from] io::Error),
    /// The manifest is not what labrig writes.
    #[error("its {FILE_NAME} cannot be understood")]
    Manifest(#[source] serde_json::Error),
    /// The manifest is of another version of labrig.
    #[error("its {FILE_NAME} has format {0}, known is {FORMAT}")]
    Format(u32),
    /// A part was changed.
    #[error("{file} was changed: its digest is {found}, it was {wanted}")]
    Changed {
        /// The part's file.
        file: &'static str,
        /// The digest of what is there.
        found: Digest,
        /// The digest it had.
        wanted: Digest,
    },
}

/// What an image in the store holds.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Manifest {
    format: u32,
    /// Digest over all parts.
    pub digest: Digest,
    /// The parts.
    pub parts: BTreeMap<Role, Part>,
    /// Packages in it, sorted.
    pub packages: Vec<Package>,
    /// How it was built; none when it was imported.
    pub recipe: Option<ImageRecipe>,
}

impl Manifest {
    /// Describes parts.
    pub fn new(
        parts: BTreeMap<Role, Part>,
        packages: Vec<Package>,
        recipe: Option<ImageRecipe>,
    ) -> Self {
        let digester = parts
            .iter()
            .fold(Digester::default(), |digester, (role, part)| {
                digester.field(role.file_name()).field(part.sha256.bytes())
            });
        Self {
            format: FORMAT,
            digest: digester.finish(),
            parts,
            packages,
            recipe,
        }
    }

    /// Reads the manifest of an image.
    ///
    /// # Errors
    /// When it is missing or not what this labrig writes.
    pub fn read(directory: &Path) -> Result<Self, DamageError> {
        let bytes = fs_err::read(directory.join(FILE_NAME))?;
        let manifest: Self = serde_json::from_slice(&bytes).map_err(DamageError::Manifest)?;
        if manifest.format != FORMAT {
            return Err(DamageError::Format(manifest.format));
        }
        Ok(manifest)
    }

    /// Reads the manifest of an image, and makes sure that the parts are what it says. A part that
    /// looks as it did is taken to be the same, unless `all` are to be read.
    ///
    /// # Errors
    /// When anything is missing or was changed.
    pub fn verified(directory: &Path, all: bool) -> Result<Self, DamageError> {
        let manifest = Self::read(directory)?;
        for (role, part) in &manifest.parts {
            let path = directory.join(role.file_name());
            if !all && Stamp::of(&path)? == part.stamp {
                continue;
            }
            // A store that was copied or restored has other stamps and may be well.
            let found = Part::of(&path)?.sha256;
            if found != part.sha256 {
                return Err(DamageError::Changed {
                    file: role.file_name(),
                    found,
                    wanted: part.sha256,
                });
            }
        }
        Ok(manifest)
    }

    /// The image as others see it.
    pub fn files(&self, directory: &Path) -> ImageFiles {
        let part = |role: Role| {
            self.parts
                .contains_key(&role)
                .then(|| directory.join(role.file_name()))
        };
        ImageFiles {
            digest: self.digest,
            disk: part(Role::Disk),
            kernel: part(Role::Kernel),
            initrd: part(Role::Initrd),
            packages: self.packages.clone(),
        }
    }
}
