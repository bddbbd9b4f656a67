//! Machines that labrig does not make: their files, which no seed brings them.

use std::time::Duration;

use tar::{Builder, Header};

use super::guest::quoted;
use crate::model::{Digest, ObservedMachine};
use crate::ports::{ErrorKind, PortError, Remote, Target};

/// Puts files in place and takes them away.
const FILES: &str = include_str!("assets/files.sh");
/// Longest time for all files of a machine.
const TIMEOUT: Duration = Duration::from_secs(300);
/// How long a machine that answers may take to say what is on it.
const LOOK: Duration = Duration::from_secs(10);
/// How long a connection may take to come about.
const CONNECT: Duration = Duration::from_secs(3);

/// What a machine that answers shows of a lab whose things are in `directory` on it.
///
/// # Errors
/// When it does not answer.
pub fn observe_machine(
    remote: &dyn Remote,
    target: &Target,
    directory: &str,
) -> Result<ObservedMachine, PortError> {
    remote.banner(target, CONNECT)?;
    let command = format!(
        "cat {} 2>/dev/null || :",
        quoted(&format!("{directory}/digest"))
    );
    let output = remote.exec(target, &command, &[], LOOK)?;
    let text = String::from_utf8_lossy(&output.stdout);
    let files = text
        .lines()
        .next_back()
        .and_then(|line| line.trim().parse().ok());
    Ok(ObservedMachine { files })
}

/// Puts files in place, each whole or not at all. Doing it twice does no harm.
pub(super) fn deliver(
    remote: &dyn Remote,
    target: &Target,
    directory: &str,
    files: &[(String, u32, Vec<u8>)],
    digest: Option<Digest>,
) -> Result<(), PortError> {
    let digest = digest.map_or_else(String::new, |digest| digest.to_string());
    let command = call(&["deliver", directory, &digest]);
    run(remote, target, &command, &pack(files), "write files on")
}

/// Takes away all that labrig put on a machine, and puts back what was there before.
///
/// # Errors
/// When it does not answer, or something cannot be put back.
pub fn clear_machine(
    remote: &dyn Remote,
    target: &Target,
    directory: &str,
) -> Result<(), PortError> {
    remote.banner(target, CONNECT)?;
    let command = call(&["remove", directory]);
    run(
        remote,
        target,
        &command,
        &[],
        "take labrig's files away from",
    )
}

fn call(arguments: &[&str]) -> String {
    let arguments: Vec<_> = arguments.iter().map(|argument| quoted(argument)).collect();
    format!("exec sh -c {} files {}", quoted(FILES), arguments.join(" "))
}

fn run(
    remote: &dyn Remote,
    target: &Target,
    command: &str,
    stdin: &[u8],
    what: &str,
) -> Result<(), PortError> {
    let output = remote.exec(target, command, stdin, TIMEOUT)?;
    if output.exit.is_success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&output.stderr).trim().to_owned();
    let message = format!("{what} {}", target.domain);
    Err(PortError::new(ErrorKind::Fatal, message).because(said))
}

fn pack(files: &[(String, u32, Vec<u8>)]) -> Vec<u8> {
    let mut tar = Builder::new(Vec::new());
    for (path, mode, content) in files {
        let mut header = Header::new_gnu();
        header.set_mode(*mode);
        header.set_uid(0);
        header.set_gid(0);
        header.set_mtime(0);
        header.set_size(content.len() as u64);
        // Writing to memory does not fail, and long paths have their GNU form.
        let _ = tar.append_data(
            &mut header,
            path.trim_start_matches('/'),
            content.as_slice(),
        );
    }
    tar.into_inner().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::PermissionsExt;
    use std::sync::Arc;

    use super::*;
    use crate::engine::testing::{FakeGuest, FakeRemote, Shell};
    use crate::model::Digester;

    #[test]
    fn files_come_and_go_and_what_was_there_comes_back() {
        for shell in Shell::ALL {
            let guest = FakeGuest::new(shell);
            let remote = FakeRemote([("gen".to_owned(), Arc::clone(&guest))].into());
            let target = Target {
                domain: "gen".parse().unwrap(),
                address: [127, 0, 0, 1].into(),
            };
            let path = |name: &str| guest.path(name).to_str().unwrap().to_owned();
            let (old, new) = (path("etc/old one"), path("srv/deep/new"));
            fs::create_dir(guest.path("etc")).unwrap();
            fs::write(&old, "theirs").unwrap();
            let digest = |text: &str| Some(Digester::default().field(text).finish());
            let state = "state/lab";
            let seen = || observe_machine(&remote, &target, state).unwrap().files;
            assert_eq!(seen(), None);

            let both = [
                (old.clone(), 0o640, b"ours".to_vec()),
                (new.clone(), 0o755, b"#!".to_vec()),
            ];
            for _ in 0..2 {
                deliver(&remote, &target, state, &both, digest("both")).unwrap();
                assert_eq!(fs::read_to_string(&old).unwrap(), "ours");
                let mode = fs::metadata(&new).unwrap().permissions().mode();
                assert_eq!(mode & 0o777, 0o755);
                assert_eq!(seen(), digest("both"));
            }
            deliver(&remote, &target, state, &both[1..], digest("one")).unwrap();
            assert_eq!(fs::read_to_string(&old).unwrap(), "theirs");
            deliver(&remote, &target, state, &both, digest("both")).unwrap();
            clear_machine(&remote, &target, state).unwrap();
            assert_eq!(fs::read_to_string(&old).unwrap(), "theirs");
            assert!(!fs::exists(&new).unwrap());
            assert!(!fs::exists(guest.path(state)).unwrap());
            // Once more, when nothing is there.
            clear_machine(&remote, &target, state).unwrap();
        }
    }

    #[test]
    fn a_file_that_cannot_be_put_says_so_and_counts_as_missing() {
        let guest = FakeGuest::new(Shell::Dash);
        let remote = FakeRemote([("gen".to_owned(), Arc::clone(&guest))].into());
        let target = Target {
            domain: "gen".parse().unwrap(),
            address: [127, 0, 0, 1].into(),
        };
        fs::create_dir(guest.path("taken")).unwrap();
        let to = guest.path("taken").to_str().unwrap().to_owned();
        let digest = Some(Digester::default().field("x").finish());
        let files = [(to, 0o644, b"x".to_vec())];
        let error = deliver(&remote, &target, "state", &files, digest).unwrap_err();
        assert!(crate::ports::chain(&error).contains("taken is a directory"));
        let seen = observe_machine(&remote, &target, "state").unwrap();
        assert_eq!(seen.files, None);
    }
}
