//! Takes existing files into the store.

use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::Deserialize;

use super::builder::{BuildError, Built};
use crate::backend::tool::{Tool, ToolError};
use crate::model::{Digest, Image};
use crate::ports::{ErrorKind, PortError};

/// Longest time to convert a disk.
const CONVERT_LIMIT: Duration = Duration::from_secs(30 * 60);

/// Files to import.
#[derive(Debug, Clone, Copy)]
pub struct Paths<'a> {
    /// qcow2 or raw disk.
    pub disk: Option<&'a PathBuf>,
    /// Kernel.
    pub kernel: Option<&'a PathBuf>,
    /// Initial RAM disk.
    pub initrd: Option<&'a PathBuf>,
}

/// Why files are not an image.
#[derive(Debug, thiserror::Error)]
pub enum ImportError {
    /// A program or file failed.
    #[error(transparent)]
    Build(#[from] BuildError),
    /// The files are not those that the key was made of.
    #[error("the files were changed since the topology was read")]
    Changed,
    /// The disk refers to another file.
    #[error("the disk {disk} depends on another file, {on}")]
    Dependent {
        /// The disk.
        disk: PathBuf,
        /// What it depends on.
        on: String,
    },
    /// The disk is packed.
    #[error("the disk {disk} is compressed, by {by}")]
    Compressed {
        /// The disk.
        disk: PathBuf,
        /// The program that unpacks it.
        by: &'static str,
    },
    /// The disk has a format that is not taken.
    #[error("the disk {disk} has format {format}; qcow2 and raw are taken")]
    Format {
        /// The disk.
        disk: PathBuf,
        /// Its format.
        format: String,
    },
}

impl From<io::Error> for ImportError {
    fn from(error: io::Error) -> Self {
        Self::Build(error.into())
    }
}

impl From<ToolError> for ImportError {
    fn from(error: ToolError) -> Self {
        Self::Build(error.into())
    }
}

impl From<ImportError> for PortError {
    fn from(error: ImportError) -> Self {
        let hint = match &error {
            ImportError::Build(_) => None,
            ImportError::Changed => Some("run the command again"),
            ImportError::Dependent { .. } => {
                Some("make one file of it with `qemu-img convert -O qcow2`")
            }
            ImportError::Compressed { .. } => {
                Some("unpack it: the digest is then that of what was in it")
            }
            ImportError::Format { .. } => Some("convert it with `qemu-img convert -O qcow2`"),
        };
        let port = Self::new(ErrorKind::Fatal, "import the image").because(error);
        match hint {
            Some(hint) => port.hint(hint),
            None => port,
        }
    }
}

/// The part of `qemu-img info` that matters.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "kebab-case")]
struct Info {
    format: String,
    backing_filename: Option<String>,
    format_specific: Option<Specific>,
}

#[derive(Debug, Deserialize)]
struct Specific {
    data: Option<SpecificData>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "kebab-case")]
struct SpecificData {
    data_file: Option<String>,
}

/// Copies files into a directory and makes sure that they are an image by themselves.
///
/// # Errors
/// When they are not, or no longer the ones that `key` was made of.
pub fn import(key: Digest, from: Paths<'_>, directory: &Path) -> Result<Built, ImportError> {
    let copy = |from: Option<&PathBuf>, name: &str| -> io::Result<Option<(PathBuf, Digest)>> {
        let Some(from) = from else { return Ok(None) };
        let to = directory.join(name);
        // Shares blocks where the filesystem can.
        fs_err::copy(from, &to)?;
        let digest = Digest::of_reader(fs_err::File::open(&to)?)?;
        Ok(Some((to, digest)))
    };
    // The copies are looked at, not the originals, which may change under our hands.
    let disk = copy(from.disk, "original")?;
    let kernel = copy(from.kernel, "vmlinuz")?;
    let initrd = copy(from.initrd, "initrd")?;
    let digest = |part: &Option<(PathBuf, Digest)>| part.as_ref().map(|(_, digest)| *digest);
    if Image::path_key(digest(&disk), digest(&kernel), digest(&initrd)) != key {
        return Err(ImportError::Changed);
    }
    let disk = match (disk, from.disk) {
        (Some((copy, _)), Some(named)) => Some(as_qcow2(copy, named, directory)?),
        _ => None,
    };
    Ok(Built {
        disk,
        kernel: kernel.map(|k| k.0),
        initrd: initrd.map(|i| i.0),
        ..Built::default()
    })
}

/// A qcow2 disk that stands alone is taken as it is, a raw one is converted.
fn as_qcow2(copy: PathBuf, named: &Path, directory: &Path) -> Result<PathBuf, ImportError> {
    let report = Tool::new("qemu-img")
        .args(["info", "--output=json"])
        .arg(&copy)
        .run()?;
    let info: Info = serde_json::from_slice(&report).map_err(io::Error::other)?;
    let data_file = info
        .format_specific
        .and_then(|s| s.data)
        .and_then(|d| d.data_file);
    if let Some(on) = info.backing_filename.or(data_file) {
        return Err(ImportError::Dependent {
            disk: named.to_owned(),
            on,
        });
    }
    match info.format.as_str() {
        "qcow2" => Ok(copy),
        "raw" => {
            if let Some(by) = compression(&copy)? {
                let disk = named.to_owned();
                return Err(ImportError::Compressed { disk, by });
            }
            let converted = directory.join("disk.qcow2");
            to_qcow2(&copy, &converted)?;
            fs_err::remove_file(copy)?;
            Ok(converted)
        }
        _ => Err(ImportError::Format {
            disk: named.to_owned(),
            format: info.format,
        }),
    }
}

/// What a file is compressed by, by how it begins: to QEMU all that is a raw disk.
fn compression(path: &Path) -> io::Result<Option<&'static str>> {
    const STARTS: [(&[u8], &str); 5] = [
        (b"\x1f\x8b", "gzip"),
        (b"\xfd7zXZ\0", "xz"),
        (b"\x28\xb5\x2f\xfd", "zstd"),
        (b"BZh", "bzip2"),
        (b"PK\x03\x04", "zip"),
    ];
    let mut start = Vec::new();
    fs_err::File::open(path)?.take(6).read_to_end(&mut start)?;
    let found = STARTS.iter().find(|(bytes, _)| start.starts_with(bytes));
    Ok(found.map(|(_, by)| *by))
}

/// Converts a raw disk; holes stay holes.
///
/// # Errors
/// When qemu-img fails.
pub fn to_qcow2(raw: &Path, qcow2: &Path) -> Result<(), ToolError> {
    Tool::new("qemu-img")
        .args(["convert", "-f", "raw", "-O", "qcow2"])
        .args([raw, qcow2])
        .limit(CONVERT_LIMIT)
        .run()
        .map(drop)
}
