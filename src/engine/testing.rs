//! Stateful stand-ins for guests, archive and time: a guest is a directory and a real shell.

use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use jiff::Timestamp;
use tempfile::TempDir;

use crate::model::{Event, Outcome, Trial};
use crate::ports::{Attempt, Attempts, Clock, ErrorKind, Exit, Output, PortError, Remote, Target};

/// Time that passes as it is, and at once for whoever sleeps.
pub struct FastClock {
    skipped: Mutex<Duration>,
}

impl FastClock {
    /// A clock that nobody slept on yet.
    pub fn new() -> Arc<Self> {
        Arc::new(Self {
            skipped: Mutex::default(),
        })
    }
}

impl Clock for FastClock {
    fn now(&self) -> Timestamp {
        Timestamp::now()
    }

    fn monotonic(&self) -> Instant {
        Instant::now() + *self.skipped.lock().unwrap()
    }

    fn sleep(&self, span: Duration) {
        *self.skipped.lock().unwrap() += span;
    }
}

/// Which shell and tools a guest has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shell {
    /// dash with GNU tools.
    Dash,
    /// Nothing but busybox.
    Busybox,
}

impl Shell {
    /// Both kinds of guest.
    pub const ALL: [Self; 2] = [Self::Dash, Self::Busybox];
}

/// What goes wrong with a call.
#[allow(
    clippy::enum_variant_names,
    reason = "all faults of today drop something; others may come"
)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// The connection breaks before the command arrives.
    DropBefore,
    /// The connection breaks when the command has run.
    DropAfter,
    /// The connection breaks while the command is at work, which goes on.
    DropDuring,
    /// Half of the input arrives, then the connection breaks.
    DropInput,
}

/// Stands for a guest's own directory in what it is told, so that guests with equal paths do not
/// meet on this machine.
pub const ROOT: &str = "/GUEST";

/// A guest: a directory, a shell, and faults to come.
pub struct FakeGuest {
    root: TempDir,
    shell: Shell,
    faults: Mutex<Vec<(String, Fault)>>,
    calls: Mutex<Vec<String>>,
}

impl FakeGuest {
    /// A guest that was just started.
    pub fn new(shell: Shell) -> Arc<Self> {
        let root = tempfile::Builder::new()
            .prefix("labrig-guest-")
            .tempdir()
            .unwrap();
        if shell == Shell::Busybox {
            let bin = root.path().join("bin");
            std::fs::create_dir(&bin).unwrap();
            let installed = Command::new("busybox")
                .args(["--install", "-s"])
                .arg(&bin)
                .status()
                .unwrap();
            assert!(installed.success());
        }
        Arc::new(Self {
            root,
            shell,
            faults: Mutex::default(),
            calls: Mutex::default(),
        })
    }

    /// Its directory.
    pub fn path(&self, name: &str) -> PathBuf {
        self.root.path().join(name)
    }

    /// Where its runner lives.
    pub fn base(&self) -> String {
        self.path("run/labrig").to_str().unwrap().to_owned()
    }

    /// Lets the next call whose command holds `text` go wrong.
    pub fn fault(&self, text: &str, fault: Fault) {
        self.faults.lock().unwrap().push((text.to_owned(), fault));
    }

    /// How many calls had `text` in their command.
    pub fn calls(&self, text: &str) -> usize {
        self.calls
            .lock()
            .unwrap()
            .iter()
            .filter(|call| call.contains(text))
            .count()
    }

    fn command(&self, command: &str) -> Command {
        let command = command.replace(ROOT, self.root.path().to_str().unwrap());
        let (program, path) = match self.shell {
            Shell::Dash => (PathBuf::from("dash"), "/usr/bin:/bin".to_owned()),
            Shell::Busybox => (
                self.path("bin/sh"),
                self.path("bin").to_str().unwrap().to_owned(),
            ),
        };
        let mut shell = Command::new(program);
        shell
            .arg("-c")
            .arg(command)
            .env_clear()
            .env("PATH", path)
            .env("HOME", self.root.path());
        shell
            .env("GUEST", self.root.path())
            .current_dir(self.root.path());
        shell
    }

    fn take_fault(&self, command: &str) -> Option<Fault> {
        self.calls.lock().unwrap().push(command.to_owned());
        let mut faults = self.faults.lock().unwrap();
        let at = faults
            .iter()
            .position(|(text, _)| command.contains(text.as_str()))?;
        Some(faults.remove(at).1)
    }
}

/// All guests of a test, by domain.
#[derive(Default)]
pub struct FakeRemote(pub BTreeMap<String, Arc<FakeGuest>>);

fn broken() -> PortError {
    PortError::new(ErrorKind::Connection, "talk to the guest").because("connection reset by peer")
}

impl FakeRemote {
    fn guest(&self, target: &Target) -> Result<&FakeGuest, PortError> {
        self.0
            .get(target.domain.as_str())
            .map(Arc::as_ref)
            .ok_or_else(broken)
    }
}

