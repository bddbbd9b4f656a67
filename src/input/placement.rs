//! Which domain gets which hardware threads of the host: pure, and the same for the same input.
//!
//! Lists come first, as they are written. Then, in the file's order, each domain that leaves the
//! choice to labrig gets the first whole cores that are free, on one NUMA node where one has enough.
//! So a domain that is added at the end and is not pinned by a list moves no other. Domains without
//! pins run on whatever is not kept from them.

use std::collections::{BTreeMap, VecDeque};

use crate::model::{Bytes, CpuSet, HostShape};

/// What one domain wants.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Ask {
    pub vcpus: u32,
    /// With what QEMU itself takes.
    pub memory: Bytes,
    pub pin: Pin,
    pub numa: Option<Numa>,
    /// Whether domains without pins are kept off its cores.
    pub apart: bool,
}

/// How a domain's CPUs are chosen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Pin {
    Anywhere,
    Auto,
    List(CpuSet),
}

/// Which NUMA node a domain is to be on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Numa {
    /// Any one, with all CPUs and all memory.
    Local,
    Node(u32),
}

/// Where a domain is.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Seat {
    /// For each virtual CPU; empty: anywhere.
    pub pins: Vec<CpuSet>,
    pub owns_cores: bool,
    pub node: Option<u32>,
    /// For QEMU's own threads; none: anywhere.
    pub emulator: Option<CpuSet>,
}

/// What is wrong with the domain of that index in the list of asks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Problem {
    pub ask: usize,
    pub kind: ProblemKind,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum ProblemKind {
    /// The host has no such CPUs.
    NoSuchCpus(CpuSet),
    /// The host has no such node.
    NoSuchNode(u32),
    /// Too few whole cores are free, on a node or anywhere; both counted in threads.
    TooFewCores { free: usize, node: Option<u32> },
    /// Too little memory is left on a node, or on the best one of all.
    TooLittleMemory { free: Bytes, node: u32 },
    /// CPUs that another domain is pinned to as well.
    Overlap { other: usize, cpus: CpuSet },
    /// CPUs whose siblings another domain is pinned to.
    TornCores { other: usize, cpus: CpuSet },
    /// CPUs that are kept for the host itself.
    Reserved(CpuSet),
    /// CPUs on other nodes than the memory.
    Remote { cpus: CpuSet, node: u32 },
    /// CPUs on several nodes, where one was asked for.
    Spread(CpuSet),
    /// Fewer CPUs than virtual ones.
    Crowded(usize),
    /// Others took every CPU it may use.
    NothingLeft,
}

impl ProblemKind {
    /// Whether the domain cannot be placed so.
    pub fn is_error(&self) -> bool {
        match self {
            Self::NoSuchCpus(_)
            | Self::NoSuchNode(_)
            | Self::TooFewCores { .. }
            | Self::TooLittleMemory { .. }
            | Self::Spread(_)
            | Self::NothingLeft => true,
            Self::Overlap { .. }
            | Self::TornCores { .. }
            | Self::Reserved(_)
            | Self::Remote { .. }
            | Self::Crowded(_) => false,
        }
    }
}

/// The CPUs of the first `cores` cores, which the host itself keeps.
pub(super) fn reserve(shape: &HostShape, cores: u32) -> CpuSet {
    let cores = shape.cores().into_iter().take(cores as usize);
    cores
        .flat_map(|core| core.cpus.iter().collect::<Vec<_>>())
        .collect()
}

/// Gives every ask its seat. One that cannot be placed gets an empty seat and a problem.
pub(super) fn place(
    shape: &HostShape,
    reserved: &CpuSet,
    asks: &[Ask],
) -> (Vec<Seat>, Vec<Problem>) {
    let mut placer = Placer::new(shape, reserved, asks.len());
    for (index, ask) in asks.iter().enumerate() {
        if let Pin::List(cpus) = &ask.pin {
            placer.list(index, ask, cpus);
        }
    }
    placer.find_free();
    for (index, ask) in asks.iter().enumerate() {
        match ask.pin {
            Pin::List(_) => {}
            Pin::Auto => placer.auto(index, ask),
            Pin::Anywhere => placer.choose_node(index, ask),
        }
    }
    placer.float(asks);
    (placer.seats, placer.problems)
}

struct Placer<'a> {
    shape: &'a HostShape,
    reserved: &'a CpuSet,
    /// CPUs of each core, and its node.
    cores: Vec<(u32, CpuSet)>,
    /// The first domain that was pinned to a CPU.
    owners: BTreeMap<u32, usize>,
    /// Free cores of each node, in order.
    free: BTreeMap<u32, VecDeque<usize>>,
    /// Memory left on each node.
    memory: BTreeMap<u32, u64>,
    seats: Vec<Seat>,
    problems: Vec<Problem>,
}

