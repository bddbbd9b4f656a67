//! A host as a place for domains: hardware threads, cores, NUMA nodes, memory.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use super::{Bytes, CpuSet};

/// What splits divide. Measured, or described by a topology's `host`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct HostShape {
    /// Hardware threads that domains may use, by ascending number.
    pub threads: Vec<HostThread>,
    /// NUMA nodes, by ascending number; at least one.
    pub nodes: Vec<HostNode>,
}

/// A hardware thread, which Linux calls a CPU.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct HostThread {
    /// Its number.
    pub cpu: u32,
    /// The core it is a thread of; cores are counted from 0 without gaps over the whole host, in the
    /// order of their first threads.
    pub core: u32,
    /// The socket.
    pub socket: u32,
    /// The NUMA node.
    pub node: u32,
}

/// A NUMA node.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct HostNode {
    /// Its number.
    pub node: u32,
    /// Its memory.
    pub memory: Bytes,
    /// Its huge pages, by their size.
    pub hugepages: BTreeMap<Bytes, HugePages>,
}

/// Huge pages of one size on one node.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct HugePages {
    /// How many the kernel keeps.
    pub total: u64,
    /// How many of them nobody uses.
    pub free: u64,
}

/// A core with those of its threads that domains may use.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HostCore {
    /// The NUMA node it is on.
    pub node: u32,
    /// Its threads.
    pub cpus: CpuSet,
}

/// A host that is described rather than measured: all sockets, cores and nodes are alike.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RegularHost {
    /// Sockets.
    pub sockets: u32,
    /// Cores of one socket.
    pub cores: u32,
    /// Hardware threads of one core.
    pub threads_per_core: u32,
    /// Memory of all nodes together.
    pub memory: Bytes,
    /// NUMA nodes.
    pub nodes: u32,
    /// Huge pages of all nodes together, by size.
    pub hugepages: BTreeMap<Bytes, u64>,
}

impl RegularHost {
    /// Hardware threads.
    pub const fn threads(&self) -> u64 {
        self.sockets as u64 * self.cores as u64 * self.threads_per_core as u64
    }

    /// The host's shape. Threads are numbered core by core, so that siblings have consecutive
    /// numbers; cores socket by socket. Cores, memory and huge pages are dealt evenly to the nodes
    /// in that order; a rest goes to the first ones.
    pub fn shape(&self) -> HostShape {
        let cores = self.sockets.saturating_mul(self.cores).max(1);
        let nodes = self.nodes.clamp(1, cores);
        let mut threads = Vec::new();
        for core in 0..cores {
            let node = u64::from(core) * u64::from(nodes) / u64::from(cores);
            for thread in 0..self.threads_per_core {
                threads.push(HostThread {
                    cpu: core * self.threads_per_core + thread,
                    core,
                    socket: core / self.cores.max(1),
                    node: node as u32,
                });
            }
        }
        let deal = |all: u64, node: u32| {
            let count = u64::from(nodes);
            all / count + u64::from(u64::from(node) < all % count)
        };
        let nodes = (0..nodes).map(|node| HostNode {
            node,
            memory: Bytes(deal(self.memory.0 >> 20, node) << 20),
            hugepages: self
                .hugepages
                .iter()
                .map(|(size, all)| {
                    let total = deal(*all, node);
                    (*size, HugePages { total, free: total })
                })
                .collect(),
        });
        HostShape {
            threads,
            nodes: nodes.collect(),
        }
    }
}

impl HostShape {
    /// All CPUs that domains may use.
    pub fn cpus(&self) -> CpuSet {
        self.threads.iter().map(|thread| thread.cpu).collect()
    }

    /// Memory of all nodes.
    pub fn memory(&self) -> Bytes {
        Bytes(self.nodes.iter().map(|node| node.memory.0).sum())
    }

    /// Its cores in their order.
    pub fn cores(&self) -> Vec<HostCore> {
        let mut cores: BTreeMap<u32, (u32, Vec<u32>)> = BTreeMap::new();
        for thread in &self.threads {
            let core = cores
                .entry(thread.core)
                .or_insert((thread.node, Vec::new()));
            core.1.push(thread.cpu);
        }
        cores
            .into_values()
            .map(|(node, cpus)| HostCore {
                node,
                cpus: cpus.into_iter().collect(),
            })
            .collect()
    }

    /// A CPU, if it is one of those that domains may use.
    pub fn thread(&self, cpu: u32) -> Option<&HostThread> {
        let found = self.threads.binary_search_by_key(&cpu, |thread| thread.cpu);
        found.ok().map(|index| &self.threads[index])
    }

    /// A node.
    pub fn node(&self, node: u32) -> Option<&HostNode> {
        self.nodes.iter().find(|known| known.node == node)
    }

    /// The nodes that CPUs are on.
    pub fn nodes_of(&self, cpus: &CpuSet) -> BTreeSet<u32> {
        let threads = cpus.iter().filter_map(|cpu| self.thread(cpu));
        threads.map(|thread| thread.node).collect()
    }

    /// The CPUs of a node.
    pub fn cpus_of(&self, node: u32) -> CpuSet {
        let threads = self.threads.iter().filter(|thread| thread.node == node);
        threads.map(|thread| thread.cpu).collect()
    }

    /// CPUs in the order of their cores: siblings side by side.
    pub fn by_core(&self, cpus: &CpuSet) -> Vec<u32> {
        let mut ordered: Vec<_> = cpus
            .iter()
            .map(|cpu| (self.thread(cpu).map_or(u32::MAX, |thread| thread.core), cpu))
            .collect();
        ordered.sort_unstable();
        ordered.into_iter().map(|(_, cpu)| cpu).collect()
    }

