//! Reads single files out of a root filesystem in a tar archive, without unpacking it.

use std::collections::BTreeMap;
use std::io::{self, Read, Seek, SeekFrom};
use std::path::Path;

use fs_err::File;

/// How many symbolic links are followed before it is a loop; the kernel's own limit.
const MAX_LINKS: u32 = 40;

/// What stands at a path.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Node {
    File { offset: u64, size: u64 },
    Link(String),
}

/// A root filesystem in a tar archive. Paths have no leading slash.
pub struct Rootfs {
    archive: File,
    nodes: BTreeMap<String, Node>,
}

impl Rootfs {
    /// Reads the archive's list of files.
    ///
    /// # Errors
    /// When it cannot be read or is no tar archive.
    pub fn open(path: &Path) -> io::Result<Self> {
        let mut nodes = BTreeMap::new();
        let mut archive = tar::Archive::new(io::BufReader::new(File::open(path)?));
        for entry in archive.entries_with_seek()? {
            let entry = entry?;
            let name = plain(&String::from_utf8_lossy(&entry.path_bytes()));
            let target = || {
                entry
                    .link_name_bytes()
                    .map(|b| String::from_utf8_lossy(&b).into_owned())
            };
            let node = match entry.header().entry_type() {
                kind if kind.is_symlink() => target().map(|t| Node::Link(beside(&name, &t))),
                // A hard link names its target from the top of the archive.
                kind if kind.is_hard_link() => target().map(|t| Node::Link(plain(&t))),
                kind if kind.is_file() => Some(Node::File {
                    offset: entry.raw_file_position(),
                    size: entry.size(),
                }),
                _ => None,
            };
            nodes.extend(node.map(|node| (name, node)));
        }
        Ok(Self {
            archive: File::open(path)?,
            nodes,
        })
    }

    /// All paths of files and links, sorted.
    pub fn paths(&self) -> impl Iterator<Item = &str> {
        self.nodes.keys().map(String::as_str)
    }

    /// The first path of a file or link with this base name.
    pub fn find(&self, base_name: &str) -> Option<&str> {
        self.paths()
            .find(|p| p.rsplit('/').next() == Some(base_name))
    }

    /// The one path that starts and ends so; the last one when there are several.
    pub fn matching(&self, prefix: &str, suffix: &str) -> Option<&str> {
        self.paths()
            .filter(|p| p.starts_with(prefix) && p.ends_with(suffix))
            .last()
    }

    /// The kernel's content.
    ///
    /// # Errors
    /// When there is none, or reading fails.
    pub fn kernel(&mut self) -> io::Result<Vec<u8>> {
        let path = self.matching("boot/vmlinuz-", "").map(str::to_owned);
        self.read(&path.ok_or_else(|| io::Error::other("the packages hold no kernel"))?)
    }

    /// A file's content; links are followed.
    ///
    /// # Errors
    /// When it is not there, or reading fails.
    pub fn read(&mut self, path: &str) -> io::Result<Vec<u8>> {
        let missing = || {
            io::Error::new(
                io::ErrorKind::NotFound,
                format!("{path} is not in the packages"),
            )
        };
        let mut at = path.to_owned();
        for _ in 0..MAX_LINKS {
            match self
                .nodes
                .get(&at)
                .or_else(|| self.nodes.get(&merged(&at)))
                .ok_or_else(missing)?
            {
                Node::Link(target) => at.clone_from(target),
                &Node::File { offset, size } => {
                    let mut content = Vec::new();
                    self.archive.seek(SeekFrom::Start(offset))?;
                    (&mut self.archive).take(size).read_to_end(&mut content)?;
                    return Ok(content);
                }
            }
        }
        Err(missing())
    }
}

/// The other place of a path, as `/bin`, `/lib` and `/sbin` may be links into `/usr`.
fn merged(path: &str) -> String {
    path.strip_prefix("usr/")
        .map_or_else(|| format!("usr/{path}"), str::to_owned)
}

/// A path from the top of the archive, without `./` and slashes in front.
fn plain(path: &str) -> String {
    path.trim_start_matches("./")
        .trim_start_matches('/')
        .trim_end_matches('/')
        .to_owned()
}

/// What a link at `path` means by `target`.
fn beside(path: &str, target: &str) -> String {
    let mut parts: Vec<&str> = path.split('/').collect();
    parts.pop();
    if target.starts_with('/') {
        parts.clear();
    }
    for part in target.split('/') {
        match part {
            "" | "." => {}
            ".." => {
                parts.pop();
            }
            _ => parts.push(part),
        }
    }
    parts.join("/")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn archive(directory: &Path) -> std::path::PathBuf {
        let path = directory.join("root.tar");
        let mut tar = tar::Builder::new(std::fs::File::create(&path).unwrap());
        let mut file = |name: &str, content: &[u8]| {
            let mut header = tar::Header::new_gnu();
            header.set_size(content.len() as u64);
            tar.append_data(&mut header, name, content).unwrap();
        };
        file("usr/lib/x/liba.so.1.2", b"library");
        file("bin/tool", b"tool");
        for (name, target) in [
            ("usr/lib/x/liba.so.1", "liba.so.1.2"),
            ("lib64/ld.so", "/lib/x/../x/liba.so.1"),
            ("a", "b"),
            ("b", "a"),
        ] {
            let mut header = tar::Header::new_gnu();
            header.set_entry_type(tar::EntryType::Symlink);
            header.set_size(0);
            tar.append_link(&mut header, name, target).unwrap();
        }
        tar.finish().unwrap();
        path
    }

    #[test]
    fn reads_files_through_links_and_merged_directories() {
        let directory = tempfile::tempdir().unwrap();
        let mut root = Rootfs::open(&archive(directory.path())).unwrap();
        assert_eq!(root.read("usr/lib/x/liba.so.1").unwrap(), b"library");
        assert_eq!(root.read("lib64/ld.so").unwrap(), b"library");
        assert_eq!(root.read("usr/bin/tool").unwrap(), b"tool");
        assert_eq!(root.find("tool"), Some("bin/tool"));
        assert_eq!(
            root.matching("usr/lib/", ".2"),
            Some("usr/lib/x/liba.so.1.2")
        );
    }

    #[test]
    fn a_missing_file_and_a_loop_are_errors() {
        let directory = tempfile::tempdir().unwrap();
        let mut root = Rootfs::open(&archive(directory.path())).unwrap();
        assert!(
            root.read("nothing")
                .unwrap_err()
                .to_string()
                .contains("nothing")
        );
        assert!(root.read("a").is_err());
    }
}
