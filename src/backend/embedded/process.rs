//! Starting and ending an embedded host from outside.

use std::os::unix::process::ExitStatusExt;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use fs_err as fs;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use super::{EmbeddedError, HostDirectory, request_socket};
use crate::backend::files;

/// Longest wait for libvirtd to answer; it takes 0.2 s on an idle machine.
const START_DEADLINE: Duration = Duration::from_secs(30);
/// Longest wait for everything inside to be gone after the init was killed.
const END_DEADLINE: Duration = Duration::from_secs(20);
const POLL: Duration = Duration::from_millis(5);

/// One lab's embedded host.
#[derive(Debug, Clone)]
pub struct EmbeddedHost {
    directory: HostDirectory,
}

impl EmbeddedHost {
    /// The host whose files are in `directory`, running or not.
    pub fn at(directory: HostDirectory) -> Self {
        Self { directory }
    }

    /// Its directory.
    pub fn directory(&self) -> &HostDirectory {
        &self.directory
    }

    /// Whether anything of it lives. The lock tells: its outermost process holds it until the last
    /// process inside is gone, whoever started it and however that one ended.
    pub fn is_running(&self) -> Result<bool, EmbeddedError> {
        let file = match fs::File::open(self.directory.lock()) {
            Ok(file) => file,
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Ok(false),
            Err(e) => return Err(e.into()),
        };
        match file.file().try_lock_shared() {
            Ok(()) => Ok(false),
            Err(std::fs::TryLockError::WouldBlock) => Ok(true),
            Err(std::fs::TryLockError::Error(e)) => Err(e.into()),
        }
    }

    /// Starts it if it does not run, and waits until its libvirtd answers. With `mask_kvm`,
    /// `/dev/kvm` is not there inside: libvirtd would probe it for seconds where it is of no use.
    pub fn start(&self, mask_kvm: bool) -> Result<(), EmbeddedError> {
        self.directory.prepare()?;
        let mut child = if self.is_running()? {
            None
        } else {
            Some(self.spawn(mask_kvm)?)
        };
        let began = Instant::now();
        while !self.answers() {
            if let Some(child) = &mut child
                && let Some(status) = child.try_wait()?
            {
                let status = match status.signal() {
                    Some(signal) => format!("signal {signal}"),
                    None => format!("exit status {}", status.code().unwrap_or_default()),
                };
                return Err(EmbeddedError::Ended {
                    status,
                    log: self.directory.log_tail(),
                });
            }
            if began.elapsed() > START_DEADLINE {
                return Err(EmbeddedError::Deadline {
                    what: "reach the embedded host's libvirtd",
                    deadline: START_DEADLINE,
                    log: self.directory.log_tail(),
                });
            }
            std::thread::sleep(POLL);
        }
        Ok(())
    }

    /// Ends it with all that runs inside; returns when nothing is left.
    pub fn end(&self) -> Result<(), EmbeddedError> {
        let began = Instant::now();
        while self.is_running()? {
            if began.elapsed() > END_DEADLINE {
                return Err(EmbeddedError::Deadline {
                    what: "end the embedded host",
                    deadline: END_DEADLINE,
                    log: self.directory.log_tail(),
                });
            }
            self.kill_init();
            std::thread::sleep(POLL);
        }
        Ok(())
    }

    fn spawn(&self, mask_kvm: bool) -> Result<Child, EmbeddedError> {
        for stale in [
            self.directory.pid(),
            self.directory.socket_service(),
            self.directory.libvirt_socket(),
        ] {
            files::remove_if_there(&stale)?;
        }
        // Process ids of an earlier life would make libvirtd take strangers for its own.
        fs::remove_dir_all(self.directory.root().join("run"))?;
        self.directory.prepare()?;
        let log = fs::File::create(self.directory.log())?.into_file();
        let mut command = Command::new(std::env::current_exe()?);
        command
            .arg("__host")
            .arg(self.directory.root())
            .arg(self.directory.cache());
        if mask_kvm {
            command.arg("--mask-kvm");
        }
        command
            .stdin(Stdio::null())
            .stdout(log.try_clone()?)
            .stderr(log)
            .spawn()
            .map_err(|source| EmbeddedError::Program {
                program: "labrig __host",
                source,
            })
    }

    fn answers(&self) -> bool {
        let libvirt = self.directory.libvirt_socket();
        libvirt.exists()
            && std::os::unix::net::UnixStream::connect(libvirt).is_ok()
            && request_socket(&self.directory.socket_service()).is_ok()
    }

    /// Kills the init. The outermost process is left to see it end: it holds the lock until then.
    fn kill_init(&self) {
        let Some(outermost) = fs::read_to_string(self.directory.pid())
            .ok()
            .and_then(|text| text.trim().parse::<i32>().ok())
        else {
            return; // its pid is written right after the lock is taken; the caller asks again
        };
        let children = fs::read_to_string(format!("/proc/{outermost}/task/{outermost}/children"))
            .unwrap_or_default();
        let init = children
            .split_whitespace()
            .next()
            .and_then(|pid| pid.parse().ok());
        // Between the two namespaces' making the outermost process may be alone.
        let victim = Pid::from_raw(init.unwrap_or(outermost));
        let _ = kill(victim, Signal::SIGKILL); // already gone is as good
    }
}
