//! A machine of the lab.

use std::net::Ipv4Addr;

use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::{Disk, GuestFile, GuestSettings, Instance, Machine, Name, Seconds, Split, Vnet};

/// A machine of the lab.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Domain {
    /// Its name: host name in the guest, and what a person types.
    pub name: Name,
    /// The key in the file; `dom` for `dom1` … `dom4`.
    pub group: Name,
    /// Position in its group, from 1.
    pub index: u32,
    /// What kind of machine it is.
    pub kind: DomainKind,
    /// Its share of the lab host; none for an external machine, which has its own.
    pub split: Option<Split>,
    /// Ports, in order.
    pub vnets: Vec<Vnet>,
    /// Database servers on it, in the file's order.
    pub instances: Vec<Instance>,
    /// Settings of its operating system.
    pub settings: GuestSettings,
    /// Files rendered for it.
    pub files: Vec<GuestFile>,
    /// Longest time for each step on the way from started to ready.
    pub boot_timeout: Seconds,
}

/// The kinds of machines.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum DomainKind {
    /// A virtual machine: KVM, or QEMU's emulation.
    Vm(Box<Guest>),
    /// A libvirt LXC container.
    Container(Box<Guest>),
    /// The lab host itself.
    Host,
    /// A machine that exists already.
    External(Endpoint),
}

/// What labrig makes through libvirt for a domain.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Guest {
    /// Name of the libvirt domain.
    pub libvirt_name: String,
    /// UUID of the libvirt domain.
    pub uuid: Uuid,
    /// Key into [`Topology::images`](super::Topology::images).
    pub image: Name,
    /// The machine it finds itself in.
    #[serde(default)]
    pub machine: Machine,
    /// Disks beyond the seed, in order; the first is the root overlay when the image has a disk.
    pub disks: Vec<Disk>,
}

/// How an external machine is reached.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Endpoint {
    /// Its IPv4 address.
    pub address: Ipv4Addr,
    /// Port of its SSH server.
    pub port: u16,
    /// Whom to log in as.
    pub user: String,
    /// File with the private key to log in with.
    pub key: std::path::PathBuf,
    /// Its public host key, as in `ssh-ed25519 AAAA…`.
    pub host_key: String,
}

impl DomainKind {
    /// The word for it in topologies and tables.
    pub const fn word(&self) -> &'static str {
        match self {
            Self::Vm(_) => "vm",
            Self::Container(_) => "container",
            Self::Host => "host",
            Self::External(_) => "external",
        }
    }
}

impl Domain {
    /// The address labrig reaches it at: an external machine's own, else that of its first vnet with
    /// an IPv4 address.
    pub fn address(&self) -> Option<Ipv4Addr> {
        match &self.kind {
            DomainKind::External(endpoint) => Some(endpoint.address),
            _ => self.vnets.iter().find_map(|vnet| vnet.ip),
        }
    }

    /// What labrig makes through libvirt for it; none for machines that are there already.
    pub fn guest(&self) -> Option<&Guest> {
        match &self.kind {
            DomainKind::Vm(guest) | DomainKind::Container(guest) => Some(guest),
            DomainKind::Host | DomainKind::External(_) => None,
        }
    }
}
