//! Runs one external program to its end: no terminal, a fixed locale, its own process group, and
//! the end of what it complained about in the error. What is kept of its output is bounded, however
//! much it says.

use std::collections::VecDeque;
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, killpg};
use nix::sys::wait::{Id, WaitPidFlag, WaitStatus, waitid};
use nix::unistd::{AccessFlags, Pid, access};

use crate::ports::{ErrorKind, PortError};

/// How many of the last lines of stderr an error shows.
const TAIL_LINES: usize = 12;
/// Longer lines are cut, so that an error stays readable; no more of a line is ever kept.
const TAIL_LINE_BYTES: usize = 400;
/// The most that a program may print: no danger to memory, and far more than the largest that is
/// asked for, an unpacked kernel module.
const STDOUT_BYTES: usize = 16 << 20;
/// Time between looks at whether the program has ended.
const POLL: Duration = Duration::from_millis(10);
/// Time a program gets to clean up after SIGTERM.
const GRACE: Duration = Duration::from_secs(3);

/// Why a program did not do its work.
#[derive(Debug, thiserror::Error)]
pub enum ToolError {
    /// It is not installed.
    #[error("{0} is not installed")]
    Missing(String),
    /// It could not be started, or talking to it failed.
    #[error("start or read {0}")]
    Io(String, #[source] io::Error),
    /// It ended with a failure.
    #[error("{program} {how}{}", shown_tail(.stderr))]
    Failed {
        /// The program.
        program: String,
        /// How it ended: `exited with 1`.
        how: String,
        /// The last lines of its stderr.
        stderr: Vec<String>,
    },
    /// It did not end in time and was killed.
    #[error("{program} took longer than {} s{}", .limit.as_secs(), shown_tail(.stderr))]
    Deadline {
        /// The program.
        program: String,
        /// The time it had.
        limit: Duration,
        /// The last lines of its stderr.
        stderr: Vec<String>,
    },
    /// It printed more than is kept; a part of it could be taken for the whole.
    #[error("{0} printed more than {limit} MiB", limit = STDOUT_BYTES >> 20)]
    TooMuch(String),
}

fn shown_tail(lines: &[String]) -> String {
    if lines.is_empty() {
        String::new()
    } else {
        format!("; it said:\n  {}", lines.join("\n  "))
    }
}

impl From<ToolError> for PortError {
    fn from(error: ToolError) -> Self {
        match &error {
            ToolError::Missing(program) => Self::new(ErrorKind::Fatal, format!("run {program}"))
                .hint("install it: scripts/install-packages installs all that labrig needs"),
            ToolError::Deadline { program, .. } => {
                Self::new(ErrorKind::Timeout, format!("run {program}"))
            }
            ToolError::Io(program, _)
            | ToolError::Failed { program, .. }
            | ToolError::TooMuch(program) => Self::new(ErrorKind::Fatal, format!("run {program}")),
        }
        .because(error)
    }
}

/// A program about to be run.
pub struct Tool {
    name: String,
    command: Command,
    stdin: Option<File>,
    limit: Duration,
}

impl Tool {
    /// A program by name, found in `PATH` or where an ordinary user's `PATH` does not look.
    pub fn new(name: &str) -> Self {
        let mut command = Command::new(name);
        command
            .env("LC_ALL", "C.UTF-8")
            .env("PATH", search_path(std::env::var_os("PATH").as_deref()))
            .process_group(0);
        Self {
            name: name.to_owned(),
            command,
            stdin: None,
            limit: Duration::from_secs(60),
        }
    }

    /// Calls it by another name in errors: that of the program it runs in turn.
    #[must_use]
    pub fn called(mut self, name: &str) -> Self {
        self.name = name.to_owned();
        self
    }

    /// Adds arguments.
    #[must_use]
    pub fn args<S: AsRef<OsStr>>(mut self, args: impl IntoIterator<Item = S>) -> Self {
        self.command.args(args);
        self
    }

    /// Adds one argument.
    #[must_use]
    pub fn arg(self, arg: impl AsRef<OsStr>) -> Self {
        self.args([arg])
    }

    /// Sets an environment variable.
    #[must_use]
    pub fn env(mut self, name: &str, value: impl AsRef<OsStr>) -> Self {
        self.command.env(name, value);
        self
    }

    /// Feeds it a file.
    #[must_use]
    pub fn stdin(mut self, file: File) -> Self {
        self.stdin = Some(file);
        self
    }

    /// Gives it this long instead of a minute.
    #[must_use]
    pub fn limit(mut self, limit: Duration) -> Self {
        self.limit = limit;
        self
    }

