//! Who has what of a host: the budget that splits make.

use std::collections::BTreeSet;

use serde::Serialize;

use crate::model::{Bytes, CpuSet, Domain, DomainKind, HostShape, QEMU_OVERHEAD, Topology};

/// A host divided among the domains of a lab.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Shares {
    /// Whether the topology describes the host; else it was measured.
    pub described: bool,
    /// All hardware threads.
    pub threads: u64,
    /// All cores.
    pub cores: u64,
    /// All memory.
    pub memory: Bytes,
    /// Its NUMA nodes.
    pub nodes: Vec<NodeShare>,
    /// Hardware threads kept for the host itself.
    pub reserve: CpuSet,
    /// What each domain has, in the topology's order.
    pub domains: Vec<DomainShare>,
    /// What QEMU itself takes for all domains.
    pub qemu: Bytes,
    /// Hardware threads that no domain has for itself and the host does not keep.
    pub unpinned: CpuSet,
    /// Hardware threads beyond what the host keeps and the virtual CPUs take.
    pub spare_threads: u64,
    /// Memory beyond what the domains and QEMU take.
    pub spare_memory: Bytes,
    /// Virtual CPUs beyond the hardware threads there are for them.
    pub excess_vcpus: u64,
    /// Memory that is not there.
    pub excess_memory: Bytes,
}

/// A NUMA node and what is bound to it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct NodeShare {
    /// Its number.
    pub node: u32,
    /// Its hardware threads.
    pub cpus: CpuSet,
    /// Its memory.
    pub memory: Bytes,
    /// How much of that belongs to domains that are on this node alone.
    pub bound: Bytes,
}

/// What one domain has.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct DomainShare {
    /// The domain.
    pub name: String,
    /// What kind of machine it is.
    pub kind: &'static str,
    /// Virtual CPUs.
    pub vcpus: u32,
    /// Hardware threads they run on; empty: any.
    pub cpus: CpuSet,
    /// Whether the CPUs were given to it, rather than left over by others.
    pub pinned: bool,
    /// Cores those are on.
    pub cores: u64,
    /// NUMA nodes those are on, or the one its memory is on.
    pub nodes: BTreeSet<u32>,
    /// Hardware threads of QEMU's own threads; empty: any.
    pub emulator: CpuSet,
    /// Memory.
    pub memory: Bytes,
    /// Size of the huge pages its memory is made of.
    pub hugepages: Option<Bytes>,
    /// How many of them it takes.
    pub pages: u64,
}

impl Shares {
    /// Divides `shape` as the topology says.
    pub fn of(topology: &Topology, shape: &HostShape) -> Self {
        let domains: Vec<_> = topology
            .domains
            .iter()
            .filter_map(|domain| DomainShare::of(domain, shape))
            .collect();
        let reserve = topology.host.reserve.clone();
        let mut taken = reserve.clone();
        for domain in domains.iter().filter(|domain| domain.pinned) {
            taken.extend(&domain.cpus);
        }
        let vcpus: u64 = domains.iter().map(|d| u64::from(d.vcpus)).sum();
        let threads = shape.threads.len() as u64;
        let free = threads.saturating_sub(reserve.len() as u64);
        let overhead = |domain: &Domain| match domain.kind {
            DomainKind::Vm(_) => QEMU_OVERHEAD.0,
            _ => 0,
        };
        let qemu = topology.domains.iter().map(overhead).sum();
        let wanted = qemu + domains.iter().map(|d| d.memory.0).sum::<u64>();
        let bound = |node: u32| {
            let on = topology.domains.iter().filter_map(|domain| {
                let split = domain.split.as_ref()?;
                (split.node == Some(node)).then(|| split.memory.0 + overhead(domain))
            });
            Bytes(on.sum())
        };
        Self {
            described: topology.host.described.is_some(),
            threads,
            cores: shape.cores().len() as u64,
            memory: shape.memory(),
            nodes: shape
                .nodes
                .iter()
                .map(|node| NodeShare {
                    node: node.node,
                    cpus: shape.cpus_of(node.node),
                    memory: node.memory,
                    bound: bound(node.node),
                })
                .collect(),
            unpinned: shape.cpus().difference(&taken),
            reserve,
            domains,
            qemu: Bytes(qemu),
            spare_threads: free.saturating_sub(vcpus),
            spare_memory: Bytes(shape.memory().0.saturating_sub(wanted)),
            excess_vcpus: vcpus.saturating_sub(free),
            excess_memory: Bytes(wanted.saturating_sub(shape.memory().0)),
        }
    }
}

impl DomainShare {
    fn of(domain: &Domain, shape: &HostShape) -> Option<Self> {
        let split = domain.split.as_ref()?;
        let cpus = split.cpus();
        let cores: BTreeSet<_> = cpus
            .iter()
            .filter_map(|cpu| Some(shape.thread(cpu)?.core))
            .collect();
        let nodes = match split.node {
            Some(node) => BTreeSet::from([node]),
            None => shape.nodes_of(&cpus),
        };
        let pages = split.hugepages.filter(|size| size.0 > 0);
        Some(Self {
            name: domain.name.to_string(),
            kind: domain.kind.word(),
            vcpus: split.vcpus,
            cpus,
            pinned: split.owns_cores,
            cores: cores.len() as u64,
            nodes,
            emulator: split.emulator.clone().unwrap_or_default(),
            memory: split.memory,
            hugepages: split.hugepages,
            pages: pages.map_or(0, |size| split.memory.0.div_ceil(size.0)),
        })
    }
}
