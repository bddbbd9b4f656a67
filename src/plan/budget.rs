//! Whether a host can hold what a plan starts.

use std::collections::BTreeMap;

use super::{ActionKind, Desired, DesiredDomain, Plan};
use crate::diag::Note;
use crate::model::{Bytes, HostFacts, HostShape, Name, Observed, QEMU_OVERHEAD, Topology};

/// What is taken, or given back, and the domain that takes the most.
#[derive(Default)]
struct Sum {
    needed: u64,
    freed: u64,
    largest: Option<(u64, Name)>,
}

impl Sum {
    fn need(&mut self, amount: u64, domain: Option<&Name>) {
        self.needed += amount;
        if self.largest.as_ref().is_none_or(|(most, _)| amount > *most) {
            self.largest = domain.map(|domain| (amount, domain.clone()));
        }
    }

    /// Path of a key of the domain that takes the most.
    fn path(&self, topology: &Topology, key: &str) -> String {
        let largest = self.largest.as_ref();
        let domain = largest.and_then(|(_, name)| topology.domain(name));
        domain.map_or_else(String::new, |domain| {
            format!("domains.{}.split.{key}", domain.group)
        })
    }
}

/// Notes about what the host lacks for the domains that `plan` starts: memory, and huge pages that
/// nobody uses. What domains take that it stops, whether they are started again or not, is counted
/// as free.
pub fn check_budget(
    topology: &Topology,
    desired: &Desired,
    observed: &Observed,
    plan: &Plan,
    host: &HostFacts,
    shape: &HostShape,
) -> Vec<Note> {
    let wanted: BTreeMap<_, _> = desired
        .domains
        .iter()
        .map(|domain| (&domain.libvirt_name, domain))
        .collect();
    let mut memory = Sum::default();
    let mut pages: BTreeMap<(Bytes, Option<u32>), Sum> = BTreeMap::new();
    for action in &plan.actions {
        match &action.kind {
            ActionKind::StartDomain { name } => {
                let Some(DesiredDomain { split, .. }) = wanted.get(name) else {
                    continue;
                };
                let domain = action.domain.as_ref();
                match split.hugepages.filter(|size| size.0 > 0) {
                    // The pages are set aside already: they are no part of the free memory.
                    Some(size) => {
                        let count = split.memory.0.div_ceil(size.0);
                        let sum = pages.entry((size, split.node)).or_default();
                        sum.need(count, domain);
                        memory.need(QEMU_OVERHEAD.0, domain);
                    }
                    None => memory.need(split.memory.0 + QEMU_OVERHEAD.0, domain),
                }
            }
            // What it has today, which need not be what it gets.
            ActionKind::StopDomain { name } => {
                let Some(seen) = observed.domains.get(name) else {
                    continue;
                };
                match seen.uses.hugepages.filter(|size| size.0 > 0) {
                    Some(size) => {
                        let node = wanted.get(name).and_then(|domain| domain.split.node);
                        let sum = pages.entry((size, node)).or_default();
                        sum.freed += seen.uses.memory.0.div_ceil(size.0);
                        memory.freed += QEMU_OVERHEAD.0;
                    }
                    None => memory.freed += seen.uses.memory.0 + QEMU_OVERHEAD.0,
                }
            }
            _ => {}
        }
    }
    // Disks in memory are to be full one day.
    memory.needed += super::ram_disks(plan).0;
    let mut notes = Vec::new();
    let mib = |bytes: u64| bytes >> 20;
    // A guest that has not touched all its memory yet frees less than it was given.
    let free = (host.memory_free.0 + memory.freed).min(host.memory.0);
    if memory.needed > free {
        notes.push(
            Note::error(
                memory.path(topology, "memory"),
                format!(
                    "the host has no memory for this: {} MiB needed for what is to be started, {} MiB free",
                    mib(memory.needed),
                    mib(free)
                ),
            )
            .hint("give the domains less memory, start fewer of them, or end what else uses the host's memory"),
        );
    }
    for ((size, node), sum) in &pages {
        let there = match node {
            None => shape.hugepages().get(size).copied(),
            Some(node) => shape
                .node(*node)
                .and_then(|node| node.hugepages.get(size).copied()),
        };
        let free = there.unwrap_or_default().free + sum.freed;
        if sum.needed > free {
            let on = node.map_or(String::new(), |node| format!(" on node {node}"));
            let message = format!(
                "the host has no huge pages for this: {} of {size} needed for what is to be started, {free} free{on}",
                sum.needed
            );
            notes.push(Note::error(sum.path(topology, "hugepages"), message).hint(
                "have the kernel make more of them (vm.nr_hugepages), or end what else uses them",
            ));
        }
    }
    notes
}
