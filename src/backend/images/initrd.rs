//! Puts an initial RAM disk together: busybox, drivers, programs with their libraries, and files
//! of labrig's own.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::Path;

use super::cpio::CpioWriter;
use super::modules;
use super::rootfs::Rootfs;

/// A file of labrig's own: where it goes, its permission bits, its content.
pub type Asset = (&'static str, u32, &'static str);

/// What goes in beside busybox, which always does.
pub struct Initrd<'a> {
    /// Files of labrig's own.
    pub assets: &'a [Asset],
    /// Programs of the packages: where they are, and where they go.
    pub programs: &'a [(&'a str, &'a str)],
    /// Drivers that are loaded at once; what they need comes along.
    pub modules: &'a [&'a str],
    /// Filesystems whose drivers are loaded when a disk has one.
    pub filesystems: &'a [&'a str],
    /// Directories that no file implies, or that are not open to all.
    pub directories: &'a [(&'a str, u32)],
}

/// Directories that every one has.
const DIRECTORIES: [(&str, u32); 8] = [
    ("bin", 0o755),
    ("dev", 0o755),
    ("proc", 0o755),
    ("root", 0o700),
    ("sbin", 0o755),
    ("sys", 0o755),
    ("usr/bin", 0o755),
    ("usr/sbin", 0o755),
];

impl Initrd<'_> {
    /// Writes it. It is not compressed: unpacking costs an emulated guest more than reading does.
    ///
    /// # Errors
    /// When the packages lack a part, or writing fails.
    pub fn write(&self, root: &mut Rootfs, path: &Path) -> io::Result<()> {
        let files = self.files(root)?;
        let mut cpio = CpioWriter::new(io::BufWriter::new(fs_err::File::create(path)?));
        for (directory, mode) in directories(self.directories, files.keys()) {
            cpio.directory(&directory, mode)?;
        }
        cpio.symlink("bin/sh", "busybox")?;
        for (name, (mode, content)) in &files {
            cpio.file(name, *mode, content)?;
        }
        cpio.finish().map(drop)
    }

    fn files(&self, root: &mut Rootfs) -> io::Result<Files> {
        let mut files = Files::new();
        for (to, mode, content) in self.assets {
            files.insert((*to).to_owned(), (*mode, content.as_bytes().to_vec()));
        }
        files.insert("bin/busybox".to_owned(), (0o755, root.read("bin/busybox")?));
        for (from, to) in self.programs {
            let program = root.read(from)?;
            add_libraries(root, &program, &mut files)?;
            files.insert((*to).to_owned(), (0o755, program));
        }
        add_modules(root, "modules", self.modules, &mut files)?;
        for filesystem in self.filesystems {
            // ext4 asks the kernel's library for a checksum that nothing says it depends on.
            let names = ["crc32c_generic", filesystem];
            add_modules(root, &format!("{filesystem}.modules"), &names, &mut files)?;
        }
        Ok(files)
    }
}

/// Permission bits and content by path.
type Files = BTreeMap<String, (u32, Vec<u8>)>;

/// Adds modules, and the list of them in the order to load them in.
fn add_modules(root: &mut Rootfs, list: &str, names: &[&str], files: &mut Files) -> io::Result<()> {
    let modules = modules::closure(root, names)?;
    let order: String = modules.iter().map(|m| format!("{}\n", m.file)).collect();
    files.insert(format!("lib/labrig/{list}"), (0o644, order.into_bytes()));
    files.extend(
        modules
            .into_iter()
            .map(|m| (format!("lib/modules/{}", m.file), (0o644, m.content))),
    );
    Ok(())
}

/// Adds the shared libraries a program names, and those they name, where the loader looks.
///
/// A name of a library in the packages that stands in the program as a string is one it needs;
/// that finds the loader as well.
fn add_libraries(root: &mut Rootfs, program: &[u8], files: &mut Files) -> io::Result<()> {
    let strings: BTreeSet<_> = program
        .split(|b| *b == 0)
        .filter_map(|s| std::str::from_utf8(s).ok())
        .filter_map(|s| s.rsplit('/').next())
        .filter(|s| s.contains(".so"))
        .collect();
    for name in strings {
        let to = if name.starts_with("ld-linux") {
            format!("lib64/{name}")
        } else {
            format!("lib/{name}")
        };
        let found = root.find(name).map(str::to_owned);
        if let (false, Some(from)) = (files.contains_key(&to), found) {
            let library = root.read(&from)?;
            files.insert(to, (0o755, library.clone()));
            add_libraries(root, &library, files)?;
        }
    }
    Ok(())
}

/// All directories the files need and the ones given, parents first.
pub fn directories<'a>(
    given: &[(&'a str, u32)],
    files: impl Iterator<Item = &'a String>,
) -> BTreeMap<String, u32> {
    let given: Vec<_> = DIRECTORIES.iter().chain(given).copied().collect();
    let mut all: BTreeMap<String, u32> = given
        .iter()
        .map(|(d, mode)| ((*d).to_owned(), *mode))
        .collect();
    for path in given
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
        let all: Vec<_> = directories(&[("etc/dropbear", 0o700), ("tmp", 0o1777)], files.iter())
            .into_iter()
            .collect();
        let place = |name: &str| all.iter().position(|(d, _)| d == name).unwrap();
        assert!(place("usr") < place("usr/lib") && place("usr/lib") < place("usr/lib/a"));
        assert!(place("etc") < place("etc/dropbear"));
        assert!(all.contains(&("tmp".to_owned(), 0o1777)));
    }

    #[test]
    fn libraries_are_found_by_the_names_in_the_program() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("root.tar");
        let mut tar = tar::Builder::new(std::fs::File::create(&path).unwrap());
        for (name, content) in [
            (
                "usr/bin/tool",
                &b"\x7fELF\0/lib64/ld-linux-x86-64.so.2\0liba.so.1\0libabsent.so.9\0"[..],
            ),
            ("usr/lib/x/liba.so.1", b"\x7fELF\0libb.so.2\0liba.so.1\0"),
            ("usr/lib/x/libb.so.2", b"\x7fELF\0"),
            ("lib/x/ld-linux-x86-64.so.2", b"\x7fELF\0"),
            ("usr/lib/x/libunused.so.1", b"\x7fELF\0"),
        ] {
            let mut header = tar::Header::new_gnu();
            header.set_size(content.len() as u64);
            tar.append_data(&mut header, name, content).unwrap();
        }
        tar.finish().unwrap();
        let mut root = Rootfs::open(&path).unwrap();
        let mut files = Files::new();
        let program = root.read("usr/bin/tool").unwrap();
        add_libraries(&mut root, &program, &mut files).unwrap();
        let names: Vec<_> = files.keys().map(String::as_str).collect();
        assert_eq!(
            names,
            [
                "lib/liba.so.1",
                "lib/libb.so.2",
                "lib64/ld-linux-x86-64.so.2"
            ]
        );
    }
}
