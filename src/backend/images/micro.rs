//! Builds the micro image: a Debian cloud kernel and an initial RAM disk of busybox and dropbear.

use std::path::Path;

use super::builder::{BuildError, Built};
use super::initrd::{Asset, Initrd};
use super::packages::{self, Bootstrap};
use super::rootfs::Rootfs;

/// Packages the parts are taken from; util-linux gives `flock`, which busybox here lacks.
const PACKAGES: [&str; 4] = [
    "busybox-static",
    "dropbear-bin",
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
    ],
    // Drivers for what labrig gives a guest.
    modules: &["virtio_pci", "virtio_net", "virtio_blk"],
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
    let packages = packages::from_file_names(&String::from_utf8_lossy(&root.read(PACKAGE_LIST)?));
    fs_err::remove_file(&tar)?;
    Ok(Built {
        disk: None,
        kernel: Some(kernel),
        initrd: Some(initrd),
        packages,
    })
}
