//! What is known of the host a lab runs on.

use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Serialize};

use super::Bytes;

/// How guests execute.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Acceleration {
    /// The kernel's hypervisor: a kernel was really booted with it on this host.
    Kvm,
    /// QEMU's translator (TCG).
    Emulation,
}

impl fmt::Display for Acceleration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Kvm => "KVM",
            Self::Emulation => "emulation",
        })
    }
}

/// The measured host: what plans divide and locks record.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct HostFacts {
    /// How guests execute here.
    pub acceleration: Acceleration,
    /// Model name of the first CPU, from `/proc/cpuinfo`.
    pub cpu_model: String,
    /// Hardware threads labrig may use.
    pub threads: u32,
    /// All memory.
    pub memory: Bytes,
    /// Memory that can be taken without swapping (`MemAvailable`).
    pub memory_free: Bytes,
    /// Running kernel, as `uname -r` prints it.
    pub kernel: String,
    /// libvirt's version, as in `9.0.0`.
    pub libvirt: String,
    /// QEMU's version, as in `7.2.22`.
    pub qemu: String,
    /// QEMU's types of machines, each with the versioned name that it stands for.
    pub machines: BTreeMap<String, String>,
}
