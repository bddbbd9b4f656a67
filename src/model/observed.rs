//! What a host shows of a lab: the other half of what a plan is made from.

use std::collections::{BTreeMap, BTreeSet};
use std::net::Ipv4Addr;
use std::path::PathBuf;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::{Bytes, Digest, MacAddr, Name, Placement, PortImpairment};

/// Everything of one lab that exists on its host.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Observed {
    /// Keys of the images in the store, of those that were asked for.
    pub images: BTreeSet<Digest>,
    /// libvirt networks of the lab, by libvirt name.
    pub networks: BTreeMap<String, ObservedNetwork>,
    /// libvirt domains of the lab, by libvirt name.
    pub domains: BTreeMap<String, ObservedDomain>,
    /// Disk and seed files of the lab.
    pub files: BTreeSet<PathBuf>,
    /// What frames of the lab's vnets meet, by the vnet's device; only those that meet something.
    pub impairments: BTreeMap<String, PortImpairment>,
}

/// A libvirt network of the lab.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ObservedNetwork {
    /// Digest of the XML it was defined from; none when it was not labrig that defined it so.
    pub definition: Option<Digest>,
    /// Whether it is up.
    pub active: bool,
    /// The bridge that libvirt makes for it; none when it is on one that was there.
    pub bridge: Option<String>,
    /// Addresses its DHCP keeps for vnets.
    pub reservations: BTreeSet<Reservation>,
}

/// An address that a network's DHCP keeps for a vnet.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Reservation {
    /// The vnet's MAC address.
    pub mac: MacAddr,
    /// The domain's name.
    pub domain: Name,
    /// The address.
    pub ip: Ipv4Addr,
}

/// A libvirt domain of the lab.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ObservedDomain {
    /// Digest of the XML it was defined from; none when it was not labrig that defined it so.
    pub definition: Option<Digest>,
    /// Whether it runs.
    pub active: bool,
    /// Whether labrig saw it ready since it was started.
    pub ready: bool,
    /// Digest of the names and addresses it was told since it was started.
    pub hosts: Option<Digest>,
    /// Where it is on the host, if it runs.
    pub placement: Option<Placement>,
    /// What its definition takes.
    pub uses: DomainUses,
}

/// What the definition of a domain takes: nothing of it may be changed under a running domain.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct DomainUses {
    /// Memory of the host.
    pub memory: Bytes,
    /// Size of the huge pages that memory is made of, if it is.
    pub hugepages: Option<Bytes>,
    /// Files its disks are in.
    pub files: BTreeSet<PathBuf>,
    /// libvirt names of the networks its vnets are on.
    pub networks: BTreeSet<String>,
    /// MAC addresses of its vnets.
    pub macs: BTreeSet<MacAddr>,
    /// Devices of the lab host that its vnets are.
    pub devices: BTreeSet<String>,
}

/// A domain as its hypervisor lists it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct DomainStats {
    /// libvirt's name of the state: `running`, `paused`, `shut off` …
    pub state: String,
    /// Virtual CPUs online.
    pub vcpus: u32,
    /// Memory given.
    pub memory: Bytes,
    /// CPU time used since start, in nanoseconds, all vCPUs and the emulator.
    pub cpu_time_ns: u64,
    /// When labrig started it, if it runs.
    pub started: Option<Timestamp>,
}