    /// Runs it; gives what it printed.
    ///
    /// # Errors
    /// When it is missing, fails, takes too long, or prints more than 16 MiB.
    pub fn run(self) -> Result<Vec<u8>, ToolError> {
        self.run_heard(&|_| {})
    }

    /// Runs it, and passes on every line of its stderr as it comes; long lines are cut.
    ///
    /// # Errors
    /// As [`Self::run`].
    pub fn run_heard(mut self, heard: &(dyn Fn(&str) + Sync)) -> Result<Vec<u8>, ToolError> {
        self.command
            .stdin(self.stdin.take().map_or_else(Stdio::null, Stdio::from))
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        die_with_us(&mut self.command);
        tracing::debug!(command = ?self.command, "run a program");
        let child = self.command.spawn().map_err(|e| match e.kind() {
            io::ErrorKind::NotFound => ToolError::Missing(self.name.clone()),
            _ => ToolError::Io(self.name.clone(), e),
        })?;
        let mut group = Group(child);
        let (stdout, stderr) = (group.0.stdout.take(), group.0.stderr.take());
        let (status, printed, tail) = thread::scope(|scope| {
            let printed = scope.spawn(move || stdout.map_or_else(|| Ok(Some(Vec::new())), all_of));
            let tail = scope.spawn(move || stderr.map_or_else(Vec::new, |s| last_lines(s, heard)));
            let status = group.wait(self.limit);
            (status, printed.join(), tail.join().unwrap_or_default())
        });
        let io_error = |e| ToolError::Io(self.name.clone(), e);
        match status.map_err(io_error)? {
            None => Err(ToolError::Deadline {
                program: self.name,
                limit: self.limit,
                stderr: tail,
            }),
            Some(status) if !status.success() => Err(ToolError::Failed {
                program: self.name,
                how: how(status),
                stderr: tail,
            }),
            Some(_) => printed
                .unwrap_or_else(|_| Err(io::Error::other("its reader failed")))
                .map_err(io_error)?
                .ok_or(ToolError::TooMuch(self.name)),
        }
    }
}

/// `PATH` with the directories of administration tools, which an ordinary user's often lacks.
fn search_path(path: Option<&OsStr>) -> OsString {
    let mut dirs: Vec<_> = path
        .map(std::env::split_paths)
        .into_iter()
        .flatten()
        .collect();
    for dir in ["/usr/local/sbin", "/usr/sbin", "/sbin", "/usr/bin", "/bin"] {
        if !dirs.iter().any(|d| d.as_os_str() == dir) {
            dirs.push(dir.into());
        }
    }
    // Splitting took out every colon, so that joining cannot fail.
    std::env::join_paths(dirs).unwrap_or_default()
}

/// Where a program is, if it is installed.
pub fn find(program: &str) -> Option<PathBuf> {
    let path = search_path(std::env::var_os("PATH").as_deref());
    std::env::split_paths(&path)
        .map(|directory| directory.join(program))
        .find(|file| access(file, AccessFlags::X_OK).is_ok() && file.is_file())
}

fn how(status: ExitStatus) -> String {
    match (status.code(), status.signal()) {
        (Some(code), _) => format!("exited with {code}"),
        (None, Some(signal)) => format!("was killed by signal {signal}"),
        (None, None) => "ended oddly".to_owned(),
    }
}

/// Asks the kernel to end the program when labrig dies, however that happens. SIGKILL, since
/// `unshare` waits with the milder signals blocked.
fn die_with_us(command: &mut Command) {
    // SAFETY: the closure makes one system call between fork and exec, which is allowed there.
    unsafe {
        command
            .pre_exec(|| nix::sys::prctl::set_pdeathsig(Signal::SIGKILL).map_err(io::Error::from));
    }
}

/// All that a stream has; none when that is too much. It is read to its end in any case: whoever
/// writes to it must not be held up.
fn all_of(mut stream: impl Read) -> io::Result<Option<Vec<u8>>> {
    let mut bytes = Vec::new();
    stream
        .by_ref()
        .take(STDOUT_BYTES as u64)
        .read_to_end(&mut bytes)?;
    let rest = io::copy(&mut stream, &mut io::sink())?;
    Ok((rest == 0).then_some(bytes))
}

fn last_lines(stream: impl Read, heard: &(dyn Fn(&str) + Sync)) -> Vec<String> {
    let mut tail = VecDeque::new();
    let mut reader = BufReader::new(stream);
    let mut line = Vec::new();
    // Byte lines, since what a program complains about need not be UTF-8.
    while reader
        .by_ref()
        .take(TAIL_LINE_BYTES as u64)
        .read_until(b'\n', &mut line)
        .is_ok_and(|n| n > 0)
    {
        // A reader that fails here fails at the next line again.
        if !line.ends_with(b"\n") {
            let _ = reader.skip_until(b'\n');
        }
        let text = String::from_utf8_lossy(&line).trim_end().to_owned();
        line.clear();
        if text.is_empty() {
            continue;
        }
        heard(&text);
        tail.push_back(text);
        if tail.len() > TAIL_LINES {
            tail.pop_front();
        }
    }
    tail.into()
}

/// A child and its process group, which does not outlive this value.
struct Group(Child);

impl Group {
    fn pid(&self) -> Pid {
        Pid::from_raw(self.0.id().cast_signed())
    }

