//! A domain's share of the host.

use serde::{Deserialize, Serialize};

use super::{Bytes, CpuSet};

/// What QEMU itself takes beside a guest's memory: 130 to 180 MiB resident for emulated guests at
/// work, translated code included (measured with QEMU 7.2), rounded up.
pub const QEMU_OVERHEAD: Bytes = Bytes::mib(192);

/// Period of a CPU quota in microseconds: libvirt's own default.
const QUOTA_PERIOD: u64 = 100_000;

/// CPUs and memory of a domain, and where on the host they are.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Split {
    /// Virtual CPUs, or the host's threads where the domain is the host itself.
    pub vcpus: u32,
    /// Memory.
    pub memory: Bytes,
    /// For each virtual CPU the hardware threads it runs on; empty: all run anywhere.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub pins: Vec<CpuSet>,
    /// Whether its cores were chosen by labrig, or named in the file, rather than left over by others.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub owns_cores: bool,
    /// NUMA node that its memory is on; none: any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node: Option<u32>,
    /// Size of the huge pages its memory is made of; none: ordinary memory.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hugepages: Option<Bytes>,
    /// Hardware threads for QEMU's own work and its I/O threads; none: any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub emulator: Option<CpuSet>,
    /// Threads beside the virtual CPUs that serve its disks.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub io_threads: u32,
    /// Weight against other domains when CPUs are short; the kernel's default is 1024.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shares: Option<u64>,
    /// CPU time that all its virtual CPUs together may take, in percent of one hardware thread.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub quota: Option<u32>,
    /// Memory of the host that it may take, QEMU's own included.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory_limit: Option<Bytes>,
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde passes references")]
const fn is_zero(number: &u32) -> bool {
    *number == 0
}

/// CPU time as libvirt counts it: microseconds for one virtual CPU in each period.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Quota {
    /// Length of a period in microseconds.
    pub period: u64,
    /// What one virtual CPU may take of it.
    pub quota: u64,
}

impl Split {
    /// Virtual CPUs and memory that may be anywhere on the host.
    pub const fn new(vcpus: u32, memory: Bytes) -> Self {
        Self {
            vcpus,
            memory,
            pins: Vec::new(),
            owns_cores: false,
            node: None,
            hugepages: None,
            emulator: None,
            io_threads: 0,
            shares: None,
            quota: None,
            memory_limit: None,
        }
    }

    /// All hardware threads its virtual CPUs run on; empty: anywhere.
    pub fn cpus(&self) -> CpuSet {
        let mut all = CpuSet::default();
        for cpus in &self.pins {
            all.extend(cpus);
        }
        all
    }

    /// Its quota for each virtual CPU; at least the 1 ms that the kernel wants.
    pub fn vcpu_quota(&self) -> Option<Quota> {
        let percent = u64::from(self.quota?);
        Some(Quota {
            period: QUOTA_PERIOD,
            quota: (QUOTA_PERIOD * percent / 100 / u64::from(self.vcpus.max(1))).max(1_000),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_quota_is_shared_by_the_virtual_cpus() {
        let mut split = Split::new(4, Bytes::mib(64));
        assert_eq!(split.vcpu_quota(), None);
        for (percent, quota) in [(200, 50_000), (100, 25_000), (1, 1_000)] {
            split.quota = Some(percent);
            let period = 100_000;
            assert_eq!(split.vcpu_quota(), Some(Quota { period, quota }));
        }
    }

    #[test]
    fn what_was_not_asked_for_is_not_written() {
        let split = Split::new(1, Bytes::mib(64));
        let text = serde_json::to_string(&split).unwrap();
        assert_eq!(text, r#"{"vcpus":1,"memory":"64MiB"}"#);
        assert_eq!(serde_json::from_str::<Split>(&text).unwrap(), split);
    }
}
