//! Vswitches as written.

use std::net::{Ipv4Addr, Ipv6Addr};

use ipnet::{Ipv4Net, Ipv6Net};

use super::super::read::{At, Fields, Written};
use super::super::shape::{Form, IPV4, Key, SUBNET, Shape, Word, words};
use super::impairments::{BANDWIDTH, DELAY, JITTER, LOSS, OPTIONAL, impairment};
use super::vnets::{IPV6, ip, ip6};
use crate::model::{Addressing, Impairment, Name, VswitchMode};

/// A network device of Linux.
const DEVICE: Form = Form::Syntax("^[A-Za-z0-9][A-Za-z0-9_.-]{0,14}$");
/// An IPv6 subnet.
const SUBNET6: Form = Form::Syntax("^[0-9a-fA-F:]+/[0-9]+$");
/// Longest name of a network device (IFNAMSIZ less its NUL).
const DEVICE_NAME_MAX: usize = 15;
/// The only prefix length of IPv6 networks of hosts (RFC 4291, 2.5.1).
const PREFIX6: u8 = 64;

/// What a vswitch is.
pub(super) const VSWITCH: Shape = Shape::new(
    "A virtual switch. Its bandwidth, delay, jitter and loss act once on every frame that a vnet takes from it; the bandwidth is that of each vnet.",
    &[
        Key::new(
            "mode",
            Form::Words(words::<VswitchMode>),
            "nat",
            "What it is made of: a bridge of the lab's own, which reaches the lab host only (isolated, the default), also what that reaches by address translation (nat) or routing (routed); or a bridge, a port (macvtap) or an Open vSwitch bridge (openvswitch) that the host has.",
        ),
        Key::new(
            "bridge",
            DEVICE,
            "br0",
            "The host's bridge, for mode bridge or openvswitch.",
        ),
        Key::new("port", DEVICE, "eth1", "The host's port, for mode macvtap."),
        Key::new(
            "vlan",
            Form::Whole {
                least: 1,
                most: 4094,
            },
            "42",
            "VLAN tag of its frames, for mode openvswitch.",
        ),
        Key::new("subnet", SUBNET, "10.10.0.0/24", "Its IPv4 subnet."),
        Key::new("subnet6", SUBNET6, "fd00:1::/64", "Its IPv6 subnet."),
        Key::new(
            "gateway",
            IPV4,
            "10.10.0.1",
            "Where guests send what is for elsewhere, on a network that the host has already.",
        ),
        Key::new("gateway6", IPV6, "fd00:1::1", "The same for IPv6."),
        Key::new(
            "addressing",
            Form::Words(words::<Addressing>),
            "dhcp",
            "Whether guests have their IPv4 addresses set (static, the default) or ask for them (dhcp); they are the same.",
        ),
        Key::new(
            "mtu",
            // IPv4 hosts must take 576 bytes (RFC 791); virtio-net takes no more than 65535.
            Form::Whole {
                least: 576,
                most: 65535,
            },
            "9000",
            "Largest frame payload in bytes; 1500 when left out.",
        ),
        BANDWIDTH,
        DELAY,
        JITTER,
        LOSS,
        OPTIONAL,
    ],
);

impl Word for VswitchMode {
    const WORDS: &'static [(&'static str, Self)] = &[
        ("isolated", Self::Isolated),
        ("nat", Self::Nat),
        ("routed", Self::Routed),
        ("bridge", Self::Bridge),
        ("macvtap", Self::Macvtap),
        ("openvswitch", Self::Openvswitch),
    ];
}

impl Word for Addressing {
    const WORDS: &'static [(&'static str, Self)] =
        &[("static", Self::Static), ("dhcp", Self::Dhcp)];
}

pub(in super::super) struct VswitchSpec {
    pub name: Written<Name>,
    /// None when left out.
    pub mode: Option<Written<VswitchMode>>,
    pub bridge: Option<Written<String>>,
    pub port: Option<Written<String>>,
    pub vlan: Option<Written<u16>>,
    pub subnet: Option<Written<Ipv4Net>>,
    pub subnet6: Option<Written<Ipv6Net>>,
    pub gateway: Option<Written<Ipv4Addr>>,
    pub gateway6: Option<Written<Ipv6Addr>>,
    pub addressing: Option<Written<Addressing>>,
    pub mtu: Option<Written<u32>>,
    pub impairment: Impairment,
    /// Whether one of its keys was refused, so that it is not known what it is to be.
    pub is_broken: bool,
}

impl VswitchSpec {
    pub fn mode(&self) -> VswitchMode {
        self.mode
            .as_ref()
            .map_or(VswitchMode::Isolated, |mode| mode.value)
    }
}