    /// Waits; none when the time is up. Nothing of the group is left afterwards: what would be
    /// left holds our pipes open.
    fn wait(&mut self, limit: Duration) -> io::Result<Option<ExitStatus>> {
        let in_time = self.ends_within(limit)?;
        if !in_time {
            let _ = killpg(self.pid(), Signal::SIGTERM);
            self.ends_within(GRACE)?;
        }
        let _ = killpg(self.pid(), Signal::SIGKILL);
        Ok(Some(self.0.wait()?).filter(|_| in_time))
    }

    /// Looks whether the child ends, without reaping it, so that its group id stays ours.
    fn ends_within(&self, limit: Duration) -> io::Result<bool> {
        let deadline = Instant::now() + limit;
        let flags = WaitPidFlag::WEXITED | WaitPidFlag::WNOHANG | WaitPidFlag::WNOWAIT;
        while Instant::now() < deadline {
            if waitid(Id::Pid(self.pid()), flags)? != WaitStatus::StillAlive {
                return Ok(true);
            }
            thread::sleep(POLL);
        }
        Ok(false)
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        if matches!(self.0.try_wait(), Ok(None)) {
            let _ = self.wait(Duration::ZERO);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use super::*;

    fn sh(script: &str) -> Tool {
        Tool::new("sh").args(["-c", script])
    }

    #[test]
    fn gives_what_is_printed() {
        assert_eq!(sh("printf hello").run().unwrap(), b"hello");
    }

    #[test]
    fn a_failure_shows_the_end_of_stderr() {
        let error = sh("for i in $(seq 1 50); do echo line $i >&2; done; exit 3")
            .run()
            .unwrap_err();
        let text = error.to_string();
        assert!(
            text.contains("exited with 3") && text.contains("line 50"),
            "{text}"
        );
        assert!(!text.contains("line 38\n"), "{text}");
    }

    #[test]
    fn too_much_is_an_error_and_holds_nobody_up() {
        let printing = |bytes: usize| sh(&format!("head -c {bytes} /dev/zero")).run();
        assert_eq!(printing(STDOUT_BYTES).unwrap().len(), STDOUT_BYTES);
        assert!(matches!(
            printing(STDOUT_BYTES + (1 << 20)),
            Err(ToolError::TooMuch(program)) if program == "sh"
        ));
    }

    #[test]
    fn long_lines_are_cut_and_the_next_are_whole() {
        let long = "x".repeat(3 * TAIL_LINE_BYTES);
        let exact = "y".repeat(TAIL_LINE_BYTES);
        let heard = Mutex::new(Vec::new());
        let said = format!("{long}\nshort\n{exact}\n\nend {long}");
        let tail = last_lines(said.as_bytes(), &|line| {
            heard.lock().unwrap().push(line.to_owned());
        });
        let end = format!("end {long}");
        let expected = [
            &long[..TAIL_LINE_BYTES],
            "short",
            &exact,
            &end[..TAIL_LINE_BYTES],
        ];
        assert_eq!(tail, expected);
        assert_eq!(*heard.lock().unwrap(), expected);
    }

    #[test]
    fn a_missing_program_is_named_with_a_hint() {
        let error = PortError::from(Tool::new("labrig-no-such-tool").run().unwrap_err());
        assert_eq!(error.what, "run labrig-no-such-tool");
        assert!(error.hint.is_some());
    }

    #[test]
    fn the_deadline_ends_the_whole_group() {
        let started = Instant::now();
        let error = sh("sleep 100 & sleep 100")
            .limit(Duration::from_millis(100))
            .run()
            .unwrap_err();
        assert!(matches!(error, ToolError::Deadline { .. }));
        assert!(started.elapsed() < Duration::from_secs(20));
    }

    #[test]
    fn administration_tools_are_found_without_their_directory_in_path() {
        let path = search_path(Some("/opt/bin:/usr/bin".as_ref()));
        assert_eq!(
            path,
            "/opt/bin:/usr/bin:/usr/local/sbin:/usr/sbin:/sbin:/bin"
        );
    }
}
