//! Vnets as written.

use std::net::{Ipv4Addr, Ipv6Addr};
use std::str::FromStr;

use super::super::read::{At, Written};
use super::super::shape::{Form, IPV4, Key, MAC, NAME, Shape, Word, words};
use super::impairments::{IMPAIRMENT, impairment_at};
use super::vswitches::written;
use crate::model::{Impairment, MacAddr, VnetModel};

/// An IPv6 address.
pub(super) const IPV6: Form = Form::Syntax("^[0-9a-fA-F:.]+$");
/// Queues that a vnet may have: libvirt's and the kernel's bound for taps.
const QUEUES_MAX: u64 = 256;

/// What a vnet is.
pub(super) const VNET: Shape = Shape::new(
    "A domain's port on a vswitch.",
    &[
        Key::required("vswitch", NAME, "data", "The vswitch."),
        Key::new(
            "ip",
            IPV4,
            "10.10.0.10",
            "Its IPv4 address; derived when left out.",
        ),
        Key::new(
            "ip6",
            IPV6,
            "fd00:1::10",
            "Its IPv6 address; derived when left out.",
        ),
        Key::new(
            "mac",
            MAC,
            "\"52:54:00:12:34:56\"",
            "Its MAC address; derived when left out.",
        ),
        Key::new(
            "model",
            Form::Words(words::<VnetModel>),
            "e1000e",
            "The network card that the domain sees; virtio when left out.",
        ),
        Key::new(
            "queues",
            Form::Whole {
                least: 1,
                most: QUEUES_MAX,
            },
            "4",
            "Pairs of queues, at most one for each of the domain's CPUs; 1 when left out.",
        ),
        Key::new(
            "inbound",
            Form::Map(&IMPAIRMENT),
            "{bandwidth: 10Mbit/s}",
            "What frames to the domain meet, beside what the vswitch does to them.",
        ),
        Key::new(
            "outbound",
            Form::Map(&IMPAIRMENT),
            "{delay: 20ms}",
            "What frames from the domain meet, before they come to the vswitch.",
        ),
    ],
);

impl Word for VnetModel {
    const WORDS: &'static [(&'static str, Self)] = &[
        ("virtio", Self::Virtio),
        ("e1000", Self::E1000),
        ("e1000e", Self::E1000e),
        ("rtl8139", Self::Rtl8139),
        ("vmxnet3", Self::Vmxnet3),
    ];
}

pub(in super::super) struct VnetSpec {
    pub vswitch: Written<String>,
    pub ip: Option<Written<Ipv4Addr>>,
    pub ip6: Option<Written<Ipv6Addr>>,
    pub mac: Option<Written<MacAddr>>,
    pub model: Option<Written<VnetModel>>,
    pub queues: Option<Written<u32>>,
    pub inbound: Impairment,
    pub outbound: Impairment,
}

/// Reads a vnet.
pub(super) fn vnet(at: &At<'_>) -> Option<VnetSpec> {
    let fields = at.fields(&VNET)?;
    let vswitch = fields.get("vswitch")?.text("data")?;
    let impairment = |key: &str| fields.get(key).map(|at| impairment_at(&at));
    Some(VnetSpec {
        vswitch: Written {
            value: vswitch.value.to_owned(),
            spot: vswitch.spot,
        },
        ip: fields.get("ip").and_then(|at| ip(&at, "10.10.0.10")),
        ip6: fields.get("ip6").and_then(|at| ip6(&at, "fd00:1::10")),
        mac: fields.get("mac").and_then(|at| mac(&at)),
        model: fields
            .get("model")
            .and_then(|at| written(&at, |at| at.word())),
        queues: fields
            .get("queues")
            .and_then(|at| written(&at, |at| at.whole().map(|n| n as u32))),
        inbound: impairment("inbound").unwrap_or_default(),
        outbound: impairment("outbound").unwrap_or_default(),
    })
}

/// An IPv4 address.
pub(super) fn ip(at: &At<'_>, example: &str) -> Option<Written<Ipv4Addr>> {
    address(at, "an IPv4 address", example)
}

/// An IPv6 address.
pub(super) fn ip6(at: &At<'_>, example: &str) -> Option<Written<Ipv6Addr>> {
    address(at, "an IPv6 address", example)
}

fn address<T: FromStr>(at: &At<'_>, what: &str, example: &str) -> Option<Written<T>> {
    let text = at.text(example)?;
    let Ok(value) = text.value.parse() else {
        at.error(
            format!("{:?} is not {what}", text.value),
            format!("as in {example}"),
        );
        return None;
    };
    Some(Written {
        value,
        spot: text.spot,
    })
}

fn mac(at: &At<'_>) -> Option<Written<MacAddr>> {
    let mac: Written<MacAddr> = at.parse("\"52:54:00:12:34:56\"")?;
    // libvirt gives fe:… to its own end of every port, and takes zeros for none (src/util/virmacaddr.c).
    let text = mac.value.to_string();
    if text.starts_with("fe:") || text == "00:00:00:00:00:00" {
        at.error(format!("{text} is reserved"), "as in \"52:54:00:12:34:56\"");
        return None;
    }
    Some(mac)
}
