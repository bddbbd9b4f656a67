//! Disks that a lab uses and does not make: whether they are there, and are what the topology says.

use std::io::{self, Read};
use std::os::unix::fs::FileTypeExt;
use std::path::Path;

use nix::unistd::{AccessFlags, access};

use crate::diag::Note;
use crate::model::{Bytes, Disk, DiskFormat, DiskSource, Topology};

/// Notes about volumes and files that are missing, or are something else. Where `is_own` says that
/// domains run as this user, about those that the user may not write to as well.
pub fn check_existing(topology: &Topology, is_own: bool) -> Vec<Note> {
    let mut notes = Vec::new();
    for domain in &topology.domains {
        for disk in domain.guest().into_iter().flat_map(|guest| &guest.disks) {
            let Some((message, hint)) = problem(disk, is_own) else {
                continue;
            };
            let path = format!("domains.{}.disks", domain.group);
            let message = format!("disk {} of {}: {message}", disk.name, domain.name);
            notes.push(Note::error(path, message).hint(hint));
        }
    }
    notes
}

/// What is wrong with a disk that is not ours, and what to do about it.
fn problem(disk: &Disk, is_own: bool) -> Option<(String, &'static str)> {
    let path = match &disk.source {
        DiskSource::Made { .. } => return None,
        DiskSource::Volume { path } | DiskSource::File { path, .. } => path,
    };
    let shown = path.display();
    let facts = match std::fs::metadata(path) {
        Ok(facts) => facts,
        Err(e) => {
            return Some((
                format!("{shown} cannot be used: {e}"),
                "labrig makes no volumes and keeps no such files: make it first",
            ));
        }
    };
    match &disk.source {
        DiskSource::Made { .. } => return None,
        DiskSource::Volume { .. } if !facts.file_type().is_block_device() => {
            let hint = "name a logical volume, as in /dev/vg0/db; a file goes by `on: file`";
            return Some((format!("{shown} is no block device"), hint));
        }
        DiskSource::File { .. } if !facts.is_file() => {
            let hint = "name a qcow2 or raw file; a logical volume goes by `on: lvm`";
            return Some((format!("{shown} is no regular file"), hint));
        }
        DiskSource::File { format, .. } => match (format_of(path), format) {
            (Ok((DiskFormat::Qcow2, _)), DiskFormat::Raw) => {
                return Some((format!("{shown} is a qcow2 file"), "say `format: qcow2`"));
            }
            (Ok((DiskFormat::Raw, _)), DiskFormat::Qcow2) => {
                return Some((
                    format!("{shown} is no qcow2 file"),
                    "say `format: raw`, or convert it with qemu-img",
                ));
            }
            _ => {}
        },
        DiskSource::Volume { .. } => {}
    }
    if is_own && access(path, AccessFlags::R_OK | AccessFlags::W_OK).is_err() {
        return Some((
            format!("you may not write to {shown}"),
            "get the right to, or run labrig as somebody who has it",
        ));
    }
    None
}

/// Format and virtual size of a disk file.
///
/// # Errors
/// When it cannot be read.
pub fn format_of(path: &Path) -> io::Result<(DiskFormat, Bytes)> {
    let mut file = fs_err::File::open(path)?;
    let length = file.metadata()?.len();
    let mut header = [0; DiskFormat::HEADER];
    if length >= DiskFormat::HEADER as u64 {
        file.read_exact(&mut header)?;
    }
    let (format, size) = DiskFormat::of_header(&header);
    Ok((format, size.unwrap_or(Bytes(length))))
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::*;

    #[test]
    fn what_is_not_as_said_is_named() {
        let place = tempfile::tempdir().unwrap();
        let write = |name: &str, content: &[u8]| {
            let path = place.path().join(name);
            std::fs::write(&path, content).unwrap();
            path
        };
        let (raw, qcow2) = (
            write("raw", b"x"),
            write("qcow2", &[&b"QFI\xfb"[..], &[0; 40]].concat()),
        );
        let file = |path: &Path, format| DiskSource::File {
            path: path.to_owned(),
            format,
        };
        let volume = |path: &Path| DiskSource::Volume {
            path: path.to_owned(),
        };
        use DiskFormat::{Qcow2, Raw};
        for (source, expected) in [
            (file(&raw, Raw), None),
            (file(&qcow2, Qcow2), None),
            (file(&raw, Qcow2), Some("is no qcow2 file")),
            (file(&qcow2, Raw), Some("is a qcow2 file")),
            (file(place.path(), Raw), Some("is no regular file")),
            (file(&PathBuf::from("/nowhere"), Raw), Some("No such file")),
            (volume(&raw), Some("is no block device")),
            (
                volume(&PathBuf::from("/dev/null")),
                Some("is no block device"),
            ),
            (
                volume(&PathBuf::from("/dev/vg0/none")),
                Some("No such file"),
            ),
        ] {
            let disk = Disk {
                source,
                ..Disk::made("data".parse().unwrap(), None)
            };
            let found = problem(&disk, true).map(|(message, _)| message);
            match (&found, expected) {
                (None, None) => {}
                (Some(found), Some(expected)) if found.contains(expected) => {}
                _ => panic!("{disk:?}: {found:?}, expected {expected:?}"),
            }
        }
    }
}
