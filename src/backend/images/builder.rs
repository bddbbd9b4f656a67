//! What makes an image from a recipe.

use std::io;
use std::path::{Path, PathBuf};

use super::additions::Additions;
use super::debian::{self, Debian};
use super::micro;
use crate::backend::files;
use crate::backend::tool::ToolError;
use crate::model::{Bytes, Digest, Digester, ImageRecipe};
use crate::ports::{ErrorKind, Package, PortError};

/// What was built, in the directory it was built in.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Built {
    /// qcow2 disk.
    pub disk: Option<PathBuf>,
    /// Kernel.
    pub kernel: Option<PathBuf>,
    /// Initial RAM disk.
    pub initrd: Option<PathBuf>,
    /// The root filesystem, packed: what a layer starts from.
    pub tree: Option<PathBuf>,
    /// Packages in it, sorted.
    pub packages: Vec<Package>,
}

/// Why an image could not be built.
#[derive(Debug, thiserror::Error)]
pub enum BuildError {
    /// A program failed.
    #[error(transparent)]
    Tool(#[from] ToolError),
    /// The release has no package of that name.
    #[error("{suite} has no package {package}")]
    NoPackage {
        /// The release.
        suite: String,
        /// The package.
        package: String,
    },
    /// A command of the recipe failed.
    #[error("the command {command:?} failed")]
    Command {
        /// The command, as far as it is one line.
        command: String,
        /// What it said.
        source: ToolError,
    },
    /// A file that goes in is not what it was.
    #[error("{} was changed since the topology was read", .0.display())]
    Changed(PathBuf),
    /// A file failed, or a part is missing from the packages.
    #[error(transparent)]
    Io(#[from] io::Error),
}

impl From<BuildError> for PortError {
    fn from(error: BuildError) -> Self {
        match error {
            BuildError::Tool(error) => {
                let error = Self::from(error);
                let hint = "`labrig host doctor` says what this machine lacks for building images";
                if error.hint.is_some() {
                    error
                } else {
                    error.hint(hint)
                }
            }
            BuildError::NoPackage { .. } => Self::new(ErrorKind::Fatal, "fetch the packages")
                .because(error)
                .hint("check the name; packages come from the release's main archive"),
            BuildError::Command { .. } => Self::new(ErrorKind::Fatal, "run the recipe's commands")
                .because(error)
                .hint("commands run as root in the image, by sh -e, with no daemon running"),
            BuildError::Changed(_) => {
                Self::new(ErrorKind::Fatal, "put the image's files in").because(error)
            }
            BuildError::Io(error) => {
                Self::new(ErrorKind::Fatal, "put the image together").because(error)
            }
        }
    }
}

/// A maker of images.
pub trait Builder: Send + Sync {
    /// Changes whenever the maker may make something else of the same recipe.
    fn fingerprint(&self) -> Digest;

    /// Free disk space that a build takes.
    fn space(&self, recipe: &ImageRecipe) -> Bytes;

    /// Builds into an empty directory. `base` is the directory in the store of the image below, if the
    /// recipe has one.
    ///
    /// # Errors
    /// When a program or a file fails.
    fn build(
        &self,
        recipe: &ImageRecipe,
        base: Option<&Path>,
        directory: &Path,
        progress: &(dyn Fn(&str) + Sync),
    ) -> Result<Built, BuildError>;

    /// Removes a build directory, whatever state it is in; one that is not there is removed.
    ///
    /// # Errors
    /// When something stays.
    fn discard(&self, directory: &Path) -> Result<(), BuildError>;
}

/// The maker of Debian and micro images.
pub struct DebianBuilder;

impl Builder for DebianBuilder {
    fn fingerprint(&self) -> Digest {
        // The source itself is the version: nobody has to remember to raise a number.
        let mut digester = [
            include_str!("additions.rs"),
            include_str!("cpio.rs"),
            include_str!("debian.rs"),
            include_str!("initrd.rs"),
            include_str!("micro.rs"),
            include_str!("modules.rs"),
            include_str!("packages.rs"),
            debian::PACK,
        ]
        .iter()
        .fold(Digester::default(), Digester::field);
        let assets = micro::ASSETS
            .iter()
            .chain(&debian::DISK_ASSETS)
            .chain(&debian::INITRD_ASSETS);
        for (path, mode, content) in assets {
            digester = digester
                .field(path)
                .field(mode.to_be_bytes())
                .field(content);
        }
        digester.finish()
    }

    fn space(&self, recipe: &ImageRecipe) -> Bytes {
        if recipe.is_micro() {
            Bytes::mib(512)
        } else {
            Bytes::mib(4096)
        }
    }

    fn build(
        &self,
        recipe: &ImageRecipe,
        base: Option<&Path>,
        directory: &Path,
        progress: &(dyn Fn(&str) + Sync),
    ) -> Result<Built, BuildError> {
        match recipe {
            ImageRecipe::Micro { suite, files } => micro::build(suite, files, directory, progress),
            ImageRecipe::Layer { files, .. } if recipe.is_micro() => {
                micro::build_layer(base, files, directory)
            }
            ImageRecipe::Debian {
                packages,
                files,
                run,
                ..
            } => Debian {
                recipe,
                base: None,
                packages,
                additions: Additions {
                    packages: &[],
                    files,
                    run,
                },
            }
            .build(directory, progress),
            ImageRecipe::Layer {
                packages,
                files,
                run,
                ..
            } => Debian {
                recipe,
                base,
                packages: &[],
                additions: Additions {
                    packages,
                    files,
                    run,
                },
            }
            .build(directory, progress),
        }
    }

    fn discard(&self, directory: &Path) -> Result<(), BuildError> {
        Ok(files::remove_tree(directory)?)
    }
}
