//! What a fake host holds, and what is wrong with it.

use std::collections::{BTreeMap, BTreeSet};
use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};

use crate::backend::libvirt::Definition;
use crate::model::{Bytes, CpuSet, Digest, MacAddr, Name, Placement, PortImpairment, Reservation};

/// The hardware threads of the host.
const HOST_CPUS: std::ops::Range<u32> = 0..8;

/// Networks, domains, files and links of a host. A clone is the host at that moment: tests keep it
/// and go back to it.
#[derive(Debug, Clone, Default)]
pub struct World {
    pub(super) networks: BTreeMap<String, FakeNetwork>,
    pub(super) domains: BTreeMap<String, FakeDomain>,
    /// Files, each with the number of its making: one that was replaced is another one.
    pub(super) files: BTreeMap<PathBuf, u64>,
    /// Files that are no lab's, which must be there to be used and are never removed.
    pub(super) others: BTreeSet<PathBuf>,
    /// Links to images, with what they lead to.
    pub(super) links: BTreeMap<PathBuf, BTreeSet<PathBuf>>,
    /// Domains whose pins have no effect at their start.
    pub(super) misplaced: BTreeSet<String>,
    /// How often something was made or started.
    made: u64,
}

#[derive(Debug, Clone)]
pub(super) struct FakeNetwork {
    pub xml: String,
    pub reservations: BTreeSet<Reservation>,
    /// While it runs: the number of its start, and the reservations its DHCP server gives.
    pub running: Option<(u64, BTreeSet<Reservation>)>,
}

#[derive(Debug, Clone)]
pub(super) struct FakeDomain {
    pub xml: String,
    pub ready: bool,
    pub hosts: Option<Digest>,
    pub running: Option<Life>,
}

/// A domain's life from start to stop: what it was started with.
#[derive(Debug, Clone)]
pub(super) struct Life {
    pub start: u64,
    pub xml: String,
    pub files: BTreeMap<PathBuf, u64>,
    pub networks: BTreeMap<String, u64>,
    pub macs: BTreeSet<MacAddr>,
    /// What frames of its vnets meet, by device.
    pub impairments: BTreeMap<String, PortImpairment>,
    /// Names and addresses its networks gave it.
    pub addresses: Vec<(Name, Ipv4Addr)>,
    /// Where it is on the host.
    pub placement: Placement,
    /// Whom it met at its start: running domains with one of its addresses.
    pub met: Vec<String>,
}

impl World {
    /// The next number.
    pub(super) fn number(&mut self) -> u64 {
        self.made += 1;
        self.made
    }

    /// Starts a domain, or says what libvirt or QEMU would say.
    pub(super) fn start(&mut self, name: &str) -> Result<(), String> {
        let domain = self
            .domains
            .get(name)
            .ok_or_else(|| no_domain(name))?
            .clone();
        if domain.running.is_some() {
            return Ok(());
        }
        let uses = Definition::read(name, &domain.xml)
            .map_err(|e| e.to_string())?
            .uses;
        let mut networks = BTreeMap::new();
        let mut addresses = Vec::new();
        for used in &uses.networks {
            let network = self.networks.get(used).ok_or_else(|| no_network(used))?;
            let Some((start, served)) = &network.running else {
                return Err(format!(
                    "Requested operation is not valid: network '{used}' is not active"
                ));
            };
            networks.insert(used.clone(), *start);
            let own = served.iter().filter(|r| uses.macs.contains(&r.mac));
            addresses.extend(own.map(|r| (r.domain.clone(), r.ip)));
        }
        let mut files = BTreeMap::new();
        for file in &uses.files {
            if self.others.contains(file) {
                continue;
            }
            let made = self.files.get(file).ok_or_else(|| {
                format!(
                    "Cannot access storage file '{}' (as uid:0, gid:0): No such file or directory",
                    file.display()
                )
            })?;
            files.insert(file.clone(), *made);
        }
        for file in boot_files(&domain.xml) {
            if !self.is_linked(&file) {
                return Err(format!(
                    "internal error: process exited while connecting to monitor: \
                     qemu: could not open kernel file '{}': No such file or directory",
                    file.display()
                ));
            }
        }
        let met = self
            .domains
            .iter()
            .filter_map(|(other, domain)| Some((other, domain.running.as_ref()?)))
            .filter(|(_, life)| {
                let same_address =
                    |(_, ip): &(Name, Ipv4Addr)| addresses.iter().any(|(_, own)| own == ip);
                !life.macs.is_disjoint(&uses.macs) || life.addresses.iter().any(same_address)
            })
            .map(|(other, _)| other.clone())
            .collect();
        let placement = placement_of(&domain.xml, self.misplaced.contains(name));
        let life = Life {
            start: self.number(),
            xml: domain.xml,
            files,
            networks,
            macs: uses.macs,
            impairments: uses
                .devices
                .into_iter()
                .map(|device| (device, PortImpairment::default()))
                .collect(),
            addresses,
            placement,
            met,
        };
        if let Some(domain) = self.domains.get_mut(name) {
            domain.ready = false;
            domain.hosts = None;
            domain.running = Some(life);
        }
        Ok(())
    }

