//! Memory, disk space and the state directory.

use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use nix::sys::statvfs::statvfs;
use nix::unistd::{AccessFlags, access};

use super::Finding;
use crate::backend::embedded::SOCKET_PATH_MAX;
use crate::backend::host::memory_field;
use crate::model::{Bytes, Name};

/// Memory that a database guest and a client take.
const ENOUGH_MEMORY: Bytes = Bytes::mib(2048);
/// What one micro guest and its libvirtd take.
const LEAST_MEMORY: Bytes = Bytes::mib(384);
/// Space that building a database image and running a lab on it take.
const ENOUGH_DISK: Bytes = Bytes::mib(6144);
/// Space that the micro image takes to build.
const LEAST_DISK: Bytes = Bytes::mib(768);
/// What stands around a lab's name in the longest path that a socket of it is reached by; all others
/// have short paths inside the lab's own mount namespace.
const AROUND_NAME: usize = "/labs/".len() + "/host/run/libvirt-sock".len();
/// Names of labs that people choose are shorter.
const COMFORTABLE_NAME: usize = 16;

/// Examines them.
pub fn examine(state_directory: &Path) -> Vec<Finding> {
    vec![
        memory(),
        disk(state_directory),
        directory(state_directory),
        length(state_directory),
    ]
}

fn memory() -> Finding {
    const NAME: &str = "free memory";
    let text = std::fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let advice = "end what is not needed, or give the domains less";
    match memory_field(&text, "MemAvailable") {
        Ok(free) => graded(NAME, free, ENOUGH_MEMORY, LEAST_MEMORY, advice),
        Err(error) => Finding::missing(NAME, error.to_string(), "mount /proc"),
    }
}

fn disk(state_directory: &Path) -> Finding {
    const NAME: &str = "free disk space";
    let place = existing(state_directory);
    let advice = "free some, or set LABRIG_STATE_DIR to a directory on a larger disk";
    match statvfs(place) {
        Ok(space) => {
            let free = Bytes(space.blocks_available() * space.fragment_size());
            graded(NAME, free, ENOUGH_DISK, LEAST_DISK, advice)
        }
        Err(error) => Finding::missing(NAME, format!("{}: {error}", place.display()), advice),
    }
}

fn graded(name: &str, free: Bytes, enough: Bytes, least: Bytes, advice: &str) -> Finding {
    let mib = |bytes: Bytes| bytes.0 >> 20;
    let detail = format!("{} MiB", mib(free));
    if free >= enough {
        Finding::good(name, detail)
    } else if free >= least {
        Finding::poor(
            name,
            format!("{detail}; {} MiB are comfortable", mib(enough)),
            advice,
        )
    } else {
        Finding::missing(
            name,
            format!("{detail}; {} MiB is the least", mib(least)),
            advice,
        )
    }
}

fn directory(state_directory: &Path) -> Finding {
    const NAME: &str = "state directory";
    let place = existing(state_directory);
    let shown = state_directory.display();
    match access(place, AccessFlags::W_OK | AccessFlags::X_OK) {
        Ok(()) if place.is_dir() => Finding::good(NAME, shown.to_string()),
        Ok(()) => Finding::missing(
            NAME,
            format!("{} is no directory", place.display()),
            "set LABRIG_STATE_DIR",
        ),
        Err(error) => Finding::missing(
            NAME,
            format!("{shown} cannot be written: {}: {error}", place.display()),
            "set LABRIG_STATE_DIR to a directory of yours",
        ),
    }
}

fn length(state_directory: &Path) -> Finding {
    const NAME: &str = "length of socket paths";
    let room =
        SOCKET_PATH_MAX.saturating_sub(state_directory.as_os_str().as_bytes().len() + AROUND_NAME);
    let advice = "set LABRIG_STATE_DIR to a directory with a shorter path";
    match room {
        0 => Finding::missing(
            NAME,
            "no socket's path fits below the state directory",
            advice,
        ),
        1..COMFORTABLE_NAME => Finding::poor(
            NAME,
            format!("names of labs may have {room} characters"),
            advice,
        ),
        _ => Finding::good(
            NAME,
            format!("names of labs may have {} characters", room.min(Name::MAX)),
        ),
    }
}

/// The directory itself, or what is there of the way to it.
fn existing(path: &Path) -> &Path {
    path.ancestors()
        .find(|ancestor| ancestor.exists())
        .unwrap_or(Path::new("/"))
}

#[cfg(test)]
mod tests {
    use super::super::State;
    use super::*;
    use crate::backend::embedded::HostDirectory;
    use crate::model::LabPaths;

    #[test]
    fn a_long_state_directory_leaves_less_for_names() {
        assert_eq!(length(Path::new("/s")).state, State::Good);
        let directory = format!("/{}", "x".repeat(66));
        let some = length(Path::new(&directory));
        assert_eq!(
            (some.state, some.detail.as_str()),
            (State::Poor, "names of labs may have 12 characters")
        );
        // It is what an embedded host finds.
        for (name, fits) in [(12, true), (13, false)] {
            let lab = Path::new(&directory).join("labs").join("n".repeat(name));
            let host = HostDirectory::new(LabPaths::new(lab).host(), "/cache".into());
            let length = host.libvirt_socket().as_os_str().len();
            assert_eq!(length <= SOCKET_PATH_MAX, fits);
        }
        assert_eq!(
            length(Path::new(&format!("/{}", "x".repeat(90)))).state,
            State::Missing
        );
    }

    #[test]
    fn sizes_are_graded() {
        let state = |mib| graded("x", Bytes::mib(mib), Bytes::mib(10), Bytes::mib(5), "").state;
        assert_eq!(
            (state(10), state(9), state(4)),
            (State::Good, State::Poor, State::Missing)
        );
    }

    #[test]
    fn a_directory_to_come_is_judged_by_its_parent() {
        let parent = tempfile::tempdir().unwrap();
        assert_eq!(directory(&parent.path().join("a/b")).state, State::Good);
        let file = parent.path().join("file");
        std::fs::write(&file, "").unwrap();
        assert_eq!(directory(&file.join("below")).state, State::Missing);
    }
}
