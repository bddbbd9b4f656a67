//! Vswitches as written.

use ipnet::Ipv4Net;

use super::super::read::{At, Written};
use super::super::shape::{Form, Key, SUBNET, Shape, Word, words};
use crate::model::{Name, VswitchMode};

/// What a vswitch is.
pub(super) const VSWITCH: Shape = Shape::new(
    "A virtual switch.",
    &[
        Key::new(
            "mode",
            Form::Words(words::<VswitchMode>),
            "nat",
            "What it reaches; isolated when left out.",
        ),
        Key::required("subnet", SUBNET, "10.10.0.0/24", "Its subnet."),
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
    ],
);

impl Word for VswitchMode {
    const WORDS: &'static [(&'static str, Self)] =
        &[("isolated", Self::Isolated), ("nat", Self::Nat)];
}

pub(in super::super) struct VswitchSpec {
    pub name: Written<Name>,
    pub mode: VswitchMode,
    pub subnet: Option<Written<Ipv4Net>>,
    pub mtu: u32,
}

/// Reads a vswitch.
pub(super) fn vswitch(name: Written<Name>, at: &At<'_>) -> Option<VswitchSpec> {
    let fields = at.fields(&VSWITCH)?;
    Some(VswitchSpec {
        name,
        mode: fields
            .get("mode")
            .and_then(|at| at.word())
            .unwrap_or(VswitchMode::Isolated),
        subnet: fields.get("subnet").and_then(|at| subnet(&at)),
        mtu: fields
            .get("mtu")
            .and_then(|at| at.whole())
            .map_or(1500, |n| n as u32),
    })
}

fn subnet(at: &At<'_>) -> Option<Written<Ipv4Net>> {
    let text = at.text("10.10.0.0/24")?;
    let Ok(net) = text.value.parse::<Ipv4Net>() else {
        at.error(
            format!("{:?} is not an IPv4 subnet", text.value),
            "write a network and its prefix length, as in 10.10.0.0/24",
        );
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
