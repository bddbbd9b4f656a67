//! Virtual switches, and the ports that domains have on them.

use std::net::{Ipv4Addr, Ipv6Addr};

use ipnet::{Ipv4Net, Ipv6Net};
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::{Impairment, MacAddr, Name, PortImpairment};

/// What a vswitch is made of, and so what it reaches.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum VswitchMode {
    /// A bridge of the lab's own: its domains and the lab host only.
    Isolated,
    /// The same, and what the lab host reaches, through address translation.
    Nat,
    /// The same, and what the lab host reaches, if that knows the way back.
    Routed,
    /// A bridge that the lab host has already, with whatever is on it.
    Bridge,
    /// A port of the lab host, shared with it (macvtap). The lab host itself cannot be reached on it.
    Macvtap,
    /// An Open vSwitch bridge that the lab host has already.
    Openvswitch,
}

/// Who tells a guest its addresses.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Addressing {
    /// Its own settings.
    #[default]
    Static,
    /// For IPv4 the network's DHCP, which keeps the same address for it. IPv6 addresses are set in
    /// the guest all the same.
    Dhcp,
}

/// A virtual switch.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Vswitch {
    /// What it is made of.
    pub mode: VswitchMode,
    /// Device of the lab host: the bridge that is made or there already, or the port. At most 15
    /// characters (IFNAMSIZ).
    pub device: String,
    /// VLAN tag of its frames; Open vSwitch only.
    pub vlan: Option<u16>,
    /// Its IPv4 subnet.
    pub subnet: Option<Ipv4Net>,
    /// Its IPv6 subnet.
    pub subnet6: Option<Ipv6Net>,
    /// Where guests send what is for elsewhere: the lab host's address on it, if that is a bridge of
    /// the lab's own.
    pub gateway: Option<Ipv4Addr>,
    /// The same for IPv6.
    pub gateway6: Option<Ipv6Addr>,
    /// Who tells guests their addresses.
    pub addressing: Addressing,
    /// Largest frame payload in bytes.
    pub mtu: u32,
    /// What every frame to a vnet meets.
    pub impairment: Impairment,
    /// Name of the libvirt network.
    pub network: String,
    /// UUID of the libvirt network.
    pub uuid: Uuid,
}

/// Model of the network card that a domain sees.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum VnetModel {
    /// Paravirtual; the only one that can have several queues.
    #[default]
    Virtio,
    /// Intel 82540EM.
    E1000,
    /// Intel 82574L.
    E1000e,
    /// Realtek 8139.
    Rtl8139,
    /// VMware's.
    Vmxnet3,
}

/// A domain's port on a vswitch.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Vnet {
    /// Key into [`Topology::vswitches`](super::Topology::vswitches).
    pub vswitch: Name,
    /// Its MAC address.
    pub mac: MacAddr,
    /// Its address in the vswitch's IPv4 subnet, if that has one.
    pub ip: Option<Ipv4Addr>,
    /// Its address in the vswitch's IPv6 subnet, if that has one.
    pub ip6: Option<Ipv6Addr>,
    /// What the domain sees.
    pub model: VnetModel,
    /// Pairs of queues for its frames.
    pub queues: u32,
    /// Device of the lab host that is its other end. At most 15 characters (IFNAMSIZ).
    pub device: String,
    /// What frames to the domain meet, beside what the vswitch does to them.
    pub inbound: Impairment,
    /// What frames from the domain meet.
    pub outbound: Impairment,
}

impl VswitchMode {
    /// Whether labrig makes its bridge: then the lab host has addresses on it and serves DHCP.
    pub const fn is_own(self) -> bool {
        matches!(self, Self::Isolated | Self::Nat | Self::Routed)
    }

    /// Whether the lab host forwards what is for elsewhere.
    pub const fn is_forwarded(self) -> bool {
        matches!(self, Self::Nat | Self::Routed)
    }

    /// The word for it in a topology.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Isolated => "isolated",
            Self::Nat => "nat",
            Self::Routed => "routed",
            Self::Bridge => "bridge",
            Self::Macvtap => "macvtap",
            Self::Openvswitch => "openvswitch",
        }
    }
}

impl VnetModel {
    /// The word for it in a topology and in libvirt.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Virtio => "virtio",
            Self::E1000 => "e1000",
            Self::E1000e => "e1000e",
            Self::Rtl8139 => "rtl8139",
            Self::Vmxnet3 => "vmxnet3",
        }
    }
}

impl Vswitch {
    /// The IPv4 gateway of its guests' default route; none where nothing is forwarded.
    pub fn route(&self) -> Option<Ipv4Addr> {
        self.gateway.filter(|_| self.forwards())
    }

    /// The same for IPv6.
    pub fn route6(&self) -> Option<Ipv6Addr> {
        self.gateway6.filter(|_| self.forwards())
    }

    const fn forwards(&self) -> bool {
        // On a network that is not of the lab's own, a gateway is there because somebody wrote it.
        self.mode.is_forwarded() || !self.mode.is_own()
    }
}

impl Vnet {
    /// How the names of all vnets' devices begin.
    pub const DEVICE_PREFIX: &str = "lp";

    /// What its frames meet, the vswitch's settings included.
    pub fn impairments(&self, vswitch: &Vswitch) -> PortImpairment {
        PortImpairment {
            inbound: vswitch.impairment.then(self.inbound),
            outbound: self.outbound,
        }
    }
}
