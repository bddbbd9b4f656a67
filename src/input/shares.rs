//! Divides the host among the domains: parts to numbers, cores to domains, and notes about what
//! does not fit.

mod notes;

use std::collections::{BTreeMap, HashSet};

use super::placement::{self, Ask, Pin, Seat};
use super::read::{Doc, Spot, Written};
use super::topology::{Amount, HostSpec, MachineSpec, PinSpec, SplitSpec};
use crate::diag::Note;
use crate::model::{
    Bytes, CpuSet, CpuTopology, HostShape, LabHost, Machine, Name, QEMU_OVERHEAD, Split,
};

/// The least memory that boots anything.
const MEMORY_LEAST: Bytes = Bytes::mib(32);

/// What one domain claims of the host.
pub(super) struct Claim<'s> {
    pub name: &'s Name,
    /// Key of its group in the file.
    pub group: &'s Written<Name>,
    pub kind: ClaimKind,
    pub split: &'s SplitSpec,
    pub machine: &'s MachineSpec,
}

/// What kind of machine claims something.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ClaimKind {
    Vm,
    #[allow(dead_code, reason = "the reader makes virtual machines only, so far")]
    Container,
    #[allow(dead_code, reason = "the reader makes virtual machines only, so far")]
    Host,
}

/// Gives every claim its split, and the machine that shows it. What is wrong is noted, and stand-ins
/// are given for it.
pub(super) fn divide(
    doc: &Doc,
    host: &HostSpec,
    measured: Option<&HostShape>,
    claims: &[Claim<'_>],
) -> (LabHost, Vec<(Split, Machine)>) {
    let described = host.described.as_ref().map(|host| host.value.shape());
    let divider = Divider {
        doc,
        host,
        shape: described.as_ref().or(measured),
    };
    let mut splits: Vec<_> = claims.iter().map(|claim| divider.amounts(claim)).collect();
    let mut reserve = CpuSet::default();
    if let Some(shape) = divider.shape {
        reserve = divider.reserve(shape);
        let asks: Vec<_> = claims
            .iter()
            .zip(&splits)
            .map(|(claim, split)| divider.ask(claim, split))
            .collect();
        let (seats, problems) = placement::place(shape, &reserve, &asks);
        divider.note_problems(shape, claims, &splits, &problems);
        for ((claim, split), seat) in claims.iter().zip(&mut splits).zip(seats) {
            take_seat(claim, split, seat);
        }
        divider.check_emulators(shape, claims);
        divider.check_hugepages(shape, claims, &splits);
        divider.check_sums(shape, &reserve, claims, &splits);
    } else {
        divider.note_unknown_host(claims);
    }
    let machines = divider.machines(claims, &splits);
    let host = LabHost { described, reserve };
    (host, splits.into_iter().zip(machines).collect())
}

fn take_seat(claim: &Claim<'_>, split: &mut Split, seat: Seat) {
    split.pins = seat.pins;
    split.owns_cores = seat.owns_cores;
    split.node = seat.node;
    if claim.kind == ClaimKind::Vm && split.emulator.is_none() {
        split.emulator = seat.emulator;
    }
}

struct Divider<'a> {
    doc: &'a Doc,
    host: &'a HostSpec,
    shape: Option<&'a HostShape>,
}

