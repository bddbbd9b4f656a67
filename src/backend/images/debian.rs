//! Builds Debian images: a root filesystem with systemd and OpenSSH on an ext4 disk, the kernel,
//! and an initial RAM disk that takes the guest from its seed to systemd without detours.

use std::io;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;
use std::time::Duration;

use uuid::Uuid;

use super::additions::Additions;
use super::builder::{BuildError, Built};
use super::import::to_qcow2;
use super::initrd::{Asset, Initrd};
use super::manifest::Role;
use super::packages::{self, Bootstrap, EPOCH};
use super::rootfs::Rootfs;
use crate::backend::files::make_parent;
use crate::backend::namespaces;
use crate::backend::tool::Tool;
use crate::model::{Bytes, ImageRecipe};

/// Packages that every guest has.
const PACKAGES: [&str; 8] = [
    "busybox-static",
    "iproute2",
    "linux-image-cloud-amd64",
    "openssh-server",
    "procps",
    "systemd",
    "systemd-sysv",
    "udev",
];
/// Files of packages that no guest reads; what is left out need not be unpacked, either.
const LEFT_OUT: [&str; 4] = [
    "/usr/share/man/*",
    "/usr/share/info/*",
    "/usr/share/locale/*",
    "/usr/share/doc/*",
];
/// Longest time to unpack a root filesystem and to write the disk.
const PACK_LIMIT: Duration = Duration::from_secs(30 * 60);
/// Name space of the filesystem's UUID.
const FILESYSTEM_NAMESPACE: Uuid = Uuid::from_u128(0x6c61_6272_6967_4000_8000_7265_6369_7065);

/// Files of labrig's own on the disk.
pub const DISK_ASSETS: [Asset; 8] = [
    ("etc/default/locale", 0o644, "LANG=C.UTF-8\n"),
    (
        "etc/modprobe.d/labrig.conf",
        0o644,
        include_str!("assets/debian/modprobe.conf"),
    ),
    (
        "etc/systemd/system/labrig-ready.service",
        0o644,
        include_str!("assets/debian/ready.service"),
    ),
    (
        "etc/systemd/system.conf.d/labrig.conf",
        0o644,
        include_str!("assets/debian/system.conf"),
    ),
    (
        "etc/systemd/journald.conf.d/labrig.conf",
        0o644,
        include_str!("assets/debian/journald.conf"),
    ),
    (
        "etc/ssh/sshd_config.d/labrig.conf",
        0o644,
        include_str!("assets/debian/sshd.conf"),
    ),
    // Each guest gets its own from its virtual hardware at its first boot.
    ("etc/machine-id", 0o444, ""),
    ("etc/hostname", 0o644, "localhost\n"),
];
/// Files of labrig's own in the initial RAM disk.
pub const INITRD_ASSETS: [Asset; 2] = [
    ("init", 0o755, include_str!("assets/debian/init")),
    ("lib/labrig/boot.sh", 0o644, include_str!("assets/boot.sh")),
];
/// What makes the disk.
pub const PACK: &str = include_str!("assets/debian/pack");

/// Units that are switched on.
const ENABLED: [(&str, &str); 4] = [
    ("default.target", "/lib/systemd/system/multi-user.target"),
    (
        "multi-user.target.wants/labrig-ready.service",
        "/etc/systemd/system/labrig-ready.service",
    ),
    (
        "multi-user.target.wants/systemd-networkd.service",
        "/lib/systemd/system/systemd-networkd.service",
    ),
    (
        "sockets.target.wants/systemd-networkd.socket",
        "/lib/systemd/system/systemd-networkd.socket",
    ),
];
/// Units that cost time at boot or make noise while something is measured.
const MASKED: [&str; 28] = [
    "apt-daily-upgrade.timer",
    "apt-daily.timer",
    "console-getty.service",
    "dpkg-db-backup.timer",
    "e2scrub_all.timer",
    "e2scrub_reap.service",
    "fstrim.timer",
    "getty.target",
    "getty@.service",
    "logrotate.timer",
    "man-db.timer",
    "modprobe@.service",
    "proc-sys-fs-binfmt_misc.automount",
    "serial-getty@.service",
    "sys-fs-fuse-connections.mount",
    "sys-kernel-config.mount",
    "sys-kernel-debug.mount",
    "sys-kernel-tracing.mount",
    "systemd-binfmt.service",
    "systemd-boot-update.service",
    "systemd-firstboot.service",
    "systemd-journal-flush.service",
    "systemd-network-generator.service",
    "systemd-networkd-wait-online.service",
    "systemd-pstore.service",
    "systemd-tmpfiles-clean.timer",
    "systemd-update-utmp-runlevel.service",
    "systemd-update-utmp.service",
];

const INITRD: Initrd<'static> = Initrd {
    assets: &INITRD_ASSETS,
    programs: &[],
    modules: &[
        "virtio_pci",
        "virtio_blk",
        "crc32c_generic",
        "ext4",
        "virtio_net",
    ],
    filesystems: &[],
    directories: &[],
};

/// What is special about one Debian image.
pub struct Debian<'a> {
    /// Its recipe.
    pub recipe: &'a ImageRecipe,
    /// Directory of the image below it, if it is a layer.
    pub base: Option<&'a Path>,
    /// Packages beside the base set, when there is nothing below it.
    pub packages: &'a [String],
    /// What is added when all that is there.
    pub additions: Additions<'a>,
}