impl Remote for FakeRemote {
    fn banner(&self, target: &Target, _: Duration) -> Result<(), PortError> {
        self.guest(target).map(|_| ())
    }

    fn exec(
        &self,
        target: &Target,
        command: &str,
        stdin: &[u8],
        timeout: Duration,
    ) -> Result<Output, PortError> {
        let guest = self.guest(target)?;
        let fault = guest.take_fault(command);
        if fault == Some(Fault::DropBefore) {
            return Err(broken());
        }
        let mut child = guest
            .command(command)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let arriving = if fault == Some(Fault::DropInput) {
            &stdin[..stdin.len() / 2]
        } else {
            stdin
        };
        // A command that does not read its input closes the pipe.
        let _ = child.stdin.take().unwrap().write_all(arriving);
        if fault == Some(Fault::DropDuring) {
            std::thread::sleep(Duration::from_millis(300));
            child.kill().unwrap();
            child.wait().unwrap();
            return Err(broken());
        }
        let begun = Instant::now();
        let output = child.wait_with_output().unwrap();
        assert!(
            begun.elapsed() < timeout,
            "the command took longer than its caller would wait"
        );
        match fault {
            Some(Fault::DropAfter | Fault::DropInput) => Err(broken()),
            _ => Ok(Output {
                exit: Exit(exit_code(output.status)),
                stdout: output.stdout,
                stderr: output.stderr,
            }),
        }
    }

    fn stream(
        &self,
        target: &Target,
        command: &str,
        stdout: &mut dyn Write,
        _: &mut dyn Write,
        _: Duration,
    ) -> Result<Exit, PortError> {
        let guest = self.guest(target)?;
        let fault = guest.take_fault(command);
        let mut child = guest
            .command(command)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut pipe = child.stdout.take().unwrap();
        if fault.is_some() {
            let mut start = vec![0; 1000];
            let length = pipe.read(&mut start).unwrap();
            let written = stdout.write_all(&start[..length]);
            drop(pipe);
            child.wait().unwrap();
            written?;
            return Err(broken());
        }
        let copied = std::io::copy(&mut pipe, stdout);
        let status = child.wait().unwrap();
        copied?;
        Ok(Exit(exit_code(status)))
    }
}

fn exit_code(status: std::process::ExitStatus) -> i32 {
    use std::os::unix::process::ExitStatusExt;
    status
        .code()
        .unwrap_or_else(|| 128 + status.signal().unwrap())
}

/// An archive in a directory: committed attempts and what was written down.
pub struct FakeArchive {
    directory: TempDir,
    committed: Mutex<Vec<(Trial, Attempt, Outcome)>>,
    events: Mutex<Vec<Event>>,
    begun: Mutex<u32>,
}

impl FakeArchive {
    /// An empty archive.
    pub fn new() -> Arc<Self> {
        let directory = tempfile::Builder::new()
            .prefix("labrig-archive-")
            .tempdir()
            .unwrap();
        Arc::new(Self {
            directory,
            committed: Mutex::default(),
            events: Mutex::default(),
            begun: Mutex::default(),
        })
    }

    /// Its directory.
    pub fn path(&self) -> &Path {
        self.directory.path()
    }

    /// What was committed, in order.
    pub fn committed(&self) -> Vec<(Trial, Attempt, Outcome)> {
        self.committed.lock().unwrap().clone()
    }

    /// What was written down, in order.
    pub fn events(&self) -> Vec<Event> {
        self.events.lock().unwrap().clone()
    }

    /// How many attempts of a trial are committed.
    fn attempts(&self, trial: &Trial) -> u32 {
        let committed = self.committed.lock().unwrap();
        u32::try_from(
            committed
                .iter()
                .filter(|(done, ..)| done.identity == trial.identity)
                .count(),
        )
        .unwrap()
    }
}

impl Attempts for FakeArchive {
    fn is_done(&self, trial: &Trial) -> bool {
        let committed = self.committed.lock().unwrap();
        committed
            .iter()
            .any(|(done, _, outcome)| done.identity == trial.identity && outcome.is_good())
    }

    fn begin(&self, trial: &Trial) -> Result<Attempt, PortError> {
        let number = self.attempts(trial) + 1;
        let mut begun = self.begun.lock().unwrap();
        *begun += 1;
        let directory = self.path().join(format!(
            "{:04}-{}-{number}-{begun}",
            trial.number,
            trial.label()
        ));
        std::fs::create_dir(&directory)?;
        Ok(Attempt { number, directory })
    }

    fn commit(&self, trial: &Trial, attempt: Attempt, outcome: &Outcome) -> Result<(), PortError> {
        self.committed
            .lock()
            .unwrap()
            .push((trial.clone(), attempt, outcome.clone()));
        Ok(())
    }

    fn record(&self, event: &Event) -> Result<(), PortError> {
        self.events.lock().unwrap().push(event.clone());
        Ok(())
    }
}