impl<'a> Placer<'a> {
    fn new(shape: &'a HostShape, reserved: &'a CpuSet, seats: usize) -> Self {
        let cores = shape.cores().into_iter();
        Self {
            shape,
            reserved,
            cores: cores.map(|core| (core.node, core.cpus)).collect(),
            owners: BTreeMap::new(),
            free: BTreeMap::new(),
            memory: shape
                .nodes
                .iter()
                .map(|node| (node.node, node.memory.0))
                .collect(),
            seats: vec![Seat::default(); seats],
            problems: Vec::new(),
        }
    }

    fn problem(&mut self, ask: usize, kind: ProblemKind) {
        self.problems.push(Problem { ask, kind });
    }

    /// Seats a domain on the CPUs it names.
    fn list(&mut self, index: usize, ask: &Ask, cpus: &CpuSet) {
        let missing = cpus.difference(&self.shape.cpus());
        if !missing.is_empty() {
            return self.problem(index, ProblemKind::NoSuchCpus(missing));
        }
        let reserved = cpus.intersection(self.reserved);
        if !reserved.is_empty() {
            self.problem(index, ProblemKind::Reserved(reserved));
        }
        self.note_neighbours(index, cpus);
        if cpus.len() < ask.vcpus as usize {
            self.problem(index, ProblemKind::Crowded(cpus.len()));
        }
        let nodes = self.shape.nodes_of(cpus);
        let node = match ask.numa {
            None => None,
            Some(Numa::Local) if nodes.len() > 1 => {
                return self.problem(index, ProblemKind::Spread(cpus.clone()));
            }
            Some(Numa::Local) => nodes.first().copied(),
            Some(Numa::Node(node)) if self.shape.node(node).is_none() => {
                return self.problem(index, ProblemKind::NoSuchNode(node));
            }
            Some(Numa::Node(node)) => {
                let remote = cpus.difference(&self.shape.cpus_of(node));
                if !remote.is_empty() {
                    self.problem(index, ProblemKind::Remote { cpus: remote, node });
                }
                Some(node)
            }
        };
        if node.is_some_and(|node| !self.take_memory(index, ask, node)) {
            return;
        }
        self.own(index, ask, cpus, node);
    }

    /// Notes other domains on the same CPUs and on siblings of them.
    fn note_neighbours(&mut self, index: usize, cpus: &CpuSet) {
        let mut shared: BTreeMap<usize, Vec<u32>> = BTreeMap::new();
        let mut torn: BTreeMap<usize, Vec<u32>> = BTreeMap::new();
        for cpu in cpus.iter() {
            if let Some(other) = self.owners.get(&cpu) {
                shared.entry(*other).or_default().push(cpu);
                continue;
            }
            let core = self.shape.thread(cpu).map(|thread| thread.core as usize);
            let siblings = core.and_then(|core| self.cores.get(core));
            let mut siblings = siblings.into_iter().flat_map(|(_, cpus)| cpus.iter());
            if let Some(other) = siblings.find_map(|sibling| self.owners.get(&sibling)) {
                torn.entry(*other).or_default().push(cpu);
            }
        }
        for (other, cpus) in shared {
            let cpus = cpus.into_iter().collect();
            self.problem(index, ProblemKind::Overlap { other, cpus });
        }
        for (other, cpus) in torn {
            let cpus = cpus.into_iter().collect();
            self.problem(index, ProblemKind::TornCores { other, cpus });
        }
    }

    /// Takes memory of a node; whether there was enough.
    fn take_memory(&mut self, index: usize, ask: &Ask, node: u32) -> bool {
        let left = self.memory.entry(node).or_default();
        if *left < ask.memory.0 {
            let free = Bytes(*left);
            self.problem(index, ProblemKind::TooLittleMemory { free, node });
            return false;
        }
        *left -= ask.memory.0;
        true
    }

    fn own(&mut self, index: usize, ask: &Ask, cpus: &CpuSet, node: Option<u32>) {
        for cpu in cpus.iter() {
            self.owners.entry(cpu).or_insert(index);
        }
        let ordered = self.shape.by_core(cpus);
        let pins = match ordered.len() == ask.vcpus as usize {
            true => ordered
                .into_iter()
                .map(|cpu| [cpu].into_iter().collect())
                .collect(),
            false => vec![cpus.clone(); ask.vcpus as usize],
        };
        let emulator = match self.reserved.is_empty() {
            true => cpus.clone(),
            false => self.reserved.clone(),
        };
        self.seats[index] = Seat {
            pins,
            owns_cores: true,
            node,
            emulator: Some(emulator),
        };
    }

    /// Finds the cores that no list touches.
    fn find_free(&mut self) {
        for (core, (node, cpus)) in self.cores.iter().enumerate() {
            let taken = |cpu| self.owners.contains_key(&cpu) || self.reserved.contains(cpu);
            if !cpus.iter().any(taken) {
                self.free.entry(*node).or_default().push_back(core);
            }
        }
    }