impl Divider<'_> {
    /// Numbers of a claim, without places.
    fn amounts(&self, claim: &Claim<'_>) -> Split {
        let spec = claim.split;
        let mut split = Split::new(self.vcpus(spec), self.memory(spec));
        split.hugepages = spec.hugepages.as_ref().map(|size| size.value);
        split.emulator = spec.emulator.as_ref().map(|cpus| cpus.value.clone());
        split.io_threads = spec.io_threads.as_ref().map_or(0, |count| count.value);
        split.shares = spec.shares.as_ref().map(|shares| shares.value);
        split.quota = spec.quota.as_ref().map(|quota| quota.value);
        split.memory_limit = spec.memory_limit.as_ref().map(|limit| limit.value);
        self.check_kind(claim);
        self.check_limit(claim, &split);
        if let (Some(apart), None) = (&spec.apart, &spec.pin)
            && apart.value
        {
            let message = "a domain without CPUs of its own cannot be kept apart";
            self.error(&apart.spot, message, "add pin: auto");
        }
        split
    }

    fn error(&self, spot: &Spot, message: impl Into<String>, hint: impl Into<String>) {
        self.doc.push(self.doc.error(spot, message).hint(hint));
    }

    fn vcpus(&self, spec: &SplitSpec) -> u32 {
        const MOST: u32 = 1024;
        if let Some((cores, threads)) = &spec.cores {
            let vcpus = cores.value.saturating_mul(*threads);
            if vcpus > MOST {
                let message = format!(
                    "{} cores of {threads} threads are {vcpus} vcpus",
                    cores.value
                );
                self.error(&cores.spot, message, format!("at most {MOST}"));
            }
            return vcpus.min(MOST);
        }
        let Some(cpus) = &spec.cpus else { return 1 };
        let part = match cpus.value {
            Amount::Absolute(count) => return count,
            Amount::Part(part) => part,
        };
        let Some(shape) = self.shape else { return 1 };
        let threads = shape.threads.len();
        let count = u32::try_from(part.of(threads as u64)).unwrap_or(MOST);
        if count == 0 || count > MOST {
            let message = format!("{part} of the host's {threads} threads are {count}");
            self.error(&cpus.spot, message, format!("from 1 to {MOST} can be had"));
        }
        count.clamp(1, MOST)
    }

    fn memory(&self, spec: &SplitSpec) -> Bytes {
        let Some(memory) = &spec.memory else {
            return MEMORY_LEAST;
        };
        let part = match memory.value {
            Amount::Absolute(size) => return size,
            Amount::Part(part) => part,
        };
        let Some(shape) = self.shape else {
            return MEMORY_LEAST;
        };
        let size = Bytes::mib(part.of(shape.memory().0) >> 20);
        if size < MEMORY_LEAST {
            let message = format!("{part} of the host's memory is {size}: too small");
            self.error(&memory.spot, message, format!("at least {MEMORY_LEAST}"));
        }
        size.max(MEMORY_LEAST)
    }

    /// Notes what only other kinds of machines have.
    fn check_kind(&self, claim: &Claim<'_>) {
        let spec = claim.split;
        let of_qemu = [
            ("hugepages", spec.hugepages.as_ref().map(|w| &w.spot)),
            ("emulator", spec.emulator.as_ref().map(|w| &w.spot)),
            ("io_threads", spec.io_threads.as_ref().map(|w| &w.spot)),
        ];
        let of_guests = [
            ("shares", spec.shares.as_ref().map(|w| &w.spot)),
            ("quota", spec.quota.as_ref().map(|w| &w.spot)),
            ("memory_limit", spec.memory_limit.as_ref().map(|w| &w.spot)),
        ];
        let wrong: Vec<_> = match claim.kind {
            ClaimKind::Vm => return,
            ClaimKind::Container => of_qemu.into_iter().collect(),
            ClaimKind::Host => of_qemu.into_iter().chain(of_guests).collect(),
        };
        let whom = match claim.kind {
            ClaimKind::Host => "the host itself",
            _ => "a container",
        };
        for (key, spot) in wrong {
            if let Some(spot) = spot {
                self.error(
                    spot,
                    format!("{key} cannot be set for {whom}"),
                    "leave it out",
                );
            }
        }
    }

    fn check_limit(&self, claim: &Claim<'_>, split: &Split) {
        let Some(limit) = &claim.split.memory_limit else {
            return;
        };
        let needed = takes(claim, split);
        if limit.value < needed {
            let message = format!(
                "a limit of {} ends the domain: it takes up to {} MiB",
                limit.value,
                needed.0 >> 20
            );
            let hint = format!(
                "its memory and {} MiB for QEMU itself must fit",
                QEMU_OVERHEAD.0 >> 20
            );
            self.error(&limit.spot, message, hint);
        }
    }

    fn reserve(&self, shape: &HostShape) -> CpuSet {
        let Some(cores) = &self.host.reserve else {
            return CpuSet::default();
        };
        let all = shape.cores().len();
        if cores.value as usize >= all {
            let message = format!("{} cores of {all} are kept for the host", cores.value);
            self.error(&cores.spot, message, "leave some for the domains");
            return CpuSet::default();
        }
        placement::reserve(shape, cores.value)
    }

    fn ask(&self, claim: &Claim<'_>, split: &Split) -> Ask {
        let spec = claim.split;
        Ask {
            vcpus: split.vcpus,
            memory: takes(claim, split),
            pin: match spec.pin.as_ref().map(|pin| &pin.value) {
                None => Pin::Anywhere,
                Some(PinSpec::Auto) => Pin::Auto,
                Some(PinSpec::List(cpus)) => Pin::List(cpus.clone()),
            },
            numa: spec.numa.as_ref().map(|numa| numa.value),
            apart: spec.apart.as_ref().is_some_and(|apart| apart.value),
        }
    }

    /// The machines, each with its virtual CPUs grouped as the split or the machine says.
    fn machines(&self, claims: &[Claim<'_>], splits: &[Split]) -> Vec<Machine> {
        let mut noted = HashSet::new();
        let pairs = claims.iter().zip(splits);
        pairs
            .map(|(claim, split)| {
                let mut machine = claim.machine.machine.clone();
                if let Some(written) = &claim.machine.topology {
                    let cpus = written.value;
                    if cpus.vcpus() != u64::from(split.vcpus) && noted.insert(&claim.group.value) {
                        self.note_grouping(claim, split, written);
                    }
                } else if let Some((cores, threads)) = &claim.split.cores {
                    machine.cpu.topology = Some(CpuTopology {
                        sockets: 1,
                        cores: cores.value,
                        threads: *threads,
                    });
                }
                machine
            })
            .collect()
    }

    fn note_grouping(&self, claim: &Claim<'_>, split: &Split, written: &Written<CpuTopology>) {
        let cpus = written.value;
        let message = format!(
            "{} x {} x {} are {} vcpus, the domain has {}",
            cpus.sockets,
            cpus.cores,
            cpus.threads,
            cpus.vcpus(),
            split.vcpus
        );
        let place = cpus_spot(claim.split).map(|spot| self.doc.place(spot));
        let note = self.doc.error(&written.spot, message);
        let note = note.hint("sockets times cores times threads must be its vcpus");
        self.doc.push(note.label(place, "its vcpus"));
    }

    fn check_emulators(&self, shape: &HostShape, claims: &[Claim<'_>]) {
        let mut noted = HashSet::new();
        for claim in claims {
            let Some(cpus) = &claim.split.emulator else {
                continue;
            };
            let missing = cpus.value.difference(&shape.cpus());
            if !missing.is_empty() && noted.insert(&claim.group.value) {
                let message = format!("the host has no CPU {missing}");
                self.error(&cpus.spot, message, format!("it has {}", shape.cpus()));
            }
        }
    }

    /// Sees that there are as many huge pages as the domains take, on their nodes.
    fn check_hugepages(&self, shape: &HostShape, claims: &[Claim<'_>], splits: &[Split]) {
        let all = shape.hugepages();
        let mut taken: BTreeMap<(Bytes, Option<u32>), u64> = BTreeMap::new();
        let mut noted = HashSet::new();
        for (claim, split) in claims.iter().zip(splits) {
            let Some(size) = &claim.split.hugepages else {
                continue;
            };
            if noted.contains(&claim.group.value) {
                continue;
            }
            let mut refuse = |message: String, hint: String| {
                noted.insert(&claim.group.value);
                let note = self.doc.error(&size.spot, message).hint(hint);
                let memory = claim.split.memory.as_ref();
                let memory = memory.map(|memory| self.doc.place(&memory.spot));
                self.doc.push(note.label(memory, "its memory"));
            };
            let there = all.get(&size.value).map_or(0, |pages| pages.total);
            if there == 0 {
                let sizes: Vec<_> = all
                    .iter()
                    .filter(|(_, pages)| pages.total > 0)
                    .map(|(size, _)| size.to_string())
                    .collect();
                let has = match sizes.is_empty() {
                    true => "it has none at all".to_owned(),
                    false => format!("it has pages of {}", sizes.join(", ")),
                };
                refuse(
                    format!("the host has no huge pages of {}", size.value),
                    format!("{has}; the kernel makes them by vm.nr_hugepages"),
                );
                continue;
            }
            if !split.memory.0.is_multiple_of(size.value.0) {
                refuse(
                    format!("{} is no multiple of {}", split.memory, size.value),
                    "memory of huge pages is made of whole ones".to_owned(),
                );
                continue;
            }
            let pages = split.memory.0 / size.value.0;
            for node in [None, split.node] {
                let there = match node {
                    None => there,
                    Some(node) => shape
                        .node(node)
                        .and_then(|node| node.hugepages.get(&size.value))
                        .map_or(0, |pages| pages.total),
                };
                let taken = taken.entry((size.value, node)).or_default();
                *taken += pages;
                if *taken > there {
                    let place = node.map_or("the host".to_owned(), |node| format!("node {node}"));
                    refuse(
                        format!(
                            "domain {} makes it {taken} huge pages of {}, {place} has {there}",
                            claim.name.as_str(),
                            size.value
                        ),
                        "give less memory, or have the kernel make more of them".to_owned(),
                    );
                    break;
                }
                if node.is_none() && split.node.is_none() {
                    break;
                }
            }
        }
    }

    /// Notes more than all the host has.
    fn check_sums(
        &self,
        shape: &HostShape,
        reserve: &CpuSet,
        claims: &[Claim<'_>],
        splits: &[Split],
    ) {
        let described = self.host.described.as_ref().map(|host| &host.spot);
        let place = described.map(|spot| self.doc.place(spot));
        let pairs = || claims.iter().zip(splits);
        let memory: u64 = pairs().map(|(claim, split)| takes(claim, split).0).sum();
        let largest = pairs().max_by_key(|(_, split)| split.memory);
        if let Some((claim, _)) = largest.filter(|_| memory > shape.memory().0) {
            let spot = claim.split.memory.as_ref().map(|memory| &memory.spot);
            let spot = spot.unwrap_or(&claim.group.spot);
            let message = format!(
                "the domains take {} MiB together, QEMU's own included; the host has {} MiB",
                memory >> 20,
                shape.memory().0 >> 20
            );
            let note = self.doc.error(spot, message).hint(
                "give them less memory; `labrig plan --split` shows who has what, host: describes another host",
            );
            self.doc.push(note.label(place.clone(), "the host"));
        }
        let vcpus: u64 = splits.iter().map(|split| u64::from(split.vcpus)).sum();
        let threads = (shape.threads.len() - reserve.len()) as u64;
        let largest = pairs().max_by_key(|(_, split)| split.vcpus);
        if let Some((claim, _)) = largest.filter(|_| vcpus > threads) {
            let spot = cpus_spot(claim.split).unwrap_or(&claim.group.spot);
            let message = format!(
                "the domains have {vcpus} vcpus together, the host has {threads} threads for them"
            );
            let note = Note::warning(&spot.path, message)
                .at(self.doc.place(spot))
                .hint("they will take turns, which shows in every measurement");
            self.doc.push(note.label(place, "the host"));
        }
    }

    /// Notes what cannot be decided without a host.
    fn note_unknown_host(&self, claims: &[Claim<'_>]) {
        let mut noted = HashSet::new();
        for claim in claims {
            let spec = claim.split;
            let cpus = spec.cpus.as_ref();
            let memory = spec.memory.as_ref();
            let needs = [
                cpus.filter(|cpus| matches!(cpus.value, Amount::Part(_)))
                    .map(|w| &w.spot),
                memory
                    .filter(|size| matches!(size.value, Amount::Part(_)))
                    .map(|w| &w.spot),
                spec.pin.as_ref().map(|w| &w.spot),
                spec.numa.as_ref().map(|w| &w.spot),
                spec.hugepages.as_ref().map(|w| &w.spot),
            ];
            for spot in needs.into_iter().flatten() {
                if noted.insert(&spot.path) {
                    let message = "this depends on the host, which is not known";
                    self.error(
                        spot,
                        message,
                        "describe it: host: {threads: 8, memory: 16GiB}",
                    );
                }
            }
        }
    }
}

/// Memory of the host that a claim takes.
fn takes(claim: &Claim<'_>, split: &Split) -> Bytes {
    match claim.kind {
        ClaimKind::Vm => Bytes(split.memory.0 + QEMU_OVERHEAD.0),
        ClaimKind::Container | ClaimKind::Host => split.memory,
    }
}

/// Where the virtual CPUs are given.
fn cpus_spot(spec: &SplitSpec) -> Option<&Spot> {
    let cores = || spec.cores.as_ref().map(|(cores, _)| &cores.spot);
    spec.cpus.as_ref().map(|cpus| &cpus.spot).or_else(cores)
}

#[cfg(test)]
mod tests;
