//! A topology as the objects a host would have to show.

use std::collections::{BTreeMap, BTreeSet};
use std::net::Ipv4Addr;
use std::path::PathBuf;

use crate::model::{
    Acceleration, Bytes, Digest, Digester, Domain, Guest, Image, LabPaths, LabSecret, Name,
    Reservation, Seconds, Split, Topology,
};
use crate::render::{DomainParts, Identity, Seed, domain_xml, network_xml, seed};

/// Rendered files of a domain: absolute path in the guest, permission bits, content.
pub type GuestFiles = Vec<(String, u32, Vec<u8>)>;

/// Everything a host is to hold of a lab, with all content decided.
#[derive(Debug, Clone)]
pub struct Desired {
    /// Images that a domain uses.
    pub images: Vec<DesiredImage>,
    /// Networks.
    pub networks: Vec<DesiredNetwork>,
    /// Domains, in the topology's order.
    pub domains: Vec<DesiredDomain>,
    /// Machines that labrig does not make, in the topology's order.
    pub machines: Vec<DesiredMachine>,
}

/// A machine that is there already: the lab host, or an external one.
#[derive(Debug, Clone)]
pub struct DesiredMachine {
    /// The domain's name.
    pub name: Name,
    /// Its kind, in a word.
    pub kind: &'static str,
    /// Where its SSH server listens.
    pub address: Ipv4Addr,
    /// libvirt names of the networks it has vnets on.
    pub networks: BTreeSet<String>,
    /// Files to be on it.
    pub files: GuestFiles,
    /// Their digest; none when there are none.
    pub digest: Option<Digest>,
    /// Longest wait for each step on the way to it.
    pub timeout: Seconds,
}

/// An image and its link in the lab.
#[derive(Debug, Clone)]
pub struct DesiredImage {
    /// Name in the topology.
    pub name: Name,
    /// The image.
    pub image: Image,
    /// Link to its directory in the store.
    pub link: PathBuf,
}

/// A libvirt network.
#[derive(Debug, Clone)]
pub struct DesiredNetwork {
    /// The vswitch it is.
    pub vswitch: Name,
    /// Its libvirt name.
    pub name: String,
    /// Its definition, reservations included.
    pub xml: String,
    /// Digest of the definition without reservations.
    pub definition: Digest,
    /// Addresses of all its vnets.
    pub reservations: BTreeSet<Reservation>,
}

/// A libvirt domain with its files.
#[derive(Debug, Clone)]
pub struct DesiredDomain {
    /// The domain's name.
    pub name: Name,
    /// Its libvirt name.
    pub libvirt_name: String,
    /// Its image's name.
    pub image: Name,
    /// libvirt names of the networks it has vnets on.
    pub networks: BTreeSet<String>,
    /// Its disks.
    pub disks: Vec<DesiredDisk>,
    /// Its seed and the file for it.
    pub seed: (PathBuf, Seed),
    /// Its definition.
    pub xml: String,
    /// Digest of the definition.
    pub definition: Digest,
    /// Memory it takes from the host.
    pub memory: Bytes,
    /// Where its SSH server listens.
    pub address: Ipv4Addr,
    /// Longest wait for each step on the way from started to ready.
    pub boot_timeout: Seconds,
}

/// A disk file.
#[derive(Debug, Clone)]
pub struct DesiredDisk {
    /// The file.
    pub path: PathBuf,
    /// The disk below it.
    pub backing: Option<PathBuf>,
    /// Virtual size; none: that of `backing`.
    pub size: Option<Bytes>,
}