    /// What frames of vnets meet, by device; only those that meet something.
    pub(super) fn impairments(&self) -> BTreeMap<String, PortImpairment> {
        let lives = self.domains.values().filter_map(|d| d.running.as_ref());
        lives
            .flat_map(|life| &life.impairments)
            .filter(|(_, impairment)| !impairment.is_none())
            .map(|(device, impairment)| (device.clone(), *impairment))
            .collect()
    }

    /// What frames of a vnet meet, if its device is there.
    pub(super) fn impairment(&mut self, device: &str) -> Option<&mut PortImpairment> {
        let lives = self.domains.values_mut().filter_map(|d| d.running.as_mut());
        lives
            .flat_map(|life| &mut life.impairments)
            .find_map(|(name, impairment)| (name == device).then_some(impairment))
    }

    /// Whether a file is there through the link to its image.
    pub(super) fn is_linked(&self, file: &Path) -> bool {
        let directory = file.parent().and_then(|link| self.links.get(link));
        let name = file.file_name();
        directory.is_some_and(|files| files.iter().any(|held| held.file_name() == name))
    }

    /// The running domain at an address, with its name and the number of its start.
    pub(super) fn at(&self, address: Ipv4Addr) -> Option<(&Name, u64)> {
        let lives = self.domains.values().filter_map(|d| d.running.as_ref());
        lives
            .filter(|life| self.is_connected(life))
            .flat_map(|life| life.addresses.iter().map(move |own| (life.start, own)))
            .find(|(_, (_, ip))| *ip == address)
            .map(|(start, (name, _))| (name, start))
    }

    /// Whether the networks a domain was started on are still the same.
    fn is_connected(&self, life: &Life) -> bool {
        life.networks.iter().all(|(name, start)| {
            let running = self.networks.get(name).and_then(|n| n.running.as_ref());
            running.is_some_and(|(now, _)| now == start)
        })
    }

    /// What a real host would not show: running domains that are not what their definition says.
    pub fn problems(&self) -> Vec<String> {
        let mut problems = Vec::new();
        for (name, domain) in &self.domains {
            let Some(life) = &domain.running else {
                continue;
            };
            if life.xml != domain.xml {
                problems.push(format!("{name} runs with an old definition"));
            }
            for (file, made) in &life.files {
                if self.files.get(file) != Some(made) {
                    problems.push(format!("{name} runs on {} of old", file.display()));
                }
            }
            if !self.is_connected(life) {
                problems.push(format!("{name} is cut off from a network"));
            }
            for other in &life.met {
                problems.push(format!("{name} was started beside {other} at its address"));
            }
        }
        problems
    }

    /// Whether nothing of a lab is there; links lie in its directory and go with it.
    pub fn is_empty(&self) -> bool {
        self.networks.is_empty() && self.domains.is_empty() && self.files.is_empty()
    }
}

pub(super) fn no_domain(name: &str) -> String {
    format!("Domain not found: no domain with matching name '{name}'")
}

pub(super) fn no_network(name: &str) -> String {
    format!("Network not found: no network with matching name '{name}'")
}

/// Where a domain with this definition is once it was started, or would be if its pins had no effect.
fn placement_of(xml: &str, misplaced: bool) -> Placement {
    let Ok(document) = roxmltree::Document::parse(xml) else {
        return Placement::default();
    };
    let text = |name: &str| {
        let node = document.descendants().find(|n| n.has_tag_name(name))?;
        node.text()?.parse::<u64>().ok()
    };
    let pin = |element: &str, key: &str, number: u64| -> CpuSet {
        let mut nodes = document.descendants();
        let found = nodes.find(|n| {
            let of = n.attribute(key).and_then(|text| text.parse().ok());
            n.has_tag_name(element) && (key.is_empty() || of == Some(number))
        });
        found
            .filter(|_| !misplaced)
            .and_then(|n| n.attribute("cpuset")?.parse().ok())
            .unwrap_or_else(|| HOST_CPUS.collect())
    };
    let vcpus = 0..text("vcpu").unwrap_or_default();
    let io_threads = 1..=text("iothreads").unwrap_or_default();
    Placement {
        vcpus: vcpus.map(|n| pin("vcpupin", "vcpu", n)).collect(),
        emulator: pin("emulatorpin", "", 0),
        io_threads: io_threads
            .map(|n| pin("iothreadpin", "iothread", n))
            .collect(),
        shares: text("shares").filter(|_| !misplaced),
        memory: Bytes(text("memory").unwrap_or_default() << 10),
    }
}

/// Kernel and initial RAM disk of a domain.
fn boot_files(xml: &str) -> Vec<PathBuf> {
    let Ok(document) = roxmltree::Document::parse(xml) else {
        return Vec::new();
    };
    document
        .descendants()
        .filter(|n| n.has_tag_name("kernel") || n.has_tag_name("initrd"))
        .filter_map(|n| n.text().map(PathBuf::from))
        .collect()
}
