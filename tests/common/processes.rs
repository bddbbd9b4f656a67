//! Processes of a lab, found by what they are and never by a name.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

/// A process that was seen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Process {
    pub pid: i32,
    /// In clock ticks since the machine's start: tells it from a later one with the same id.
    started: u64,
    pub command: String,
}

impl Process {
    /// All processes whose command line names the directory.
    pub fn naming(directory: &Path) -> Vec<Self> {
        let directory = directory.to_str().unwrap();
        Self::all()
            .into_iter()
            .filter(|process| process.command.contains(directory))
            .collect()
    }

    /// The same with all that share a PID namespace of their own with one of them: what a lab with a
    /// host of its own consists of.
    pub fn around(directory: &Path) -> Vec<Self> {
        let named = Self::naming(directory);
        let home = namespace(std::process::id() as i32);
        let namespaces: BTreeSet<PathBuf> = named
            .iter()
            .filter_map(|process| namespace(process.pid))
            .filter(|namespace| Some(namespace) != home.as_ref())
            .collect();
        let is_inside =
            |process: &Self| namespace(process.pid).is_some_and(|n| namespaces.contains(&n));
        Self::all()
            .into_iter()
            .filter(|process| named.contains(process) || is_inside(process))
            .collect()
    }

    fn all() -> Vec<Self> {
        let me = std::process::id() as i32;
        ids()
            .into_iter()
            .filter(|&pid| pid != me)
            .filter_map(Self::read)
            .collect()
    }

    fn read(pid: i32) -> Option<Self> {
        let command = fs::read(format!("/proc/{pid}/cmdline")).ok()?;
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        // Field 2 is in parentheses and may hold anything; the start time is field 22 (proc(5)).
        let fields: Vec<_> = stat.rsplit_once(')')?.1.split_whitespace().collect();
        if fields.first() == Some(&"Z") {
            return None; // ended; only its parent has not asked yet
        }
        Some(Self {
            pid,
            started: fields.get(19)?.parse().ok()?,
            command: String::from_utf8_lossy(&command).replace('\0', " "),
        })
    }

    /// Whether it runs with root's id outside of all namespaces.
    pub fn is_of_root(&self) -> bool {
        let status = fs::read_to_string(format!("/proc/{}/status", self.pid)).unwrap_or_default();
        let ids = status.lines().find_map(|line| line.strip_prefix("Uid:"));
        ids.is_some_and(|ids| ids.split_whitespace().any(|id| id == "0"))
    }

    pub fn is_alive(&self) -> bool {
        Self::read(self.pid).is_some_and(|now| now.started == self.started)
    }

    /// `kill -9`, if it is still the one that was seen.
    pub fn kill(&self) {
        if self.is_alive() {
            let _ = kill(Pid::from_raw(self.pid), Signal::SIGKILL); // gone in between is as good
        }
    }
}

fn ids() -> Vec<i32> {
    let entries = fs::read_dir("/proc").unwrap();
    entries
        .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok())
        .collect()
}

fn namespace(pid: i32) -> Option<PathBuf> {
    fs::read_link(format!("/proc/{pid}/ns/pid")).ok()
}
