//! A topology as the objects a host would have to show.

use std::collections::{BTreeMap, BTreeSet};
use std::net::Ipv4Addr;
use std::path::PathBuf;
use std::sync::Arc;

use crate::model::{
    Bytes, Digest, Digester, Disk, DiskFormat, DiskSource, Domain, DomainKind, Guest, Image,
    LabPaths, LabSecret, Medium, Name, Platform, PortImpairment, Reservation, Seconds, Split,
    Topology,
};
use crate::render::{DiskPart, DomainParts, Hosts, Identity, Seed, domain_xml, network_xml, seed};

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
    /// Names and addresses of all domains.
    pub hosts: Arc<Hosts>,
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
    /// Addresses of all its vnets, where the lab host serves DHCP.
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
    /// Its vnets.
    pub ports: Vec<DesiredPort>,
    /// Those of its disks that labrig makes.
    pub disks: Vec<DesiredDisk>,
    /// Its seed and the file for it.
    pub seed: (PathBuf, Seed),
    /// Its definition.
    pub xml: String,
    /// Digest of the definition.
    pub definition: Digest,
    /// Its share of the host.
    pub split: Split,
    /// Where its SSH server listens.
    pub address: Ipv4Addr,
    /// Longest wait for each step on the way from started to ready.
    pub boot_timeout: Seconds,
    /// Whether it is told the names of all domains; one that writes its own is not.
    pub takes_hosts: bool,
}

/// A vnet's device.
#[derive(Debug, Clone)]
pub struct DesiredPort {
    /// The vswitch it is on.
    pub vswitch: Name,
    /// Device of the lab host.
    pub device: String,
    /// What its frames meet.
    pub impairment: PortImpairment,
}

/// A disk file that labrig makes.
#[derive(Debug, Clone)]
pub struct DesiredDisk {
    /// The file.
    pub path: PathBuf,
    /// What it lies on.
    pub on: Medium,
    /// Its format.
    pub format: DiskFormat,
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
        platform: &Platform,
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
                let vswitch = topology.vswitches.get(&vnet.vswitch);
                let Some(ip) = vnet
                    .ip
                    .filter(|_| vswitch.is_some_and(|vswitch| vswitch.mode.is_own()))
                else {
                    continue;
                };
                let reservation = Reservation {
                    mac: vnet.mac,
                    domain: domain.name.clone(),
                    ip,
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
        let hosts = Arc::new(Hosts::new(topology));
        let domains = topology
            .domains
            .iter()
            .filter_map(|domain| {
                // Containers cannot be brought up yet, so nothing is planned for them.
                let DomainKind::Vm(guest) = &domain.kind else {
                    return None;
                };
                Some(Made {
                    domain,
                    guest,
                    split: domain.split.as_ref()?,
                    image: topology.images.get(&guest.image)?,
                    address: domain.address()?,
                })
            })
            .map(|made| {
                let files = files(made.domain)?;
                let seed = seed(topology, made.domain, &hosts, secret, &client, files);
                Ok(desired_domain(topology, paths, platform, &made, seed))
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
            hosts,
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
    platform: &Platform,
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
    let mut disks = Vec::new();
    let mut places = Vec::new();
    for (i, disk) in guest.disks.iter().enumerate() {
        places.push(match &disk.source {
            DiskSource::Volume { path } | DiskSource::File { path, .. } => path.clone(),
            DiskSource::Made { on, format, size } => {
                let made = DesiredDisk {
                    path: paths.disk(
                        *on,
                        &domain.name,
                        &disk.name,
                        *format,
                        generation(disk, image, i == 0 && holds.disk),
                    ),
                    on: *on,
                    format: *format,
                    backing: (i == 0 && holds.disk).then(|| link.join("disk.qcow2")),
                    size: *size,
                };
                let path = made.path.clone();
                disks.push(made);
                path
            }
        });
    }
    let seed_path = paths.seed(&domain.name, seed.digest(), seed.extension());
    let (kernel, initrd, nvram, console) = (
        link.join("vmlinuz"),
        link.join("initrd"),
        paths.nvram(&domain.name),
        paths.console(&domain.name),
    );
    let parts = DomainParts {
        kernel: holds.kernel.then_some(kernel.as_path()),
        initrd: holds.initrd.then_some(initrd.as_path()),
        disks: std::iter::zip(&guest.disks, &places)
            .map(|(disk, path)| DiskPart { disk, path })
            .collect(),
        has_root: holds.disk,
        nvram: &nvram,
        seed: &seed_path,
        cloud_init: image.cloud_init,
        console: &console,
    };
    let (xml, definition) = domain_xml(topology, (domain, guest, split), &parts, platform);
    let vnets = domain.vnets.iter();
    let vnets = vnets.filter_map(|vnet| Some((vnet, topology.vswitches.get(&vnet.vswitch)?)));
    DesiredDomain {
        name: domain.name.clone(),
        libvirt_name: guest.libvirt_name.clone(),
        image: guest.image.clone(),
        networks: vnets
            .clone()
            .map(|(_, vswitch)| vswitch.network.clone())
            .collect(),
        ports: vnets
            .map(|(vnet, vswitch)| DesiredPort {
                vswitch: vnet.vswitch.clone(),
                device: vnet.device.clone(),
                impairment: vnet.impairments(vswitch),
            })
            .collect(),
        disks,
        takes_hosts: seed.has_hosts(),
        seed: (seed_path, seed),
        xml,
        definition,
        split: split.clone(),
        address,
        boot_timeout: domain.boot_timeout,
    }
}

/// Digest of all that a disk is made from.
fn generation(disk: &Disk, image: &Image, is_overlay: bool) -> Digest {
    let DiskSource::Made { size, .. } = &disk.source else {
        return Digest::of("");
    };
    let size = size.map_or_else(Vec::new, |size| size.0.to_be_bytes().to_vec());
    let digester = if is_overlay {
        Digester::default().field(image.key.bytes()).field(size)
    } else {
        Digester::default().field(size)
    };
    // On a disk that is to hold another filesystem there is nothing to keep.
    let digester = match &disk.mount {
        Some(mount) => digester.field(mount.filesystem.as_str()),
        None => digester,
    };
    digester.finish()
}
