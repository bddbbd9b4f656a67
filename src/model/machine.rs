//! The machine that a guest finds itself in, and what a host has for making it.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use super::{Acceleration, Bytes};

/// Type of machine when nothing is said.
const DEFAULT_TYPE: &str = "q35";

/// The machine of a guest.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Machine {
    /// QEMU's type of machine, as written: `q35`, `pc`, or one with a version as in `pc-q35-7.2`.
    #[serde(rename = "type")]
    pub kind: String,
    /// What boots it.
    pub firmware: Firmware,
    /// Its processor.
    pub cpu: GuestCpu,
    /// Whether it has a TPM 2.0.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub tpm: bool,
    /// libvirt XML that is merged into the definition last.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub xml: Option<String>,
}

/// What boots a machine.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Firmware {
    /// QEMU's own BIOS.
    #[default]
    Bios,
    /// UEFI, with variables of the domain's own.
    Uefi,
}

/// A guest's processor.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct GuestCpu {
    /// libvirt's name of the model; none: the host's own with KVM, all that QEMU has in emulation.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// How the virtual CPUs are grouped; none: each is a socket.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub topology: Option<CpuTopology>,
}

/// How virtual CPUs are grouped.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct CpuTopology {
    /// Sockets.
    pub sockets: u32,
    /// Cores of a socket.
    pub cores: u32,
    /// Threads of a core.
    pub threads: u32,
}

/// What makes guests on a host: how they execute, and what QEMU and libvirt have there.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Platform {
    /// How guests execute.
    pub acceleration: Acceleration,
    /// Types of machines, each with the versioned name that it stands for.
    pub machines: BTreeMap<String, String>,
    /// Names of processor models.
    pub cpu_models: BTreeSet<String>,
    /// UEFI firmware, best first.
    pub uefi: Vec<UefiImage>,
    /// Whether there is an emulator of TPMs.
    pub tpm: bool,
    /// Whether libvirt can divide CPU time and limit memory.
    pub cgroups: bool,
    /// Sizes of huge pages that QEMU can take.
    pub hugepages: BTreeSet<Bytes>,
}

/// UEFI firmware of a host, as its descriptor says.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct UefiImage {
    /// The firmware itself.
    pub code: PathBuf,
    /// Its variables as they are at first.
    pub variables: PathBuf,
    /// Types of machines it is for; `*` stands for anything.
    pub machines: Vec<String>,
}

impl Default for Machine {
    fn default() -> Self {
        Self {
            kind: DEFAULT_TYPE.to_owned(),
            firmware: Firmware::default(),
            cpu: GuestCpu::default(),
            tpm: false,
            xml: None,
        }
    }
}

impl CpuTopology {
    /// Virtual CPUs it is for.
    pub const fn vcpus(&self) -> u64 {
        self.sockets as u64 * self.cores as u64 * self.threads as u64
    }
}

impl Platform {
    /// A host of which nothing is known but how guests execute.
    pub const fn unknown(acceleration: Acceleration) -> Self {
        Self {
            acceleration,
            machines: BTreeMap::new(),
            cpu_models: BTreeSet::new(),
            uefi: Vec::new(),
            tpm: false,
            cgroups: false,
            hugepages: BTreeSet::new(),
        }
    }

    /// The versioned name of a type of machine; the type itself where it is not known.
    pub fn machine<'a>(&'a self, kind: &'a str) -> &'a str {
        self.machines.get(kind).map_or(kind, String::as_str)
    }

    /// The UEFI firmware for a type of machine.
    pub fn uefi_for(&self, kind: &str) -> Option<&UefiImage> {
        let machine = self.machine(kind);
        self.uefi.iter().find(|image| {
            let mut patterns = image.machines.iter();
            patterns.any(|pattern| matches(pattern, machine))
        })
    }
}

/// Whether a name is what a pattern says, in which `*` stands for anything.
fn matches(pattern: &str, name: &str) -> bool {
    let mut parts = pattern.split('*');
    let first = parts.next().unwrap_or_default();
    let Some(mut rest) = name.strip_prefix(first) else {
        return false;
    };
    let parts: Vec<_> = parts.collect();
    let Some((last, between)) = parts.split_last() else {
        return rest.is_empty();
    };
    for part in between {
        let Some(at) = rest.find(part) else {
            return false;
        };
        rest = &rest[at + part.len()..];
    }
    rest.ends_with(last)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_of_firmware_descriptors() {
        for (pattern, name, is_match) in [
            ("pc-q35-*", "pc-q35-7.2", true),
            ("pc-q35-*", "pc-i440fx-7.2", false),
            ("pc-*-7.2", "pc-q35-7.2", true),
            ("*", "q35", true),
            ("virt", "virt", true),
            ("virt", "virt-7.2", false),
            ("*-7.2", "pc-q35-7.1", false),
        ] {
            assert_eq!(matches(pattern, name), is_match, "{pattern} {name}");
        }
    }
}
