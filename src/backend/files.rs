//! Small work on files that several parts need.

use std::io;
use std::path::Path;
use std::time::Duration;

use fs_err as fs;

use super::namespaces;

/// Longest time to remove a tree; a root filesystem on a slow disk is the reason.
const REMOVE_LIMIT: Duration = Duration::from_secs(10 * 60);

/// Removes a directory tree, if it is there. An ordinary user's lab or build may have left files of
/// the user's subordinate ids; those yield to a root of the same mapping.
///
/// # Errors
/// When something of it cannot be removed.
pub fn remove_tree(path: &Path) -> io::Result<()> {
    match fs::remove_dir_all(path) {
        Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(e) if e.kind() == io::ErrorKind::PermissionDenied => namespaces::as_root("rm")
            .args(["-rf", "--"])
            .arg(path)
            .limit(REMOVE_LIMIT)
            .run()
            .map(drop)
            .map_err(|error| io::Error::new(e.kind(), error)),
        removed => removed,
    }
}

/// Removes a file, if it is there.
///
/// # Errors
/// When it stays.
pub fn remove_if_there(path: &Path) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(()),
        removed => removed,
    }
}

/// Makes the directory that a file is to be in.
///
/// # Errors
/// When that fails.
pub fn make_parent(path: &Path) -> io::Result<()> {
    path.parent().map_or(Ok(()), fs::create_dir_all)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tree_is_removed_once_and_again() {
        let root = tempfile::tempdir().unwrap();
        let tree = root.path().join("tree");
        fs::create_dir_all(tree.join("a/b")).unwrap();
        fs::write(tree.join("a/b/file"), "x").unwrap();
        for _ in 0..2 {
            remove_tree(&tree).unwrap();
            assert!(!tree.exists());
        }
    }

    #[test]
    fn a_file_is_removed_once_and_again() {
        let root = tempfile::tempdir().unwrap();
        let file = root.path().join("new/directory/file");
        make_parent(&file).unwrap();
        fs::write(&file, "x").unwrap();
        for _ in 0..2 {
            remove_if_there(&file).unwrap();
            assert!(!file.exists());
        }
        assert!(remove_if_there(root.path()).is_err());
    }

    #[test]
    fn what_is_no_directory_is_an_error() {
        let file = tempfile::NamedTempFile::new().unwrap();
        assert!(remove_tree(file.path()).is_err());
        assert!(file.path().exists());
    }
}
