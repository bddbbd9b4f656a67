//! Vnets as written.

use std::net::Ipv4Addr;

use super::super::read::{At, Written};
use super::super::shape::{IPV4, Key, MAC, NAME, Shape};
use crate::model::MacAddr;

/// What a vnet is.
pub(super) const VNET: Shape = Shape::new(
    "A domain's port on a vswitch.",
    &[
        Key::required("vswitch", NAME, "data", "The vswitch."),
        Key::new(
            "ip",
            IPV4,
            "10.10.0.10",
            "Its address; derived when left out.",
        ),
        Key::new(
            "mac",
            MAC,
            "\"52:54:00:12:34:56\"",
            "Its MAC address; derived when left out.",
        ),
    ],
);

pub(in super::super) struct VnetSpec {
    pub vswitch: Written<String>,
    pub ip: Option<Written<Ipv4Addr>>,
    pub mac: Option<Written<MacAddr>>,
}

/// Reads a vnet.
pub(super) fn vnet(at: &At<'_>) -> Option<VnetSpec> {
    let fields = at.fields(&VNET)?;
    let ip = fields.get("ip").and_then(|at| {
        let text = at.text("10.10.0.10")?;
        let Ok(value) = text.value.parse() else {
            at.error(
                format!("{:?} is not an IPv4 address", text.value),
                "as in 10.10.0.10",
            );
            return None;
        };
        Some(Written {
            value,
            spot: text.spot,
        })
    });
    let mac = fields.get("mac").and_then(|at| mac(&at));
    let vswitch = fields.get("vswitch")?.text("data")?;
    let vswitch = Written {
        value: vswitch.value.to_owned(),
        spot: vswitch.spot,
    };
    Some(VnetSpec { vswitch, ip, mac })
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
