//! libvirt network XML of a vswitch.

use ipnet::Ipv4Net;

use std::io::Write as _;

use super::xml::{empty, render, tagged, text};
use crate::model::{Digest, Reservation, Topology, Vswitch, VswitchMode};

/// The definition of a vswitch with its digest. Reservations are no part of the digest: they can be
/// changed while the network runs.
pub fn network_xml<'a>(
    topology: &Topology,
    vswitch: &Vswitch,
    reservations: impl IntoIterator<Item = &'a Reservation>,
) -> (String, Digest) {
    let reservations: Vec<_> = reservations.into_iter().map(reservation_xml).collect();
    tagged(&topology.lab, |xml, tag| {
        xml.create_element("network")
            .write_inner_content(|xml| {
                text(xml, "name", &vswitch.network)?;
                text(xml, "uuid", vswitch.uuid.to_string())?;
                tag.map_or(Ok(()), |tag| tag.write(xml))?;
                if vswitch.mode == VswitchMode::Nat {
                    empty(xml, "forward", &[("mode", "nat")])?;
                }
                // With spanning tree a new port would wait seconds before it forwards.
                empty(
                    xml,
                    "bridge",
                    &[("name", &vswitch.bridge), ("stp", "off"), ("delay", "0")],
                )?;
                empty(xml, "mtu", &[("size", &vswitch.mtu.to_string())])?;
                let (gateway, prefix) = (
                    vswitch.gateway.to_string(),
                    vswitch.subnet.prefix_len().to_string(),
                );
                xml.create_element("ip")
                    .with_attributes([("address", gateway.as_str()), ("prefix", prefix.as_str())])
                    .write_inner_content(|xml| {
                        xml.create_element("dhcp")
                            .write_inner_content(|xml| {
                                let (start, end) = dhcp_range(vswitch.subnet);
                                empty(xml, "range", &[("start", &start), ("end", &end)])?;
                                if tag.is_none() {
                                    return Ok(());
                                }
                                reservations.iter().try_for_each(|host| {
                                    xml.write_indent()?;
                                    xml.get_mut().write_all(host.as_bytes())
                                })
                            })
                            .map(drop)
                    })
                    .map(drop)
            })
            .map(drop)
    })
}

/// One reservation as libvirt's `<host/>`, also the form in which it is added to a running network.
pub fn reservation_xml(reservation: &Reservation) -> String {
    let (mac, ip) = (reservation.mac.to_string(), reservation.ip.to_string());
    render(|xml| {
        empty(
            xml,
            "host",
            &[("mac", &mac), ("name", &reservation.domain), ("ip", &ip)],
        )
    })
}

/// First and last address that DHCP may give: all hosts of the subnet but the gateway, the first.
fn dhcp_range(subnet: Ipv4Net) -> (String, String) {
    let first = u32::from(subnet.network()) + 2;
    let last = u32::from(subnet.broadcast()) - 1;
    (
        std::net::Ipv4Addr::from(first).to_string(),
        std::net::Ipv4Addr::from(last).to_string(),
    )
}
