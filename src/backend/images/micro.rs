//! Builds the micro image: a Debian cloud kernel and an initial RAM disk of busybox and dropbear.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::Path;

use super::builder::{BuildError, Built};
use super::cpio::CpioWriter;
use super::modules;
use super::packages::{self, Bootstrap};
use super::rootfs::Rootfs;

/// Packages the parts are taken from; util-linux gives `flock`, which busybox here lacks.
const PACKAGES: [&str; 4] = [
    "busybox-static",
    "dropbear-bin",
    "linux-image-cloud-amd64",
    "util-linux",
];
/// Programs taken over, beside busybox.
const PROGRAMS: [(&str, &str); 3] = [
    ("usr/sbin/dropbear", "usr/sbin/dropbear"),
    (
        "usr/lib/dropbear/dropbearconvert",
        "usr/bin/dropbearconvert",
    ),
    ("usr/bin/flock", "usr/bin/flock"),
];
/// Drivers for what labrig gives a guest.
const MODULES: [&str; 3] = ["virtio_pci", "virtio_net", "virtio_blk"];
/// Where mmdebstrap's hook leaves the list of package files.
const PACKAGE_LIST: &str = "labrig-packages";

/// Files of labrig's own in the image.
pub const ASSETS: [(&str, u32, &str); 7] = [
    ("init", 0o755, include_str!("assets/micro/init")),
    (
        "lib/labrig/ready",
        0o755,
        include_str!("assets/micro/ready"),
    ),
    ("etc/inittab", 0o644, include_str!("assets/micro/inittab")),
    ("etc/passwd", 0o644, "root:x:0:0:root:/root:/bin/sh\n"),
    ("etc/shadow", 0o600, "root:*:19000:0:99999:7:::\n"),
    ("etc/group", 0o644, "root:x:0:\ntty:x:5:\n"),
    ("etc/shells", 0o644, "/bin/sh\n"),
];
/// Directories that no file implies.
const DIRECTORIES: [(&str, u32); 11] = [
    ("bin", 0o755),
    ("dev", 0o755),
    ("etc/dropbear", 0o700),
    ("proc", 0o755),
    ("root", 0o700),
    ("run", 0o755),
    ("sbin", 0o755),
    ("sys", 0o755),
    ("tmp", 0o1777),
    ("usr/bin", 0o755),
    ("var/log", 0o755),
];

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
    let bootstrap = Bootstrap {
        suite,
        variant: "extract",
        packages: PACKAGES.to_vec(),
        arguments: vec![list_packages],
    };
    bootstrap.run(&tar, progress)?;
    progress("writing the initial RAM disk");
    let mut root = Rootfs::open(&tar)?;
    let kernel_path = root.matching("boot/vmlinuz-", "").map(str::to_owned);
    let kernel_path = kernel_path.ok_or_else(|| io::Error::other("the packages hold no kernel"))?;
    let (kernel, initrd) = (directory.join("vmlinuz"), directory.join("initrd"));
    fs_err::write(&kernel, root.read(&kernel_path)?)?;
    write_initrd(&mut root, &initrd)?;
    let packages = packages::from_file_names(&String::from_utf8_lossy(&root.read(PACKAGE_LIST)?));
    fs_err::remove_file(&tar)?;
    Ok(Built {
        disk: None,
        kernel: Some(kernel),
        initrd: Some(initrd),
        packages,
    })
}

/// Not compressed: unpacking costs an emulated guest more than reading 8 MB does.
fn write_initrd(root: &mut Rootfs, path: &Path) -> io::Result<()> {
    let mut files: BTreeMap<String, (u32, Vec<u8>)> = BTreeMap::new();
    for (to, mode, content) in ASSETS {
        files.insert(to.to_owned(), (mode, content.as_bytes().to_vec()));
    }
    files.insert("bin/busybox".to_owned(), (0o755, root.read("bin/busybox")?));
    for (from, to) in PROGRAMS {
        let program = root.read(from)?;
        add_libraries(root, &program, &mut files)?;
        files.insert(to.to_owned(), (0o755, program));
    }
    let modules = modules::closure(root, &MODULES)?;
    let order: String = modules.iter().map(|m| format!("{}\n", m.file)).collect();
    files.insert("lib/labrig/modules".to_owned(), (0o644, order.into_bytes()));
    files.extend(
        modules
            .into_iter()
            .map(|m| (format!("lib/modules/{}", m.file), (0o644, m.content))),
    );

    let mut cpio = CpioWriter::new(io::BufWriter::new(fs_err::File::create(path)?));
    for (directory, mode) in directories(files.keys()) {
        cpio.directory(&directory, mode)?;
    }
    cpio.symlink("bin/sh", "busybox")?;
    for (name, (mode, content)) in &files {
        cpio.file(name, *mode, content)?;
    }
    cpio.finish().map(drop)
}

/// Adds the shared libraries a program names, and those they name, where the loader looks.
///
/// A name of a library in the packages that stands in the program as a string is one it needs;
/// that finds the loader as well.
fn add_libraries(
    root: &mut Rootfs,
    program: &[u8],
    files: &mut BTreeMap<String, (u32, Vec<u8>)>,
) -> io::Result<()> {
    let strings: BTreeSet<_> = program
        .split(|b| *b == 0)
        .filter_map(|s| std::str::from_utf8(s).ok())
        .filter_map(|s| s.rsplit('/').next())
        .filter(|s| s.contains(".so"))
        .map(str::to_owned)
        .collect();
    for name in strings {
        let to = if name.starts_with("ld-linux") {
            format!("lib64/{name}")
        } else {
            format!("lib/{name}")
        };
        let found = root.find(&name).map(str::to_owned);
        if let (false, Some(from)) = (files.contains_key(&to), found) {
            let library = root.read(&from)?;
            files.insert(to, (0o755, library.clone()));
            add_libraries(root, &library, files)?;
        }
    }
    Ok(())
}

/// All directories the files need and the ones given, parents first.
fn directories<'a>(files: impl Iterator<Item = &'a String>) -> BTreeMap<String, u32> {
    let mut all: BTreeMap<String, u32> = DIRECTORIES.map(|(d, mode)| (d.to_owned(), mode)).into();
    for path in DIRECTORIES
        .iter()
        .map(|(d, _)| *d)
        .chain(files.map(String::as_str))
    {
        for (slash, _) in path.match_indices('/') {
            all.entry(path[..slash].to_owned()).or_insert(0o755);
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parents_come_before_what_is_in_them() {
        let files = ["usr/lib/a/b.so".to_owned()];
        let all: Vec<_> = directories(files.iter()).into_iter().collect();
        let place = |name: &str| all.iter().position(|(d, _)| d == name).unwrap();
        assert!(place("usr") < place("usr/lib") && place("usr/lib") < place("usr/lib/a"));
        assert!(place("etc") < place("etc/dropbear"));
        assert!(all.contains(&("tmp".to_owned(), 0o1777)));
    }
}
