//! Writing so that it is still there after a power loss: file content, then the directory entry.

use std::io::{self, Write};
use std::path::Path;

use fs_err as fs;

/// Writes a new file, durably but for its directory entry; never overwrites.
pub(super) fn write_new(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut file = fs::File::create_new(path)?;
    file.write_all(bytes)?;
    file.sync_all()
}

/// Makes the entries of a directory durable.
pub(super) fn sync_directory(path: &Path) -> io::Result<()> {
    fs::File::open(path)?.sync_all()
}

/// Makes every file and directory below `root`, and `root` itself, durable. Links, sockets and
/// the like have no content of their own and are passed over.
pub(super) fn sync_tree(root: &Path) -> io::Result<()> {
    for entry in walkdir::WalkDir::new(root).contents_first(true) {
        let entry = entry?;
        if entry.file_type().is_file() || entry.file_type().is_dir() {
            fs::File::open(entry.path())?.sync_all()?;
        }
    }
    Ok(())
}

/// Moves a file or directory to a name that is not taken, durably; both have the same parent.
///
/// # Errors
/// `AlreadyExists` or `DirectoryNotEmpty` when the name is taken.
pub(super) fn rename_new(from: &Path, to: &Path) -> io::Result<()> {
    // rename(2) refuses a directory that is not empty, which all of ours are; files it would
    // replace, hence the look before.
    if to.symlink_metadata().is_ok() {
        let taken = format!("{} exists already", to.display());
        return Err(io::Error::new(io::ErrorKind::AlreadyExists, taken));
    }
    fs::rename(from, to)?;
    to.parent().map_or(Ok(()), sync_directory)
}
