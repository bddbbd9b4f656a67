//! Builds the micro image: a Debian cloud kernel and an initial RAM disk of busybox and dropbear.

use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use super::additions;
use super::builder::{BuildError, Built};
use super::cpio::CpioWriter;
use super::initrd::{self, Asset, Initrd};
use super::manifest::{Manifest, Role};
use super::packages::{self, Bootstrap};
use super::rootfs::Rootfs;
use crate::model::BuildFile;

/// Packages the parts are taken from; util-linux gives `flock`, which busybox here lacks.
const PACKAGES: [&str; 5] = [
    "busybox-static",
    "dropbear-bin",
    "e2fsprogs",
    "linux-image-cloud-amd64",
    "util-linux",
];
/// Where mmdebstrap's hook leaves the list of package files.
const PACKAGE_LIST: &str = "labrig-packages";

/// Files of labrig's own in the image.
pub const ASSETS: [Asset; 9] = [
    ("init", 0o755, include_str!("assets/micro/init")),
    ("lib/labrig/boot.sh", 0o644, include_str!("assets/boot.sh")),
    (
        "lib/labrig/ready",
        0o755,
        include_str!("assets/micro/ready"),
    ),
    ("lib/labrig/dhcp", 0o755, include_str!("assets/micro/dhcp")),
    ("etc/inittab", 0o644, include_str!("assets/micro/inittab")),
    ("etc/passwd", 0o644, "root:x:0:0:root:/root:/bin/sh\n"),
    ("etc/shadow", 0o600, "root:*:19000:0:99999:7:::\n"),
    ("etc/group", 0o644, "root:x:0:\ntty:x:5:\n"),
    ("etc/shells", 0o644, "/bin/sh\n"),
];

const INITRD: Initrd<'static> = Initrd {
    assets: &ASSETS,
    programs: &[
        ("usr/sbin/dropbear", "usr/sbin/dropbear"),
        (
            "usr/lib/dropbear/dropbearconvert",
            "usr/bin/dropbearconvert",
        ),
        ("usr/bin/flock", "usr/bin/flock"),
        ("usr/sbin/mke2fs", "usr/sbin/mkfs.ext4"),
    ],
    // Drivers for what labrig gives a guest.
    modules: &["virtio_pci", "virtio_net", "virtio_blk"],
    filesystems: &["ext4"],
    directories: &[
        ("etc/dropbear", 0o700),
        ("run", 0o755),
        ("tmp", 0o1777),
        ("var/log", 0o755),
        ("var/tmp", 0o1777),
    ],
};

/// Builds it into `directory`.
///
/// # Errors
/// When the packages cannot be fetched or lack a part.
pub fn build(
    suite: &str,
    files: &[BuildFile],
    directory: &Path,
    progress: &(dyn Fn(&str) + Sync),
) -> Result<Built, BuildError> {
    let tar = directory.join("packages.tar");
    let list_packages =
        format!("--extract-hook=ls \"$1\"/var/cache/apt/archives >\"$1\"/{PACKAGE_LIST}");
    Bootstrap {
        suite,
        variant: "extract",
        packages: PACKAGES.to_vec(),
        arguments: vec![list_packages],
    }
    .run(&tar, progress)?;
    progress("writing the initial RAM disk");
    let mut root = Rootfs::open(&tar)?;
    let (kernel, initrd) = (directory.join("vmlinuz"), directory.join("initrd"));
    fs_err::write(&kernel, root.kernel()?)?;
    INITRD.write(&mut root, &initrd)?;
    append(files, &initrd)?;
    let packages = packages::from_file_names(&String::from_utf8_lossy(&root.read(PACKAGE_LIST)?));
    fs_err::remove_file(&tar)?;
    Ok(Built {
        disk: None,
        kernel: Some(kernel),
        initrd: Some(initrd),
        packages,
        ..Built::default()
    })
}

/// Builds a layer on a micro image into `directory`: the same with more files.
///
/// # Errors
/// When a file fails.
pub fn build_layer(
    base: Option<&Path>,
    files: &[BuildFile],
    directory: &Path,
) -> Result<Built, BuildError> {
    let base = base.ok_or_else(|| io::Error::other("there is no image below the layer"))?;
    let copy = |role: Role| {
        let to = directory.join(role.file_name());
        fs_err::copy(base.join(role.file_name()), &to)?;
        fs_err::set_permissions(&to, std::fs::Permissions::from_mode(0o644))?;
        Ok::<_, io::Error>(to)
    };
    let (kernel, initrd) = (copy(Role::Kernel)?, copy(Role::Initrd)?);
    append(files, &initrd)?;
    Ok(Built {
        kernel: Some(kernel),
        initrd: Some(initrd),
        packages: Manifest::read(base).map_err(io::Error::other)?.packages,
        ..Built::default()
    })
}

/// Adds files to an initial RAM disk: the kernel unpacks one archive after the other, and the last
/// one to name a file has it.
fn append(files: &[BuildFile], initrd: &Path) -> Result<(), BuildError> {
    if files.is_empty() {
        return Ok(());
    }
    let file = fs_err::OpenOptions::new().append(true).open(initrd)?;
    let mut cpio = CpioWriter::new(io::BufWriter::new(file));
    let names: Vec<_> = files
        .iter()
        .map(|file| file.to.trim_start_matches('/').to_owned())
        .collect();
    for (directory, mode) in initrd::directories(INITRD.directories, names.iter()) {
        cpio.directory(&directory, mode)?;
    }
    for (file, name) in files.iter().zip(&names) {
        cpio.file(name, file.mode, &additions::content(file)?)?;
    }
    cpio.finish()?;
    Ok(())
}
