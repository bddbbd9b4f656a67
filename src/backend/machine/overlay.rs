//! Whether a lab's directory can hold what host domains write.

use std::path::{Path, PathBuf};

use crate::backend::namespaces;
use crate::ports::PortError;

/// Lays a small overlay in a directory, as `root.sh` lays large ones, and takes it away.
const TRY: &str = "cd \"$1\" && mkdir lower upper work merged || exit 1
marks=,userxattr
read -r inside outside _ </proc/self/uid_map
[ \"$inside $outside\" != '0 0' ] || marks=
mount -t overlay -o \"lowerdir=lower,upperdir=upper,workdir=work$marks\" overlay merged &&
    : >merged/file && umount merged
status=$?
rm -rf lower upper work merged
exit $status";

/// Tries what is written over the machine's files in a lab's directory, which need not be there yet.
///
/// # Errors
/// When the kernel or the directory's file system does not take it.
pub fn check_overlay(directory: &Path) -> Result<(), PortError> {
    let there = directory.ancestors().find(|path| path.is_dir());
    let place = there.map_or_else(|| PathBuf::from("/"), Path::to_owned);
    let trial = tempfile::Builder::new()
        .prefix(".labrig-overlay-")
        .tempdir_in(&place)?;
    let tried = namespaces::as_root("sh")
        .args(["-c", TRY, "overlay"])
        .arg(trial.path())
        .run();
    tried.map(drop).map_err(|error| {
        let what = format!("keep what host domains write in {}", place.display());
        PortError::fatal(what, error).hint(
            "it has to be on a file system that takes the upper side of an overlay, such as ext4 or xfs: choose one with --state-dir; or leave host domains out",
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_directory_is_tried_and_left_as_it_was() {
        let directory = tempfile::tempdir().unwrap();
        check_overlay(&directory.path().join("not/there")).unwrap();
        let left = std::fs::read_dir(directory.path()).unwrap();
        assert_eq!(left.count(), 0);
        // Nothing can be made in there.
        assert!(check_overlay(Path::new("/proc/self")).is_err());
    }
}
