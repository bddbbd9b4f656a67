//! Settings of a guest's operating system.

use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Serialize};

/// Settings of one guest's operating system.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct GuestSettings {
    /// Kernel parameters: key, as sysctl(8) takes it, and value, its parts separated by one space.
    pub sysctl: BTreeMap<String, String>,
    /// Resource limits of every session and service.
    pub limits: BTreeMap<Limit, LimitRange>,
    /// systemd units, with their whole names, and what they are to be at boot.
    pub services: BTreeMap<String, ServiceState>,
    /// Users that the guest is to have beside those of its image, in the file's order.
    pub users: Vec<User>,
    /// Keys that root may log in with beside labrig's, as lines of an authorized_keys file.
    pub ssh_keys: Vec<String>,
}

/// What a unit is at boot.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ServiceState {
    /// It is started.
    Enabled,
    /// It is not started by itself.
    Disabled,
    /// It cannot be started.
    Masked,
}

/// A user of a guest.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct User {
    /// Login name.
    pub name: String,
    /// Whether it is one for a service: a low number and no home directory.
    pub system: bool,
    /// Its shell.
    pub shell: String,
    /// Groups beside its own; those that the guest lacks are made.
    pub groups: Vec<String>,
    /// Keys it may log in with.
    pub ssh_keys: Vec<String>,
    /// Its password, hashed as crypt(5) says; none: it has none.
    pub password: Option<String>,
}

/// A resource that a process may be limited in, see getrlimit(2).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Limit {
    /// Address space.
    As,
    /// Core file.
    Core,
    /// Data segment.
    Data,
    /// File written.
    Fsize,
    /// Locked memory.
    Memlock,
    /// POSIX message queues.
    Msgqueue,
    /// Open files.
    Nofile,
    /// Processes of a user.
    Nproc,
    /// Real-time priority.
    Rtprio,
    /// Signals that wait.
    Sigpending,
    /// Stack.
    Stack,
}

/// The limit that a process has, and the one up to which it may raise it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct LimitRange {
    /// The limit; none: unlimited. Sizes are in bytes.
    pub soft: Option<u64>,
    /// The largest limit; none: unlimited.
    pub hard: Option<u64>,
}

impl GuestSettings {
    /// Whether nothing is set.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Where the kernel shows a parameter, below `/proc/sys`. As sysctl(8) says: the first
    /// separator of the key decides, and the other one stands for itself within a name.
    pub fn sysctl_path(key: &str) -> String {
        match key.find(['.', '/']).map(|at| &key[at..=at]) {
            Some(".") => key
                .chars()
                .map(|c| match c {
                    '.' => '/',
                    '/' => '.',
                    c => c,
                })
                .collect(),
            _ => key.to_owned(),
        }
    }
}

impl Limit {
    /// Every limit, with the word for it in a topology and in limits.conf(5).
    pub const ALL: [(&'static str, Self); 11] = [
        ("as", Self::As),
        ("core", Self::Core),
        ("data", Self::Data),
        ("fsize", Self::Fsize),
        ("memlock", Self::Memlock),
        ("msgqueue", Self::Msgqueue),
        ("nofile", Self::Nofile),
        ("nproc", Self::Nproc),
        ("rtprio", Self::Rtprio),
        ("sigpending", Self::Sigpending),
        ("stack", Self::Stack),
    ];

    /// Whether it is a size, rather than a number of things.
    pub const fn is_size(self) -> bool {
        !matches!(
            self,
            Self::Nofile | Self::Nproc | Self::Rtprio | Self::Sigpending
        )
    }

    /// Bytes in the unit that limits.conf(5) and shells count it in.
    pub const fn unit(self) -> u64 {
        match self {
            // The one size that is counted in bytes there.
            Self::Msgqueue => 1,
            _ if self.is_size() => 1024,
            _ => 1,
        }
    }

    /// What `/proc/PID/limits` calls it.
    pub const fn kernel_name(self) -> &'static str {
        match self {
            Self::As => "Max address space",
            Self::Core => "Max core file size",
            Self::Data => "Max data size",
            Self::Fsize => "Max file size",
            Self::Memlock => "Max locked memory",
            Self::Msgqueue => "Max msgqueue size",
            Self::Nofile => "Max open files",
            Self::Nproc => "Max processes",
            Self::Rtprio => "Max realtime priority",
            Self::Sigpending => "Max pending signals",
            Self::Stack => "Max stack size",
        }
    }
}

impl fmt::Display for Limit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let word = Self::ALL.iter().find(|(_, limit)| limit == self);
        f.write_str(word.map_or("", |(word, _)| word))
    }
}

impl fmt::Display for ServiceState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Enabled => "enabled",
            Self::Disabled => "disabled",
            Self::Masked => "masked",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sysctl_key_is_found_below_proc_sys() {
        for (key, path) in [
            ("vm.swappiness", "vm/swappiness"),
            (
                "net/ipv4/conf/eth0.5/forwarding",
                "net/ipv4/conf/eth0.5/forwarding",
            ),
            (
                "net.ipv4.conf.eth0/5.forwarding",
                "net/ipv4/conf/eth0.5/forwarding",
            ),
        ] {
            assert_eq!(GuestSettings::sysctl_path(key), path);
        }
    }
}