impl Debian<'_> {
    /// Builds it into `directory`.
    ///
    /// # Errors
    /// When the packages cannot be fetched, lack a part, or do not fit on the disk.
    pub fn build(
        &self,
        directory: &Path,
        progress: &(dyn Fn(&str) + Sync),
    ) -> Result<Built, BuildError> {
        let tar = directory.join("packages.tar");
        let script = self.additions.lay_out(directory)?;
        self.bootstrap(script.as_deref()).run(&tar, progress)?;
        progress("writing the initial RAM disk");
        let mut root = Rootfs::open(&tar)?;
        let (kernel, initrd) = (directory.join("vmlinuz"), directory.join("initrd"));
        fs_err::write(&kernel, root.kernel()?)?;
        INITRD.write(&mut root, &initrd)?;
        let packages =
            packages::from_status(&String::from_utf8_lossy(&root.read("var/lib/dpkg/status")?));

        progress("compressing the root filesystem");
        let tree = directory.join(Role::Tree.file_name());
        Tool::new("zstd")
            .args(["-q", "-3", "-T0", "-o"])
            .args([&tree, &tar])
            .limit(PACK_LIMIT)
            .run()?;

        progress("writing the disk");
        lay_overlay(&directory.join("overlay"))?;
        let key = self.recipe.key();
        let uuid = Uuid::new_v5(&FILESYSTEM_NAMESPACE, key.bytes()).to_string();
        namespaces::as_root("sh")
            .env("SOURCE_DATE_EPOCH", EPOCH)
            .env("E2FSPROGS_FAKE_TIME", EPOCH)
            .args(["-c", PACK, "pack"])
            .arg(directory)
            .args([self.size().0.to_string(), uuid])
            .limit(PACK_LIMIT)
            .run()?;
        progress("converting the disk");
        let (raw, disk) = (directory.join("disk.raw"), directory.join("disk.qcow2"));
        to_qcow2(&raw, &disk)?;
        fs_err::remove_file(raw)?;
        Ok(Built {
            disk: Some(disk),
            kernel: Some(kernel),
            initrd: Some(initrd),
            tree: Some(tree),
            packages,
        })
    }

    /// A recipe with a root filesystem has a size.
    fn size(&self) -> Bytes {
        self.recipe.size().unwrap_or_default()
    }

    fn bootstrap(&self, script: Option<&Path>) -> Bootstrap<'_> {
        let mut arguments: Vec<_> = LEFT_OUT
            .iter()
            .map(|path| format!("--dpkgopt=path-exclude={path}"))
            .collect();
        arguments.push("--dpkgopt=path-include=/usr/share/doc/*/copyright".to_owned());
        // The initial RAM disk is ours, so the distribution's need not be updated, nor made, see
        // `Bootstrap`. dpkg keeps the setting that is there before the package.
        arguments.push("--dpkgopt=force-confold".to_owned());
        let (variant, packages) = match self.base {
            None => {
                arguments.push(
                    // Alternatives of Java and others want to link their pages somewhere.
                    "--essential-hook=mkdir -p \"$1\"/usr/share/man/man1 \"$1\"/etc/initramfs-tools && \
                     echo update_initramfs=no >\"$1\"/etc/initramfs-tools/update-initramfs.conf"
                        .to_owned(),
                );
                let packages = self.packages.iter().map(String::as_str);
                ("minbase", PACKAGES.into_iter().chain(packages).collect())
            }
            Some(base) => {
                let tree = quoted(&base.join(Role::Tree.file_name()));
                // Device nodes cannot be made in a user namespace; mmdebstrap sees to /dev.
                arguments.push(format!(
                    "--setup-hook=zstd -q -d -c {tree} | \
                     tar -x -p --numeric-owner --exclude='./dev/*' -C \"$1\" -f -"
                ));
                ("custom", Vec::new())
            }
        };
        if let Some(script) = script {
            arguments.push(format!("--customize-hook=sh {} \"$1\"", quoted(script)));
        }
        Bootstrap {
            suite: self.recipe.suite(),
            variant,
            packages,
            arguments,
        }
    }
}

/// A path for the shell.
fn quoted(path: &Path) -> String {
    let path = path.to_string_lossy();
    shlex::try_quote(&path).unwrap_or_default().into_owned()
}

/// Lays out what is copied over the root filesystem.
fn lay_overlay(overlay: &Path) -> io::Result<()> {
    for (path, mode, content) in DISK_ASSETS {
        let path = overlay.join(path);
        make_parent(&path)?;
        fs_err::write(&path, content)?;
        fs_err::set_permissions(&path, std::fs::Permissions::from_mode(mode))?;
    }
    let units = overlay.join("etc/systemd/system");
    let links = ENABLED
        .iter()
        .copied()
        .chain(MASKED.iter().map(|unit| (*unit, "/dev/null")));
    for (unit, target) in links {
        let path = units.join(unit);
        make_parent(&path)?;
        symlink(target, &path)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_overlay_holds_every_asset_and_unit() {
        let directory = tempfile::tempdir().unwrap();
        lay_overlay(directory.path()).unwrap();
        let units = directory.path().join("etc/systemd/system");
        assert_eq!(
            std::fs::read_link(units.join("getty.target")).unwrap(),
            Path::new("/dev/null")
        );
        assert!(units.join("labrig-ready.service").is_file());
        assert!(
            units
                .join("multi-user.target.wants/systemd-networkd.service")
                .is_symlink()
        );
        assert_eq!(
            std::fs::read(directory.path().join("etc/machine-id")).unwrap(),
            b""
        );
    }
}