/// Reads a vswitch.
pub(super) fn vswitch(name: Written<Name>, at: &At<'_>) -> Option<VswitchSpec> {
    let fields = at.fields(&VSWITCH)?;
    let mut keys = Keys {
        is_broken: at
            .entries("subnet: 10.10.0.0/24")
            .iter()
            .any(|(key, _)| VSWITCH.key(key.value).is_none()),
        fields: &fields,
    };
    Some(VswitchSpec {
        name,
        mode: keys.read("mode", |at| written(at, |at| at.word())),
        bridge: keys.read("bridge", |at| device(at, "br0")),
        port: keys.read("port", |at| device(at, "eth1")),
        vlan: keys.read("vlan", |at| written(at, |at| at.whole().map(|n| n as u16))),
        subnet: keys.read("subnet", subnet),
        subnet6: keys.read("subnet6", subnet6),
        gateway: keys.read("gateway", |at| ip(at, "10.10.0.1")),
        gateway6: keys.read("gateway6", |at| ip6(at, "fd00:1::1")),
        addressing: keys.read("addressing", |at| written(at, |at| at.word())),
        mtu: keys.read("mtu", |at| written(at, |at| at.whole().map(|n| n as u32))),
        impairment: impairment(&fields),
        is_broken: keys.is_broken,
    })
}

/// Keys of a vswitch, and whether one of them could not be read.
struct Keys<'a> {
    fields: &'a Fields<'a>,
    is_broken: bool,
}

impl Keys<'_> {
    fn read<T>(&mut self, key: &str, read: impl FnOnce(&At<'_>) -> Option<T>) -> Option<T> {
        let at = self.fields.get(key)?;
        let value = read(&at);
        self.is_broken |= value.is_none();
        value
    }
}

/// A value with its spot.
pub(super) fn written<T>(at: &At<'_>, read: impl Fn(&At<'_>) -> Option<T>) -> Option<Written<T>> {
    Some(Written {
        value: read(at)?,
        spot: at.spot(),
    })
}

/// The name of a network device, which goes into command lines and files.
fn device(at: &At<'_>, example: &str) -> Option<Written<String>> {
    let name = super::word(at, example, |c| {
        c.is_ascii_alphanumeric() || matches!(c, '_' | '.' | '-')
    })?;
    if name.len() > DEVICE_NAME_MAX {
        at.error(
            format!("{name} is too long for a network device"),
            format!("Linux takes {DEVICE_NAME_MAX} characters"),
        );
        return None;
    }
    written(at, |_| Some(name.clone()))
}

fn subnet(at: &At<'_>) -> Option<Written<Ipv4Net>> {
    let text = at.text("10.10.0.0/24")?;
    let Ok(net) = text.value.parse::<Ipv4Net>() else {
        let hint = match text.value.parse::<Ipv6Net>() {
            Ok(_) => "an IPv6 subnet goes under subnet6",
            Err(_) => "write a network and its prefix length, as in 10.10.0.0/24",
        };
        at.error(format!("{:?} is not an IPv4 subnet", text.value), hint);
        return None;
    };
    if net.trunc() != net {
        at.error(
            format!("{net} is an address inside a subnet"),
            format!("the subnet itself is {}", net.trunc()),
        );
        return None;
    }
    if !(8..=30).contains(&net.prefix_len()) {
        at.error(
            format!(
                "a prefix length of {} leaves no usable subnet",
                net.prefix_len()
            ),
            "prefix lengths from 8 to 30 can be used",
        );
        return None;
    }
    let first = net.network();
    if first.is_loopback()
        || first.is_multicast()
        || first.octets()[0] == 0
        || first.octets()[0] > 239
    {
        at.error(
            format!("{net} is not for hosts"),
            "use a private network: part of 10.0.0.0/8, 172.16.0.0/12 or 192.168.0.0/16",
        );
        return None;
    }
    Some(Written {
        value: net,
        spot: text.spot,
    })
}

fn subnet6(at: &At<'_>) -> Option<Written<Ipv6Net>> {
    let text = at.text("fd00:1::/64")?;
    let Ok(net) = text.value.parse::<Ipv6Net>() else {
        let hint = match text.value.parse::<Ipv4Net>() {
            Ok(_) => "an IPv4 subnet goes under subnet",
            Err(_) => "write a network and its prefix length, as in fd00:1::/64",
        };
        at.error(format!("{:?} is not an IPv6 subnet", text.value), hint);
        return None;
    };
    if net.trunc() != net {
        at.error(
            format!("{net} is an address inside a subnet"),
            format!("the subnet itself is {}", net.trunc()),
        );
        return None;
    }
    if net.prefix_len() != PREFIX6 {
        at.error(
            format!(
                "an IPv6 subnet of a prefix length of {} has no hosts",
                net.prefix_len()
            ),
            format!("IPv6 networks of hosts have a prefix length of {PREFIX6}"),
        );
        return None;
    }
    // Global unicast (2000::/3) and unique local (fc00::/7).
    let first = net.network().segments()[0];
    if first >> 13 != 1 && first >> 9 != 0xfc00 >> 9 {
        at.error(
            format!("{net} is not for hosts"),
            "use a private network: part of fd00::/8",
        );
        return None;
    }
    Some(Written {
        value: net,
        spot: text.spot,
    })
}
