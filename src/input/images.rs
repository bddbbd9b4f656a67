//! Images: which files or recipes they are made of, and the key the store finds them by.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use super::read::{Doc, Written};
use super::topology::{ImageSourceSpec, ImageSpec, PathSpec};
use crate::model::{Bytes, Digest, Image, ImageRecipe, ImageSource};

/// An image that was looked at.
pub(super) struct Found {
    /// None when a note says why.
    pub image: Option<Image>,
    /// Whether it has a disk.
    pub has_disk: bool,
    /// Virtual size of the disk, where it is known.
    pub size: Option<Bytes>,
}

/// Looks at an image. Its files are digested only when it is `used`: they may be large.
pub(super) fn find(
    doc: &Doc,
    spec: &ImageSpec,
    used: bool,
    known: &BTreeMap<PathBuf, Digest>,
) -> Found {
    match &spec.source {
        None => Found {
            image: None,
            has_disk: true,
            size: None,
        },
        Some(ImageSourceSpec::Build { recipe, .. }) => {
            let size = match recipe {
                ImageRecipe::Debian { size, .. } => Some(*size),
                ImageRecipe::Micro { .. } => None,
            };
            let source = ImageSource::Build(recipe.clone());
            let image = Some(Image {
                source,
                key: recipe.key(),
            });
            Found {
                image,
                has_disk: size.is_some(),
                size,
            }
        }
        Some(ImageSourceSpec::Path(spec)) => from_files(doc, spec, used, known),
    }
}

fn from_files(doc: &Doc, spec: &PathSpec, used: bool, known: &BTreeMap<PathBuf, Digest>) -> Found {
    let resolve = |w: &Option<Written<PathBuf>>| w.as_ref().map(|w| doc.beside(w));
    let (disk, kernel, initrd) = (
        resolve(&spec.disk),
        resolve(&spec.kernel),
        resolve(&spec.initrd),
    );
    let has_disk = disk.is_some();
    let source = |disk, kernel, initrd| ImageSource::Path {
        disk,
        kernel,
        initrd,
    };

    if let Some(primary) = disk.as_ref().or(kernel.as_ref())
        && let Some(&key) = known.get(primary)
        && !primary.exists()
    {
        let image = Some(Image {
            source: source(disk, kernel, initrd),
            key,
        });
        return Found {
            image,
            has_disk,
            size: None,
        };
    }

    let parts = [
        (&spec.disk, &disk),
        (&spec.kernel, &kernel),
        (&spec.initrd, &initrd),
    ];
    let mut digests = [None; 3];
    let mut wanted = spec.sha256.as_ref();
    let mut sound = true;
    for ((written, path), found) in parts.into_iter().zip(&mut digests) {
        let (Some(written), Some(path)) = (written, path) else {
            continue;
        };
        let wanted = wanted.take();
        match digest(path, used || wanted.is_some()) {
            Ok(None) => {}
            Ok(Some(digest)) => {
                *found = Some(digest);
                if let Some(wanted) = wanted.filter(|w| w.value != digest) {
                    let message = format!("{} has another content", written.value.display());
                    let hint = format!(
                        "its sha256 is {digest}: get the right file, or correct the digest"
                    );
                    let note = doc.error(&wanted.spot, message).hint(hint);
                    doc.push(note.label(Some(doc.place(&written.spot)), "this file"));
                    sound = false;
                }
            }
            Err(e) => {
                let message = format!("image file {} cannot be read: {e}", written.value.display());
                let hint = format!("the path is relative to the topology: {}", path.display());
                doc.push(doc.error(&written.spot, message).hint(hint));
                sound = false;
            }
        }
    }
    let size = disk
        .as_deref()
        .filter(|_| sound)
        .and_then(|path| virtual_size(path).ok());
    let [of_disk, of_kernel, of_initrd] = digests;
    let image = Image {
        source: source(disk, kernel, initrd),
        key: Image::path_key(of_disk, of_kernel, of_initrd),
    };
    Found {
        image: sound.then_some(image),
        has_disk,
        size,
    }
}

/// The digest of a file when it is wanted; in any case whether the file can be read.
fn digest(path: &Path, wanted: bool) -> io::Result<Option<Digest>> {
    if !std::fs::metadata(path)?.is_file() {
        return Err(io::Error::other("it is not a regular file"));
    }
    let file = File::open(path)?;
    if !wanted {
        return Ok(None);
    }
    Digest::of_reader(file).map(Some)
}

/// Virtual size of a qcow2 or raw disk. A qcow2 begins with "QFI\xfb" and holds its size as a
/// big-endian number at byte 24 (QEMU, docs/interop/qcow2.txt); all else is raw.
fn virtual_size(path: &Path) -> io::Result<Bytes> {
    let mut file = File::open(path)?;
    let length = file.metadata()?.len();
    let mut header = [0; 32];
    if length >= 32 {
        file.read_exact(&mut header)?;
    }
    let [.., a, b, c, d, e, f, g, h] = header;
    Ok(Bytes(match header.starts_with(b"QFI\xfb") {
        true => u64::from_be_bytes([a, b, c, d, e, f, g, h]),
        false => length,
    }))
}
