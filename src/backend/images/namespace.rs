//! Work that needs root's rights over files: done as root, or as root of a user namespace, and in
//! any case where no mount and no process can be left over.

use nix::unistd::Uid;

use crate::backend::tool::Tool;

/// A program that runs with root's rights over what it makes. An ordinary user's own id is root in
/// there, the subordinate ids are all others.
///
/// It has mounts and processes of its own, which end with it, however it ends.
pub fn as_root(program: &str) -> Tool {
    let user: &[&str] = if Uid::effective().is_root() {
        &[]
    } else {
        &["--user", "--map-root-user", "--map-auto"]
    };
    Tool::new("unshare").called(program).args(user).args([
        "--mount",
        "--pid",
        "--fork",
        "--mount-proc",
        "--kill-child",
        "--",
        program,
    ])
}