    /// Free threads of a node.
    fn free_threads(&self, node: u32) -> usize {
        let cores = self.free.get(&node).into_iter().flatten();
        cores.map(|core| self.cores[*core].1.len()).sum()
    }

    /// Seats a domain on whole cores that are free.
    fn auto(&mut self, index: usize, ask: &Ask) {
        let wanted = ask.vcpus as usize;
        let nodes: Vec<_> = self.shape.nodes.iter().map(|node| node.node).collect();
        let roomy = |node: &u32| self.free_threads(*node) >= wanted;
        let fits = |node: &u32| {
            self.memory
                .get(node)
                .is_some_and(|left| *left >= ask.memory.0)
        };
        let node = match ask.numa {
            None => nodes.iter().find(|node| roomy(node)).copied(),
            Some(Numa::Node(node)) => {
                if self.shape.node(node).is_none() {
                    return self.problem(index, ProblemKind::NoSuchNode(node));
                }
                if !roomy(&node) {
                    let free = self.free_threads(node);
                    let node = Some(node);
                    return self.problem(index, ProblemKind::TooFewCores { free, node });
                }
                Some(node)
            }
            Some(Numa::Local) => {
                let Some(node) = nodes
                    .iter()
                    .find(|node| roomy(node) && fits(node))
                    .or_else(|| nodes.iter().find(|node| roomy(node)))
                else {
                    let best = nodes.iter().max_by_key(|node| self.free_threads(**node));
                    let node = best.copied();
                    let free = node.map_or(0, |node| self.free_threads(node));
                    return self.problem(index, ProblemKind::TooFewCores { free, node });
                };
                Some(*node)
            }
        };
        if node.is_none() {
            let free = nodes.iter().map(|node| self.free_threads(*node)).sum();
            if free < wanted {
                let node = None;
                return self.problem(index, ProblemKind::TooFewCores { free, node });
            }
        }
        let bound = node.filter(|_| ask.numa.is_some());
        if bound.is_some_and(|node| !self.take_memory(index, ask, node)) {
            return;
        }
        let mut cpus = Vec::new();
        let from = node.map_or(nodes, |node| vec![node]);
        for node in from {
            let free = self.free.entry(node).or_default();
            while cpus.len() < wanted
                && let Some(core) = free.pop_front()
            {
                cpus.extend(self.cores[core].1.iter());
            }
        }
        // The siblings that are left over stay idle.
        let cpus: CpuSet = cpus.into_iter().take(wanted).collect();
        self.own(index, ask, &cpus, bound);
    }

    /// Chooses the node of a domain that is on one, but on no CPUs of its own.
    fn choose_node(&mut self, index: usize, ask: &Ask) {
        let node = match ask.numa {
            None => return,
            Some(Numa::Node(node)) if self.shape.node(node).is_none() => {
                return self.problem(index, ProblemKind::NoSuchNode(node));
            }
            Some(Numa::Node(node)) => node,
            Some(Numa::Local) => {
                let fits = self.memory.iter().find(|(_, left)| **left >= ask.memory.0);
                let best = || self.memory.iter().max_by_key(|(_, left)| **left);
                fits.or_else(best).map_or(0, |(node, _)| *node)
            }
        };
        if self.take_memory(index, ask, node) {
            self.seats[index].node = Some(node);
        }
    }

    /// Gives domains without pins what is not kept from them.
    fn float(&mut self, asks: &[Ask]) {
        let mut kept = self.reserved.clone();
        for (ask, seat) in asks.iter().zip(&self.seats) {
            if !ask.apart || !seat.owns_cores {
                continue;
            }
            for cpu in seat.pins.iter().flat_map(CpuSet::iter).collect::<Vec<_>>() {
                let core = self.shape.thread(cpu).map(|thread| thread.core as usize);
                if let Some((_, cpus)) = core.and_then(|core| self.cores.get(core)) {
                    kept.extend(cpus);
                }
            }
        }
        let mut areas: BTreeMap<Option<u32>, CpuSet> = BTreeMap::new();
        for (index, ask) in asks.iter().enumerate() {
            let node = self.seats[index].node;
            if ask.pin != Pin::Anywhere || (node.is_none() && kept.is_empty()) {
                continue;
            }
            let area = areas.entry(node).or_insert_with(|| {
                let all = node.map_or_else(|| self.shape.cpus(), |node| self.shape.cpus_of(node));
                all.difference(&kept)
            });
            if area.is_empty() {
                let kind = ProblemKind::NothingLeft;
                self.problems.push(Problem { ask: index, kind });
                continue;
            }
            self.seats[index].pins = vec![area.clone(); ask.vcpus as usize];
            self.seats[index].emulator = Some(area.clone());
        }
    }
}

#[cfg(test)]
mod tests;
