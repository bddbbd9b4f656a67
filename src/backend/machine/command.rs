//! One command on this machine: input, both outputs and the deadline, side by side.

use std::io::{Read, Write};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::thread;
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;

use crate::model::Name;
use crate::ports::{ErrorKind, Exit, PortError};

const CHUNK: usize = 32 << 10;
/// Chunks that wait for a slow writer; then the command waits.
const CHUNKS: usize = 8;

/// What comes of a command.
enum Part {
    Stdout(Vec<u8>),
    Stderr(Vec<u8>),
    End(std::io::Result<ExitStatus>),
}

/// Runs a command to its end and to that of its outputs, as SSH does.
///
/// # Errors
/// `Timeout` after `timeout`, and then its process group is killed; `Fatal` when it cannot be started
/// or its output not be kept.
pub(super) fn run(
    domain: &Name,
    mut command: Command,
    stdin: &[u8],
    (stdout, stderr): (&mut dyn Write, &mut dyn Write),
    timeout: Duration,
) -> Result<Exit, PortError> {
    let began = Instant::now();
    let started = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .process_group(0)
        .spawn();
    let failed = |error| PortError::fatal(format!("run a command on {domain}"), error);
    let child = started.map_err(failed)?;
    let group = Pid::from_raw(i32::try_from(child.id()).unwrap_or(i32::MAX));
    let parts = watch(child, stdin.to_vec());
    let mut exit = None;
    loop {
        let left = timeout.saturating_sub(began.elapsed());
        match parts.recv_timeout(left) {
            Ok(Part::Stdout(bytes)) => stdout.write_all(&bytes).map_err(failed)?,
            Ok(Part::Stderr(bytes)) => stderr.write_all(&bytes).map_err(failed)?,
            Ok(Part::End(status)) => exit = Some(status.map_err(failed)?),
            Err(RecvTimeoutError::Disconnected) => break,
            Err(RecvTimeoutError::Timeout) => {
                let _ = killpg(group, Signal::SIGKILL); // already gone is as good
                let seconds = timeout.as_secs_f64();
                let what = format!("hear from {domain} within {seconds:.1}s");
                return Err(PortError::new(ErrorKind::Timeout, what));
            }
        }
    }
    let code = exit.map_or(1, |status| {
        let signal = status.signal().map(|signal| 128 + signal);
        status.code().or(signal).unwrap_or(1)
    });
    Ok(Exit(code))
}

/// Threads that end with the command and its pipes; nobody waits for them.
fn watch(mut child: Child, stdin: Vec<u8>) -> Receiver<Part> {
    let (sender, parts) = sync_channel(CHUNKS);
    if let Some(mut pipe) = child.stdin.take() {
        // A command that does not read its input closes the pipe.
        thread::spawn(move || pipe.write_all(&stdin));
    }
    if let Some(pipe) = child.stdout.take() {
        copy(pipe, sender.clone(), Part::Stdout);
    }
    if let Some(pipe) = child.stderr.take() {
        copy(pipe, sender.clone(), Part::Stderr);
    }
    thread::spawn(move || sender.send(Part::End(child.wait())));
    parts
}

fn copy(mut pipe: impl Read + Send + 'static, sender: SyncSender<Part>, part: fn(Vec<u8>) -> Part) {
    thread::spawn(move || {
        let mut buffer = vec![0; CHUNK];
        while let Ok(n) = pipe.read(&mut buffer) {
            if n == 0 || sender.send(part(buffer[..n].to_vec())).is_err() {
                return;
            }
        }
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sh(
        script: &str,
        stdin: &[u8],
        timeout: Duration,
    ) -> (Result<i32, ErrorKind>, String, String) {
        let mut command = Command::new("sh");
        command.args(["-c", script]);
        let (mut out, mut err) = (Vec::new(), Vec::new());
        let domain = "host".parse().unwrap();
        let exit = run(&domain, command, stdin, (&mut out, &mut err), timeout);
        (
            exit.map(|exit| exit.0).map_err(|error| error.kind),
            String::from_utf8(out).unwrap(),
            String::from_utf8(err).unwrap(),
        )
    }

    #[test]
    fn both_outputs_the_input_and_the_end_pass() {
        let long = Duration::from_secs(60);
        let big = vec![b'x'; 1 << 20];
        for (script, stdin, exit, out, err) in [
            ("cat; echo no >&2; exit 3", &b"yes"[..], 3, "yes", "no\n"),
            ("kill -9 $$", b"", 137, "", ""),
            ("exec <&-; wc -c </dev/null", &big, 0, "0\n", ""),
            ("wc -c", &big, 0, "1048576\n", ""),
        ] {
            let expected = (Ok(exit), out.to_owned(), err.to_owned());
            assert_eq!(sh(script, stdin, long), expected, "{script}");
        }
    }

    #[test]
    fn a_deadline_ends_the_command() {
        let began = Instant::now();
        let (exit, out, _) = sh("echo a; exec sleep 100", b"", Duration::from_millis(300));
        assert_eq!((exit, out.as_str()), (Err(ErrorKind::Timeout), "a\n"));
        assert!(began.elapsed() < Duration::from_secs(50));
    }
}
