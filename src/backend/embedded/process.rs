//! Starting and ending an embedded host from outside.

use std::os::unix::ffi::OsStrExt;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use fs_err as fs;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use super::{EmbeddedError, HostDirectory, INIT_VERB, request_socket};
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
            // One whose directory was removed under it is out of reach, and its guests are the ones
            // to come.
            self.end()?;
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

    /// The id of its outermost process, which is in all its namespaces but that of processes.
    ///
    /// # Errors
    /// When it was never started.
    pub fn outermost(&self) -> Result<u32, EmbeddedError> {
        let text = fs::read_to_string(self.directory.pid())?;
        let pid = text.trim().parse();
        pid.map_err(|e| std::io::Error::other(format!("no process id: {e}")).into())
    }

    /// Whether it lives though its lock is gone: someone removed its directory by hand.
    pub fn is_stray(&self) -> bool {
        !self.strays().is_empty()
    }

    /// Ends it with all that runs inside; returns when nothing is left, even if its directory was
    /// removed under it.
    pub fn end(&self) -> Result<(), EmbeddedError> {
        let began = Instant::now();
        loop {
            let is_running = self.is_running()?;
            let strays = if is_running {
                Vec::new()
            } else {
                self.strays()
            };
            if !is_running && strays.is_empty() {
                return Ok(());
            }
            if began.elapsed() > END_DEADLINE {
                return Err(EmbeddedError::Deadline {
                    what: "end the embedded host",
                    deadline: END_DEADLINE,
                    log: self.directory.log_tail(),
                });
            }
            if is_running {
                self.kill_init();
            }
            for stray in strays.iter().filter(|stray| stray.is_init) {
                let _ = kill(stray.pid, Signal::SIGKILL); // already gone is as good
            }
            std::thread::sleep(POLL);
        }
    }

    /// Processes of hosts in this directory, by what the kernel says of all processes: the inits,
    /// and the outermost ones, which are there until all inside is gone.
    fn strays(&self) -> Vec<Stray> {
        let Ok(entries) = fs::read_dir("/proc") else {
            return Vec::new();
        };
        let stray = |pid: i32| {
            let read = |file| fs::read(format!("/proc/{pid}/{file}")).unwrap_or_default();
            let is_init = is_init_command(&read("cmdline"), self.directory.root())?;
            // Any program may be called like that; only an init is first in a namespace.
            let is_known = !is_init || is_first_inside(&String::from_utf8_lossy(&read("status")));
            let pid = Pid::from_raw(pid);
            is_known.then_some(Stray { pid, is_init })
        };
        entries
            .filter_map(|entry| stray(entry.ok()?.file_name().to_str()?.parse().ok()?))
            .collect()
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

/// A process of a host that lives though its lock is gone.
struct Stray {
    pid: Pid,
    is_init: bool,
}

/// Whether this command line, as `/proc/PID/cmdline` has it, is that of the init of a host in this
/// directory, or else of the `unshare` around it; none when it is neither.
fn is_init_command(command: &[u8], directory: &Path) -> Option<bool> {
    let words: Vec<_> = command.split(|byte| *byte == 0).collect();
    let verb = words
        .windows(2)
        .position(|pair| pair == [INIT_VERB.as_bytes(), directory.as_os_str().as_bytes()])?;
    match verb {
        1 => Some(true),
        _ => (words[0] == b"unshare").then_some(false),
    }
}

/// Whether `/proc/PID/status` is that of a PID namespace's first process.
fn is_first_inside(status: &str) -> bool {
    status
        .lines()
        .find_map(|line| line.strip_prefix("NSpid:"))
        .is_some_and(|pids| {
            let pids: Vec<_> = pids.split_whitespace().collect();
            pids.len() > 1 && pids.last() == Some(&"1")
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_init_is_known_by_its_command_and_its_place_in_its_namespace() {
        let ours = Path::new("/s/labs/a/host");
        let good = b"/bin/labrig\0__host-init\0/s/labs/a/host\0/s/cache\x003\0--mask-kvm\0";
        assert_eq!(is_init_command(good, ours), Some(true));
        let around = b"unshare\0--\0/bin/labrig\0__host-init\0/s/labs/a/host\0";
        assert_eq!(is_init_command(around, ours), Some(false));
        for other in [
            &b"/bin/labrig\0__host-init\0/s/labs/ab/host\0/s/cache\x003\0"[..],
            b"grep\0-r\0__host-init\0/s/labs/a/host\0",
            b"/bin/labrig\0__host\0/s/labs/a/host\0",
            b"",
        ] {
            assert_eq!(is_init_command(other, ours), None);
        }
        assert!(is_first_inside("Pid:\t77\nNSpid:\t77\t1\n"));
        assert!(!is_first_inside("NSpid:\t77\t12\n"));
        assert!(!is_first_inside("NSpid:\t1\n"));
        assert!(!is_first_inside(""));
    }
}
