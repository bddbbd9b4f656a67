//! What is said about domains that cannot be placed as they ask, or had better not.

use std::collections::HashSet;

use super::{Claim, Divider, takes};
use crate::diag::Note;
use crate::input::placement::{Problem, ProblemKind};
use crate::model::{HostShape, Split};

impl Divider<'_> {
    /// Notes what placement found; of domains that are alike only the first.
    pub(super) fn note_problems(
        &self,
        shape: &HostShape,
        claims: &[Claim<'_>],
        splits: &[Split],
        problems: &[Problem],
    ) {
        let mut noted = HashSet::new();
        for problem in problems {
            let claim = &claims[problem.ask];
            if !noted.insert((&claim.group.value, std::mem::discriminant(&problem.kind))) {
                continue;
            }
            let other = match problem.kind {
                ProblemKind::Overlap { other, .. } | ProblemKind::TornCores { other, .. } => {
                    Some(&claims[other])
                }
                _ => None,
            };
            self.note_problem(shape, claim, &splits[problem.ask], &problem.kind, other);
        }
    }

    fn note_problem(
        &self,
        shape: &HostShape,
        claim: &Claim<'_>,
        split: &Split,
        kind: &ProblemKind,
        other: Option<&Claim<'_>>,
    ) {
        use ProblemKind as K;
        let name = claim.name.as_str();
        let other_name = other.map_or("", |other| other.name.as_str());
        let twins = other.is_some_and(|other| other.group.value == claim.group.value);
        let (message, hint) = match kind {
            K::NoSuchCpus(cpus) => (
                format!("the host has no CPU {cpus}"),
                format!("it has {}; host: describes another one", shape.cpus()),
            ),
            K::NoSuchNode(node) => (
                format!("the host has no NUMA node {node}"),
                format!("it has {}", nodes(shape)),
            ),
            K::TooFewCores { free, node } => (
                format!(
                    "domain {name} needs whole cores for {} vcpus; those that are free{} have {free} threads",
                    split.vcpus,
                    node.map_or(String::new(), |node| format!(" on node {node}")),
                ),
                "give fewer CPUs, or leave pin out where it does not matter".to_owned(),
            ),
            K::TooLittleMemory { free, node } => (
                format!(
                    "domain {name} takes {} MiB with QEMU's own, node {node} has {} MiB left",
                    takes(claim, split).0 >> 20,
                    free.0 >> 20
                ),
                "give less memory, or leave numa out".to_owned(),
            ),
            K::Overlap { cpus, .. } if twins => (
                format!("CPU {cpus} cannot be given to {other_name} and to {name}"),
                "each domain of a group needs CPUs of its own: use auto, or an expression with index"
                    .to_owned(),
            ),
            K::Overlap { cpus, .. } => (
                format!("CPU {cpus} is pinned to domain {other_name} as well"),
                "they will take turns on it, which shows in every measurement".to_owned(),
            ),
            K::TornCores { cpus, .. } => (
                format!("CPU {cpus} shares its core with domain {other_name}"),
                "siblings slow each other down: give whole cores, or use auto".to_owned(),
            ),
            K::Reserved(cpus) => (
                format!("CPU {cpus} is kept for the host"),
                "pin the domain to other CPUs, or keep fewer cores".to_owned(),
            ),
            K::Remote { cpus, node } => (
                format!("CPU {cpus} is not on NUMA node {node}, where the memory is"),
                format!("node {node} has the CPUs {}", shape.cpus_of(*node)),
            ),
            K::Spread(cpus) => (
                format!("CPU {cpus} are on several NUMA nodes: no memory is local to all"),
                "pin to CPUs of one node, or leave numa out".to_owned(),
            ),
            K::Crowded(count) => (
                format!("{} vcpus take turns on {count} CPUs", split.vcpus),
                "give as many CPUs as vcpus".to_owned(),
            ),
            K::NothingLeft => (
                format!("no CPU is left for domain {name}"),
                "the others keep all to themselves: pin it as well, or leave out an apart".to_owned(),
            ),
        };
        let spec = claim.split;
        let pin = spec.pin.as_ref().map(|pin| &pin.spot);
        let numa = spec.numa.as_ref().map(|numa| &numa.spot);
        let spot = match kind {
            K::NoSuchNode(_) | K::TooLittleMemory { .. } => numa,
            _ => pin,
        };
        let spot = spot.unwrap_or(&claim.group.spot);
        let note = match kind.is_error() || twins {
            true => self.doc.error(spot, message),
            false => Note::warning(&spot.path, message).at(self.doc.place(spot)),
        };
        let (label, text) = match kind {
            K::Overlap { .. } | K::TornCores { .. } if !twins => {
                let pin = other.and_then(|other| other.split.pin.as_ref());
                (pin.map(|pin| &pin.spot), "the other one")
            }
            K::Reserved(_) => (
                self.host.reserve.as_ref().map(|reserve| &reserve.spot),
                "kept here",
            ),
            K::Remote { .. } | K::Spread(_) => (numa, "the node is asked for here"),
            K::TooLittleMemory { .. } => (
                spec.memory.as_ref().map(|memory| &memory.spot),
                "its memory",
            ),
            _ => (None, ""),
        };
        let note = note.hint(hint);
        self.doc.push(match label {
            Some(label) => note.label(Some(self.doc.place(label)), text),
            None => note,
        });
    }
}

fn nodes(shape: &HostShape) -> String {
    let nodes: Vec<_> = shape
        .nodes
        .iter()
        .map(|node| node.node.to_string())
        .collect();
    nodes.join(", ")
}
