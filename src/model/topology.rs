//! A lab with everything decided: defaults filled, counts expanded, names bound, addresses fixed.

use std::collections::BTreeMap;
use std::net::Ipv4Addr;

use ipnet::Ipv4Net;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::{Domain, Image, MacAddr, Name};

/// What a lab is. Serialised, it is what locks and archives hold.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Topology {
    /// Which lab this is.
    pub lab: Lab,
    /// Variables that templates see; secrets are not among them.
    pub vars: serde_json::Map<String, serde_json::Value>,
    /// Environment variables that secret variables come from, by the variable's name.
    pub secrets: BTreeMap<String, String>,
    /// Images by name; only those that a domain uses.
    pub images: BTreeMap<Name, Image>,
    /// Virtual switches by name.
    pub vswitches: BTreeMap<Name, Vswitch>,
    /// Domains, in the file's order with counts expanded.
    pub domains: Vec<Domain>,
}

/// A lab's identity: all object names and addresses derive from it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Lab {
    /// The lab's name.
    pub name: Name,
}

/// What a vswitch reaches.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum VswitchMode {
    /// Its own domains and the lab host only.
    Isolated,
    /// Also what the lab host reaches, through address translation.
    Nat,
}

/// A virtual switch.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Vswitch {
    /// What it reaches.
    pub mode: VswitchMode,
    /// Its subnet.
    pub subnet: Ipv4Net,
    /// The lab host's address on it; first host address of the subnet.
    pub gateway: Ipv4Addr,
    /// Largest frame payload in bytes.
    pub mtu: u32,
    /// Name of the bridge device (at most 15 characters, IFNAMSIZ).
    pub bridge: String,
    /// Name of the libvirt network.
    pub network: String,
    /// UUID of the libvirt network.
    pub uuid: Uuid,
}

/// A domain's port on a vswitch.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Vnet {
    /// Key into [`Topology::vswitches`].
    pub vswitch: Name,
    /// Its MAC address.
    pub mac: MacAddr,
    /// Its address, reserved in the network's DHCP.
    pub ip: Ipv4Addr,
}

/// A file in the guest, from a template.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct GuestFile {
    /// Template, relative to the template directory.
    pub template: String,
    /// Absolute path in the guest.
    pub to: String,
    /// Permission bits.
    pub mode: u32,
    /// Values the template sees as `vars`.
    pub vars: serde_json::Map<String, serde_json::Value>,
}

impl Topology {
    /// Finds a domain by name.
    pub fn domain(&self, name: &str) -> Option<&Domain> {
        self.domains.iter().find(|d| d.name.as_str() == name)
    }
}
