//! Whether a host can hold what a plan starts.

use std::collections::BTreeMap;

use super::{ActionKind, Desired, Plan};
use crate::diag::Note;
use crate::model::{HostFacts, Observed, QEMU_OVERHEAD, Topology};

/// Notes about what the host lacks for the domains that `plan` starts. Memory of domains that it
/// stops, whether they are started again or not, is counted as free.
pub fn check_budget(
    topology: &Topology,
    desired: &Desired,
    observed: &Observed,
    plan: &Plan,
    host: &HostFacts,
) -> Vec<Note> {
    let memory: BTreeMap<_, _> = desired
        .domains
        .iter()
        .map(|d| (&d.libvirt_name, d.split.memory.0 + QEMU_OVERHEAD.0))
        .collect();
    let of = |name: &String| memory.get(name).copied().unwrap_or_default();
    let (mut needed, mut freed, mut largest) = (0_u64, 0_u64, None);
    for action in &plan.actions {
        match &action.kind {
            ActionKind::StartDomain { name } => {
                let memory = of(name);
                needed += memory;
                if largest.as_ref().is_none_or(|(most, _)| memory > *most) {
                    largest = action
                        .domain
                        .as_ref()
                        .map(|domain| (memory, domain.clone()));
                }
            }
            // What it has today, which need not be what it gets.
            ActionKind::StopDomain { name } => {
                let seen = observed.domains.get(name);
                freed += seen.map_or(0, |seen| seen.uses.memory.0 + QEMU_OVERHEAD.0);
            }
            _ => {}
        }
    }
    let mut notes = Vec::new();
    let mib = |bytes: u64| bytes >> 20;
    // A guest that has not touched all its memory yet frees less than it was given.
    let free = (host.memory_free.0 + freed).min(host.memory.0);
    if needed > free {
        let path = largest
            .and_then(|(_, name)| {
                topology
                    .domain(&name)
                    .map(|domain| format!("domains.{}.split.memory", domain.group))
            })
            .unwrap_or_default();
        notes.push(
            Note::error(
                path,
                format!(
                    "the host has no memory for this: {} MiB needed for what is to be started, {} MiB free",
                    mib(needed),
                    mib(free)
                ),
            )
            .hint("give the domains less memory, start fewer of them, or end what else uses the host's memory"),
        );
    }
    let large = topology.domains.iter().filter_map(|domain| {
        let vcpus = domain.split.as_ref()?.vcpus;
        (vcpus > host.threads).then_some((domain, vcpus))
    });
    for (domain, vcpus) in large {
        let path = format!("domains.{}.split.cpus", domain.group);
        let message = format!(
            "domain {} has {} vcpus, the host only {} threads",
            domain.name, vcpus, host.threads
        );
        notes.push(
            Note::warning(path, message)
                .hint("its vcpus will take turns, which shows in every measurement"),
        );
    }
    notes
}
