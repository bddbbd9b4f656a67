//! Images as written.

use std::path::PathBuf;

use super::super::read::{At, Written};
use super::super::shape::{Form, Key, NAME, SHA256, SIZE, Shape};
use super::{size, word};
use crate::model::{Bytes, Digest, ImageRecipe, Name};

/// What an image is.
pub(super) const IMAGE: Shape = Shape::new(
    "A read-only disk, a kernel, or both: built by labrig, or files that exist.",
    &[
        Key::new(
            "build",
            Form::Map(&BUILD),
            "{suite: bookworm}",
            "How labrig builds it.",
        ),
        Key::new(
            "path",
            Form::Text,
            "images/db.qcow2",
            "qcow2 or raw disk, relative to this file.",
        ),
        Key::new(
            "kernel",
            Form::Text,
            "images/vmlinuz",
            "Kernel for direct boot.",
        ),
        Key::new(
            "initrd",
            Form::Text,
            "images/initrd",
            "Initial RAM disk that goes with the kernel.",
        ),
        Key::new(
            "sha256",
            SHA256,
            "\"ba7816bf…\"",
            "Digest of the disk, else of the kernel.",
        ),
    ],
);

const BUILD: Shape = Shape::new(
    "A recipe: a Debian disk, or a micro image of kernel, busybox and dropbear.",
    &[
        Key::new("suite", NAME, "bookworm", "Debian release."),
        Key::new(
            "packages",
            Form::List(&Form::Text),
            "[mariadb-server]",
            "Debian packages beside the base set.",
        ),
        Key::new(
            "size",
            SIZE,
            "3GiB",
            "Virtual size of the disk; 3GiB when left out.",
        ),
        Key::new(
            "micro",
            Form::Map(&MICRO),
            "{}",
            "Makes a micro image, which has no disk and boots in seconds.",
        ),
    ],
);

const MICRO: Shape = Shape::new(
    "A micro image.",
    &[Key::new(
        "suite",
        NAME,
        "bookworm",
        "Debian release its programs come from.",
    )],
);

pub(in super::super) struct ImageSpec {
    pub name: Written<Name>,
    /// None when it was not understood.
    pub source: Option<ImageSourceSpec>,
}

pub(in super::super) enum ImageSourceSpec {
    Build {
        recipe: ImageRecipe,
        size: Option<Written<Bytes>>,
    },
    Path(Box<PathSpec>),
}

pub(in super::super) struct PathSpec {
    pub disk: Option<Written<PathBuf>>,
    pub kernel: Option<Written<PathBuf>>,
    pub initrd: Option<Written<PathBuf>>,
    pub sha256: Option<Written<Digest>>,
}

/// Reads an image.
pub(super) fn image(name: Written<Name>, at: &At<'_>) -> Option<ImageSpec> {
    Some(ImageSpec {
        name,
        source: source(at),
    })
}

fn source(at: &At<'_>) -> Option<ImageSourceSpec> {
    let fields = at.fields(&IMAGE)?;
    let path = |key: &str| fields.get(key).and_then(|at| file_path(&at));
    let spec = PathSpec {
        disk: path("path"),
        kernel: path("kernel"),
        initrd: path("initrd"),
        sha256: fields
            .get("sha256")
            .and_then(|at| at.parse("\"ba7816bf…\" (64 digits)")),
    };
    let has_files = ["path", "kernel", "initrd", "sha256"]
        .iter()
        .any(|key| fields.get(key).is_some());
    match fields.get("build") {
        Some(build) if has_files => {
            build.error(
                "an image is either built or made of files",
                "keep build, or path and kernel",
            );
            None
        }
        Some(build) => recipe(&build),
        None if fields.get("path").is_none() && fields.get("kernel").is_none() => {
            at.error(
                "nothing says where this image comes from",
                "add build, or path or kernel",
            );
            None
        }
        None => {
            if let (Some(initrd), None) = (fields.get("initrd"), fields.get("kernel")) {
                initrd.error(
                    "an initrd needs a kernel",
                    "add kernel, or leave initrd out",
                );
            }
            Some(ImageSourceSpec::Path(Box::new(spec)))
        }
    }
}

/// A file on this machine, relative to the file that names it.
pub(super) fn file_path(at: &At<'_>) -> Option<Written<PathBuf>> {
    let text = at.text("images/db.qcow2")?;
    if text.value.contains('\0') {
        at.error(
            "a path cannot hold a NUL character",
            "as in images/db.qcow2",
        );
        return None;
    }
    Some(Written {
        value: text.value.into(),
        spot: text.spot,
    })
}

fn recipe(at: &At<'_>) -> Option<ImageSourceSpec> {
    let fields = at.fields(&BUILD)?;
    if let Some(micro) = fields.get("micro") {
        for key in ["suite", "packages", "size"] {
            if let Some(other) = fields.get(key) {
                other.error(
                    format!("a micro image has no {key:?} here"),
                    "its suite goes inside: {micro: {suite: bookworm}}",
                );
            }
        }
        let fields = micro.fields(&MICRO)?;
        let suite = fields
            .get("suite")
            .map_or(Some("bookworm".to_owned()), |at| suite(&at))?;
        return Some(ImageSourceSpec::Build {
            recipe: ImageRecipe::Micro { suite },
            size: None,
        });
    }
    let suite = fields.need("suite", "bookworm").and_then(|at| suite(&at))?;
    let mut packages: Vec<String> = fields
        .get("packages")
        .map(|at| at.items("mariadb-server, sysbench"))
        .unwrap_or_default()
        .iter()
        .filter_map(package)
        .collect();
    packages.sort_unstable();
    packages.dedup();
    let written = fields
        .get("size")
        .and_then(|at| size(&at, Bytes::mib(512), "3GiB"));
    let size = written.as_ref().map_or(Bytes(3 << 30), |w| w.value);
    let recipe = ImageRecipe::Debian {
        suite,
        packages,
        size,
    };
    Some(ImageSourceSpec::Build {
        recipe,
        size: written,
    })
}

fn suite(at: &At<'_>) -> Option<String> {
    word(at, "bookworm", |c| {
        c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-'
    })
}

/// A Debian package name (Debian Policy 5.6.7), perhaps with `=VERSION` or `/RELEASE`.
fn package(at: &At<'_>) -> Option<String> {
    let allowed = |c: char| c.is_ascii_alphanumeric() || "+-.=/:~".contains(c);
    word(at, "mariadb-server", allowed)
}