impl Desired {
    /// Decides all objects of a topology. `files` renders a domain's files.
    ///
    /// # Errors
    /// What `files` fails with.
    pub fn of<E>(
        topology: &Topology,
        paths: &LabPaths,
        acceleration: Acceleration,
        secret: &LabSecret,
        mut files: impl FnMut(&Domain) -> Result<GuestFiles, E>,
    ) -> Result<Self, E> {
        let images = topology
            .images
            .iter()
            .map(|(name, image)| DesiredImage {
                name: name.clone(),
                image: image.clone(),
                link: paths.image(image.key),
            })
            .collect();
        let mut reservations: BTreeMap<&Name, BTreeSet<Reservation>> = BTreeMap::new();
        for domain in topology.domains.iter().filter(|d| d.guest().is_some()) {
            for vnet in &domain.vnets {
                let reservation = Reservation {
                    mac: vnet.mac,
                    domain: domain.name.clone(),
                    ip: vnet.ip,
                };
                reservations
                    .entry(&vnet.vswitch)
                    .or_default()
                    .insert(reservation);
            }
        }
        let networks = topology
            .vswitches
            .iter()
            .map(|(name, vswitch)| {
                let reservations = reservations.remove(name).unwrap_or_default();
                let (xml, definition) = network_xml(topology, vswitch, &reservations);
                DesiredNetwork {
                    vswitch: name.clone(),
                    name: vswitch.network.clone(),
                    xml,
                    definition,
                    reservations,
                }
            })
            .collect();
        let client = Identity::client(secret);
        let domains = topology
            .domains
            .iter()
            .filter_map(|domain| {
                let guest = domain.guest()?;
                Some(Made {
                    domain,
                    guest,
                    split: domain.split.as_ref()?,
                    image: topology.images.get(&guest.image)?,
                    address: domain.address()?,
                })
            })
            .map(|made| {
                let seed = seed(topology, made.domain, secret, &client, files(made.domain)?);
                Ok(desired_domain(topology, paths, acceleration, &made, seed))
            })
            .collect::<Result<_, E>>()?;
        let machines = topology
            .domains
            .iter()
            .filter(|domain| domain.guest().is_none())
            .filter_map(|domain| Some((domain, domain.target()?)))
            .map(|(domain, address)| Ok(machine(topology, domain, address, files(domain)?)))
            .collect::<Result<_, E>>()?;
        Ok(Self {
            images,
            networks,
            domains,
            machines,
        })
    }
}

fn machine(
    topology: &Topology,
    domain: &Domain,
    address: Ipv4Addr,
    files: GuestFiles,
) -> DesiredMachine {
    let all = |digester: Digester, (path, mode, content): &(String, u32, Vec<u8>)| {
        let digester = digester.field(path).field(mode.to_be_bytes());
        digester.field(content)
    };
    let digest = files.iter().fold(Digester::default(), all).finish();
    DesiredMachine {
        name: domain.name.clone(),
        kind: domain.kind.word(),
        address,
        networks: networks_of(topology, domain),
        digest: (!files.is_empty()).then_some(digest),
        files,
        timeout: domain.boot_timeout,
    }
}

/// libvirt names of the networks that a domain has vnets on.
fn networks_of(topology: &Topology, domain: &Domain) -> BTreeSet<String> {
    let vnets = domain.vnets.iter();
    vnets
        .filter_map(|vnet| Some(topology.vswitches.get(&vnet.vswitch)?.network.clone()))
        .collect()
}

/// A domain that labrig makes, with all that it needs.
struct Made<'a> {
    domain: &'a Domain,
    guest: &'a Guest,
    split: &'a Split,
    image: &'a Image,
    address: Ipv4Addr,
}

fn desired_domain(
    topology: &Topology,
    paths: &LabPaths,
    acceleration: Acceleration,
    made: &Made<'_>,
    seed: Seed,
) -> DesiredDomain {
    let &Made {
        domain,
        guest,
        split,
        image,
        address,
    } = made;
    let link = paths.image(image.key);
    let holds = image.source.holds();
    let disks: Vec<_> = guest
        .disks
        .iter()
        .enumerate()
        .map(|(i, disk)| {
            let backing = (i == 0 && holds.disk).then(|| link.join("disk.qcow2"));
            let size = disk
                .size
                .map_or_else(Vec::new, |size| size.0.to_be_bytes().to_vec());
            let generation = match backing {
                Some(_) => Digester::default()
                    .field(image.key.bytes())
                    .field(size)
                    .finish(),
                None => Digester::default().field(size).finish(),
            };
            DesiredDisk {
                path: paths.disk(&domain.name, &disk.name, generation),
                backing,
                size: disk.size,
            }
        })
        .collect();
    let seed_path = paths.seed(&domain.name, seed.digest());
    let (kernel, initrd, console) = (
        link.join("vmlinuz"),
        link.join("initrd"),
        paths.console(&domain.name),
    );
    let parts = DomainParts {
        kernel: holds.kernel.then_some(kernel.as_path()),
        initrd: holds.initrd.then_some(initrd.as_path()),
        disks: disks.iter().map(|disk| disk.path.as_path()).collect(),
        has_root: holds.disk,
        seed: &seed_path,
        console: &console,
    };
    let (xml, definition) = domain_xml(topology, (domain, guest, split), &parts, acceleration);
    DesiredDomain {
        name: domain.name.clone(),
        libvirt_name: guest.libvirt_name.clone(),
        image: guest.image.clone(),
        networks: networks_of(topology, domain),
        disks,
        seed: (seed_path, seed),
        xml,
        definition,
        memory: split.memory,
        address,
        boot_timeout: domain.boot_timeout,
    }
}
