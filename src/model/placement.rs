//! Where a running domain really is on its host.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::{Bytes, CpuSet, Split};

/// CPUs and memory of a running domain, as the kernel and its hypervisor tell.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Placement {
    /// The hardware threads that each virtual CPU may run on.
    pub vcpus: Vec<CpuSet>,
    /// Those that QEMU's own threads may run on.
    pub emulator: CpuSet,
    /// Those that each I/O thread may run on.
    pub io_threads: Vec<CpuSet>,
    /// Its memory.
    pub memory: Bytes,
    /// Its weight for CPU time; none where the host has no control groups for it.
    pub shares: Option<u64>,
}

/// A way in which a running domain is not what it was asked to be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Misplaced {
    /// Another number of virtual CPUs.
    Vcpus {
        /// As asked.
        wanted: usize,
        /// As found.
        found: usize,
    },
    /// A virtual CPU on other hardware threads.
    Vcpu {
        /// Which, from 0.
        vcpu: usize,
        /// As asked.
        wanted: CpuSet,
        /// As found.
        found: CpuSet,
    },
    /// QEMU's own threads on other hardware threads.
    Emulator {
        /// As asked.
        wanted: CpuSet,
        /// As found.
        found: CpuSet,
    },
    /// An I/O thread on other hardware threads, or none of that number.
    IoThread {
        /// Which, from 1.
        thread: usize,
        /// As asked.
        wanted: CpuSet,
        /// As found.
        found: CpuSet,
    },
    /// Another weight for CPU time, or none at all.
    Shares {
        /// As asked.
        wanted: u64,
        /// As found.
        found: Option<u64>,
    },
    /// Another amount of memory.
    Memory {
        /// As asked.
        wanted: Bytes,
        /// As found.
        found: Bytes,
    },
}

impl Misplaced {
    /// Whether the running domain can be moved to where it belongs.
    pub const fn can_be_moved(&self) -> bool {
        match self {
            Self::Vcpu { .. } | Self::Emulator { .. } | Self::IoThread { .. } => true,
            Self::Vcpus { .. } | Self::Shares { .. } | Self::Memory { .. } => false,
        }
    }
}

impl fmt::Display for Misplaced {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let cpus = |cpus: &CpuSet| match cpus.is_empty() {
            true => "nothing that can be told".to_owned(),
            false => format!("CPU {cpus}"),
        };
        match self {
            Self::Vcpus { wanted, found } => write!(f, "{found} vcpus instead of {wanted}"),
            Self::Vcpu {
                vcpu,
                wanted,
                found,
            } => write!(f, "vcpu {vcpu} on {} instead of {wanted}", cpus(found)),
            Self::Emulator { wanted, found } => {
                write!(f, "the emulator on {} instead of {wanted}", cpus(found))
            }
            Self::IoThread {
                thread,
                wanted,
                found,
            } => write!(
                f,
                "I/O thread {thread} on {} instead of {wanted}",
                cpus(found)
            ),
            Self::Shares { wanted, found } => match found {
                Some(found) => write!(f, "{found} CPU shares instead of {wanted}"),
                None => write!(
                    f,
                    "no CPU shares, which need control groups, instead of {wanted}"
                ),
            },
            Self::Memory { wanted, found } => write!(
                f,
                "{} KiB of memory instead of {} KiB",
                found.kib_rounded_up(),
                wanted.kib_rounded_up()
            ),
        }
    }
}

impl Placement {
    /// What is not as a split says. Where that leaves open what runs where, anything is right.
    pub fn misplaced(&self, split: &Split) -> Vec<Misplaced> {
        let mut wrong = Vec::new();
        let (wanted, found) = (split.vcpus as usize, self.vcpus.len());
        if wanted != found {
            wrong.push(Misplaced::Vcpus { wanted, found });
        }
        for (vcpu, (wanted, found)) in split.pins.iter().zip(&self.vcpus).enumerate() {
            if wanted != found {
                wrong.push(Misplaced::Vcpu {
                    vcpu,
                    wanted: wanted.clone(),
                    found: found.clone(),
                });
            }
        }
        if let Some(wanted) = &split.emulator {
            if *wanted != self.emulator {
                wrong.push(Misplaced::Emulator {
                    wanted: wanted.clone(),
                    found: self.emulator.clone(),
                });
            }
            for index in 0..split.io_threads as usize {
                let found = self.io_threads.get(index).cloned().unwrap_or_default();
                if *wanted != found {
                    wrong.push(Misplaced::IoThread {
                        thread: index + 1,
                        wanted: wanted.clone(),
                        found,
                    });
                }
            }
        }
        if let Some(wanted) = split.shares
            && self.shares != Some(wanted)
        {
            let found = self.shares;
            wrong.push(Misplaced::Shares { wanted, found });
        }
        // libvirt counts in KiB.
        if split.memory.kib_rounded_up() != self.memory.kib_rounded_up() {
            wrong.push(Misplaced::Memory {
                wanted: split.memory,
                found: self.memory,
            });
        }
        wrong
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set(text: &str) -> CpuSet {
        text.parse().unwrap()
    }

    #[test]
    fn what_is_not_as_asked_is_named() {
        let mut split = Split::new(2, Bytes::mib(64));
        let right = Placement {
            vcpus: vec![set("0"), set("1")],
            emulator: set("2-3"),
            io_threads: vec![set("2-3")],
            memory: Bytes::mib(64),
            shares: Some(512),
        };
        assert_eq!(right.misplaced(&split), [], "nothing was asked for");
        split.pins = right.vcpus.clone();
        split.emulator = Some(right.emulator.clone());
        split.io_threads = 1;
        split.shares = right.shares;
        assert_eq!(right.misplaced(&split), []);

        let cases: [(fn(&mut Placement), &str); 8] = [
            (|p| p.shares = Some(1024), "1024 CPU shares instead of 512"),
            (
                |p| p.shares = None,
                "no CPU shares, which need control groups, instead of 512",
            ),
            (
                |p| p.vcpus[1] = set("0-3"),
                "vcpu 1 on CPU 0-3 instead of 1",
            ),
            (
                |p| p.emulator = set("0"),
                "the emulator on CPU 0 instead of 2-3",
            ),
            (
                |p| p.io_threads[0] = set("1"),
                "I/O thread 1 on CPU 1 instead of 2-3",
            ),
            (
                |p| p.io_threads.clear(),
                "I/O thread 1 on nothing that can be told instead of 2-3",
            ),
            (
                |p| p.memory = Bytes::mib(32),
                "32768 KiB of memory instead of 65536 KiB",
            ),
            (|p| p.vcpus.truncate(1), "1 vcpus instead of 2"),
        ];
        for (change, said) in cases {
            let mut wrong = right.clone();
            change(&mut wrong);
            let found = wrong.misplaced(&split);
            let texts: Vec<_> = found.iter().map(ToString::to_string).collect();
            assert_eq!(texts, [said]);
        }
    }
}
