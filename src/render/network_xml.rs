//! libvirt network XML of a vswitch.

use std::io::Write as _;
use std::net::Ipv4Addr;

use ipnet::Ipv4Net;

use super::xml::{Xml, empty, render, tagged, text};
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
                if vswitch.mode.is_own() {
                    let served = tag.map_or(&[][..], |_| &reservations);
                    own_network(xml, vswitch, served)
                } else {
                    existing_network(xml, vswitch)
                }
            })
            .map(drop)
    })
}

/// A bridge that libvirt makes, with the lab host's addresses and a DHCP server on it.
fn own_network(xml: &mut Xml, vswitch: &Vswitch, reservations: &[String]) -> std::io::Result<()> {
    match vswitch.mode {
        VswitchMode::Nat if vswitch.subnet6.is_some() => {
            xml.create_element("forward")
                .with_attribute(("mode", "nat"))
                .write_inner_content(|xml| empty(xml, "nat", &[("ipv6", "yes")]))?;
        }
        VswitchMode::Nat => empty(xml, "forward", &[("mode", "nat")])?,
        VswitchMode::Routed => empty(xml, "forward", &[("mode", "route")])?,
        _ => {}
    }
    // With spanning tree a new port would wait seconds before it forwards.
    empty(
        xml,
        "bridge",
        &[("name", &vswitch.device), ("stp", "off"), ("delay", "0")],
    )?;
    empty(xml, "mtu", &[("size", &vswitch.mtu.to_string())])?;
    if let (Some(subnet), Some(gateway)) = (vswitch.subnet, vswitch.gateway) {
        let (gateway, prefix) = (gateway.to_string(), subnet.prefix_len().to_string());
        xml.create_element("ip")
            .with_attributes([("address", gateway.as_str()), ("prefix", prefix.as_str())])
            .write_inner_content(|xml| dhcp(xml, subnet, reservations))?;
    }
    if let (Some(subnet), Some(gateway)) = (vswitch.subnet6, vswitch.gateway6) {
        let (gateway, prefix) = (gateway.to_string(), subnet.prefix_len().to_string());
        empty(
            xml,
            "ip",
            &[
                ("family", "ipv6"),
                ("address", &gateway),
                ("prefix", &prefix),
            ],
        )?;
    }
    Ok(())
}

fn dhcp(xml: &mut Xml, subnet: Ipv4Net, reservations: &[String]) -> std::io::Result<()> {
    xml.create_element("dhcp")
        .write_inner_content(|xml| {
            let (start, end) = dhcp_range(subnet);
            empty(xml, "range", &[("start", &start), ("end", &end)])?;
            reservations.iter().try_for_each(|host| {
                xml.write_indent()?;
                xml.get_mut().write_all(host.as_bytes())
            })
        })
        .map(drop)
}

/// A device that the lab host has already: libvirt plugs vnets into it and leaves it as it is.
fn existing_network(xml: &mut Xml, vswitch: &Vswitch) -> std::io::Result<()> {
    let device = &vswitch.device;
    let forward = xml
        .create_element("forward")
        .with_attribute(("mode", "bridge"));
    if vswitch.mode == VswitchMode::Macvtap {
        return forward
            .write_inner_content(|xml| empty(xml, "interface", &[("dev", device)]))
            .map(drop);
    }
    forward.write_empty()?;
    empty(xml, "bridge", &[("name", device)])?;
    if vswitch.mode == VswitchMode::Openvswitch {
        empty(xml, "virtualport", &[("type", "openvswitch")])?;
    }
    if let Some(vlan) = vswitch.vlan {
        xml.create_element("vlan")
            .write_inner_content(|xml| empty(xml, "tag", &[("id", &vlan.to_string())]))?;
    }
    Ok(())
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
        Ipv4Addr::from(first).to_string(),
        Ipv4Addr::from(last).to_string(),
    )
}
