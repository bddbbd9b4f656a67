//! Programs in namespaces of their own, by util-linux's `unshare`: where labs run, and where work
//! gets root's rights over files.
//!
//! Whoever is not root gets a user namespace too, in which the user's own id is root and the
//! subordinate ids are all others. Mounts and processes always are the program's own: they end with
//! it, however it ends.

use nix::unistd::Uid;

use super::tool::Tool;

const USER: [&str; 3] = ["--user", "--map-root-user", "--map-auto"];
/// What a lab has of its own beside mounts and processes: its network, its host name, its memory that
/// processes share.
const LAB: [&str; 3] = ["--net", "--uts", "--ipc"];
const OWN: [&str; 5] = ["--mount", "--pid", "--fork", "--mount-proc", "--kill-child"];

/// A program in namespaces like those of a lab.
pub fn of_lab(program: &str) -> Tool {
    Tool::new("unshare").args(lab_arguments()).arg(program)
}

/// Arguments of `unshare` that make the namespaces of a lab; the program comes after them.
pub fn lab_arguments() -> Vec<&'static str> {
    arguments(Uid::effective().is_root(), true)
}

/// A program that runs with root's rights over what it makes, and over what a lab's namespaces
/// left.
pub fn as_root(program: &str) -> Tool {
    Tool::new("unshare")
        .called(program)
        .args(arguments(Uid::effective().is_root(), false))
        .arg(program)
}

/// Arguments of `nsenter` that join these kinds of namespaces of a lab's process, as whoever made
/// them; the program comes after them.
pub fn entering(process: i32, kinds: &[&str]) -> Vec<String> {
    let user = ["--user", "--preserve-credentials"].into_iter();
    let user = user.filter(|_| !Uid::effective().is_root());
    let words = kinds.iter().copied().chain(user).chain(["--"]);
    let target = ["--target".to_owned(), process.to_string()];
    target.into_iter().chain(words.map(str::to_owned)).collect()
}

fn arguments(is_root: bool, of_lab: bool) -> Vec<&'static str> {
    let user = USER.into_iter().filter(|_| !is_root);
    let lab = LAB.into_iter().filter(|_| of_lab);
    user.chain(lab).chain(OWN).chain(["--"]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn root_needs_no_user_namespace() {
        for (is_root, of_lab, expected) in [
            (
                false,
                true,
                "--user --map-root-user --map-auto --net --uts --ipc --mount --pid --fork --mount-proc --kill-child --",
            ),
            (
                true,
                true,
                "--net --uts --ipc --mount --pid --fork --mount-proc --kill-child --",
            ),
            (
                true,
                false,
                "--mount --pid --fork --mount-proc --kill-child --",
            ),
        ] {
            assert_eq!(arguments(is_root, of_lab).join(" "), expected);
        }
    }
}
