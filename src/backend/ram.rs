//! Disks in the host's memory: a lab's directory on the tmpfs that every Linux has.
//!
//! It lies outside of the lab's own directory, so whoever takes a lab down removes it too. All on
//! the machine may write where it lies; what is already there is looked at before it is trusted.

use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::Path;

use nix::sys::statvfs::statvfs;
use nix::unistd::Uid;

use super::files;
use crate::model::{Bytes, RAM};

/// The hypervisor's user must find its files by name; nobody else has to see a list.
const MODE: u32 = 0o711;

/// Makes a lab's directory, if it is not there.
///
/// # Errors
/// When that fails, or something else is in its place.
pub fn make_directory(path: &Path) -> io::Result<()> {
    match std::fs::DirBuilder::new().mode(MODE).create(path) {
        Err(e) if e.kind() != io::ErrorKind::AlreadyExists => {
            return Err(io::Error::new(
                e.kind(),
                format!("make {}: {e}", path.display()),
            ));
        }
        _ => {}
    }
    let there = fs_err::symlink_metadata(path)?;
    if there.is_dir() && there.uid() == Uid::effective().as_raw() {
        return Ok(());
    }
    let message = format!("{} belongs to somebody else", path.display());
    Err(io::Error::new(io::ErrorKind::PermissionDenied, message))
}

/// Removes a lab's directory with all in it, if it is there.
///
/// # Errors
/// When something of it stays.
pub fn remove_directory(path: &Path) -> io::Result<()> {
    files::remove_tree(path)
}

/// How much more goes there.
///
/// # Errors
/// When the host has no such place.
pub fn room() -> io::Result<Bytes> {
    let space = statvfs(RAM)?;
    Ok(Bytes(space.blocks_available() * space.fragment_size()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_directory_is_made_once_and_a_strangers_is_refused() {
        let place = tempfile::tempdir_in(RAM).unwrap();
        let path = place.path().join("lab");
        for _ in 0..2 {
            make_directory(&path).unwrap();
        }
        remove_directory(&path).unwrap();
        std::os::unix::fs::symlink(place.path(), &path).unwrap();
        let error = make_directory(&path).unwrap_err();
        assert!(error.to_string().contains("somebody else"), "{error}");
        assert!(room().unwrap() > Bytes(0));
    }
}