    /// Sizes of huge pages that there are, with the pages of all nodes together; sizes without a
    /// page are there as well.
    pub fn hugepages(&self) -> BTreeMap<Bytes, HugePages> {
        let mut all: BTreeMap<Bytes, HugePages> = BTreeMap::new();
        for (size, pages) in self.nodes.iter().flat_map(|node| &node.hugepages) {
            let sum = all.entry(*size).or_default();
            sum.total += pages.total;
            sum.free += pages.free;
        }
        all
    }

    /// What this shape has and `real` lacks, in words. `pinned` tells whether it matters which CPU
    /// is where.
    pub fn beyond(&self, real: &Self, pinned: bool) -> Vec<String> {
        let mut lacks = Vec::new();
        if self.threads.len() > real.threads.len() {
            lacks.push(format!(
                "{} threads instead of {}",
                real.threads.len(),
                self.threads.len()
            ));
        }
        // The kernel keeps some of what is in the machine; nobody writes 251.6 GiB for 256 GiB.
        let tolerated = Bytes(self.memory().0 / 16);
        if self.memory().0 - tolerated.0 > real.memory().0 {
            lacks.push(format!(
                "{} MiB of memory instead of {} MiB",
                real.memory().0 >> 20,
                self.memory().0 >> 20
            ));
        }
        if self.nodes.len() > real.nodes.len() {
            lacks.push(format!(
                "{} NUMA nodes instead of {}",
                real.nodes.len(),
                self.nodes.len()
            ));
        }
        let pages = real.hugepages();
        for (size, wanted) in self.hugepages() {
            let there = pages.get(&size).map_or(0, |pages| pages.total);
            if wanted.total > there {
                lacks.push(format!(
                    "{there} huge pages of {size} instead of {}",
                    wanted.total
                ));
            }
        }
        if pinned && lacks.is_empty() {
            lacks.extend(self.placed_otherwise(real));
        }
        lacks
    }

    /// The first CPU that is on another core or node here than in `real`.
    fn placed_otherwise(&self, real: &Self) -> Option<String> {
        let siblings = |shape: &Self| -> BTreeMap<u32, CpuSet> {
            let cores = shape.cores();
            let pairs = cores
                .iter()
                .flat_map(|core| core.cpus.iter().map(|cpu| (cpu, core.cpus.clone())));
            pairs.collect()
        };
        let (ours, theirs) = (siblings(self), siblings(real));
        ours.iter().find_map(|(cpu, core)| match theirs.get(cpu) {
            None => Some(format!("no CPU {cpu}")),
            Some(other) if other != core => Some(format!(
                "CPU {cpu} on a core with the threads {other} instead of {core}"
            )),
            Some(_) if real.thread(*cpu)?.node != self.thread(*cpu)?.node => Some(format!(
                "CPU {cpu} on node {} instead of {}",
                real.thread(*cpu)?.node,
                self.thread(*cpu)?.node
            )),
            Some(_) => None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn host(sockets: u32, cores: u32, threads_per_core: u32, nodes: u32) -> HostShape {
        RegularHost {
            sockets,
            cores,
            threads_per_core,
            memory: Bytes::mib(1025),
            nodes,
            hugepages: BTreeMap::from([(Bytes::mib(2), 5)]),
        }
        .shape()
    }

    #[test]
    fn siblings_of_a_described_host_are_consecutive() {
        let shape = host(2, 2, 2, 2);
        assert_eq!(shape.cpus().to_string(), "0-7");
        let cores: Vec<_> = shape
            .cores()
            .iter()
            .map(|core| (core.node, core.cpus.to_string()))
            .collect();
        assert_eq!(
            cores,
            [
                (0, "0-1".to_owned()),
                (0, "2-3".to_owned()),
                (1, "4-5".to_owned()),
                (1, "6-7".to_owned())
            ]
        );
        assert_eq!(shape.thread(5).map(|thread| thread.socket), Some(1));
        assert_eq!(shape.memory(), Bytes::mib(1025));
        assert_eq!(shape.nodes[0].memory, Bytes::mib(513));
        assert_eq!(shape.hugepages()[&Bytes::mib(2)].total, 5);
        assert_eq!(shape.nodes[1].hugepages[&Bytes::mib(2)].free, 2);
        assert_eq!(shape.cpus_of(1).to_string(), "4-7");
    }

    #[test]
    fn nodes_may_be_smaller_or_larger_than_sockets() {
        let nodes = |shape: HostShape| {
            let cores = shape.cores();
            cores.iter().map(|core| core.node).collect::<Vec<_>>()
        };
        assert_eq!(nodes(host(1, 4, 1, 2)), [0, 0, 1, 1]);
        assert_eq!(nodes(host(4, 1, 1, 2)), [0, 0, 1, 1]);
        assert_eq!(nodes(host(1, 3, 1, 2)), [0, 0, 1]);
    }

    #[test]
    fn a_host_that_is_too_small_is_told_apart() {
        let (large, small) = (host(2, 2, 2, 2), host(1, 1, 1, 1));
        assert!(small.beyond(&large, false).is_empty());
        assert_eq!(
            large.beyond(&small, false),
            ["1 threads instead of 8", "1 NUMA nodes instead of 2"]
        );
        // The same threads on other cores matter to whoever pins.
        let other = host(2, 4, 1, 2);
        assert!(large.beyond(&other, false).is_empty());
        assert_eq!(
            large.beyond(&other, true),
            ["CPU 0 on a core with the threads 0 instead of 0-1"]
        );
    }
}
