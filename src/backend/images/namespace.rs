//! Work that needs root's rights over files: done as root, or as root of a user namespace.

use nix::unistd::Uid;

use crate::backend::tool::Tool;

/// A program that runs with root's rights over what it makes. An ordinary user's own id is root in
/// there, the subordinate ids are all others.
pub fn as_root(program: &str) -> Tool {
    if Uid::effective().is_root() {
        return Tool::new(program);
    }
    Tool::new("unshare").args([
        "--user",
        "--map-root-user",
        "--map-auto",
        "--fork",
        "--kill-child",
        "--",
        program,
    ])
}
