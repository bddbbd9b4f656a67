//! What a guest is told of its network.

use std::fmt::Write as _;

use serde_json::{Map, Value, json};

use crate::model::{Addressing, Domain, Topology, Vnet, Vswitch};

/// One line a vnet, for guests without systemd-networkd: `MAC MTU HOW ADDRESS GATEWAY ADDRESS6
/// GATEWAY6`. `HOW` is `static` or `dhcp`, addresses have their prefix lengths, and `-` stands for
/// what is not there.
pub(super) fn vnets(topology: &Topology, domain: &Domain) -> String {
    let mut text = String::new();
    for (vnet, vswitch) in ports(topology, domain) {
        let or_dash = |text: Option<String>| text.unwrap_or_else(|| "-".to_owned());
        let how = if asks(vnet, vswitch) {
            "dhcp"
        } else {
            "static"
        };
        let _ = writeln!(
            text,
            "{} {} {how} {} {} {} {}",
            vnet.mac,
            vswitch.mtu,
            or_dash(address(vnet, vswitch)),
            or_dash(vswitch.route().map(|ip| ip.to_string())),
            or_dash(address6(vnet, vswitch)),
            or_dash(vswitch.route6().map(|ip| ip.to_string())),
        );
    }
    text
}

/// The same for systemd-networkd: a unit a vnet.
pub(super) fn networkd_units(topology: &Topology, domain: &Domain) -> Vec<String> {
    ports(topology, domain)
        .map(|(vnet, vswitch)| networkd_unit(vnet, vswitch))
        .collect()
}

fn networkd_unit(vnet: &Vnet, vswitch: &Vswitch) -> String {
    let asks = asks(vnet, vswitch);
    let mut text = format!(
        "[Match]\nMACAddress={}\n\n[Link]\nMTUBytes={}\n\n[Network]\n",
        vnet.mac, vswitch.mtu
    );
    let mut line = |key: &str, value: Option<String>| {
        if let Some(value) = value {
            let _ = writeln!(text, "{key}={value}");
        }
    };
    line("DHCP", asks.then(|| "ipv4".to_owned()));
    line("Address", address(vnet, vswitch).filter(|_| !asks));
    line("Address", address6(vnet, vswitch));
    let link_local = if vnet.ip6.is_some() { "ipv6" } else { "no" };
    line("LinkLocalAddressing", Some(link_local.to_owned()));
    line("IPv6AcceptRA", Some("no".to_owned()));
    let route = vswitch.route().map(|ip| ip.to_string());
    line("Gateway", route.clone().filter(|_| !asks));
    line("Gateway", vswitch.route6().map(|ip| ip.to_string()));
    // Only the lab host's own networks have a name server there.
    line("DNS", route.filter(|_| vswitch.mode.is_own() && !asks));
    if vnet.ip6.is_some() {
        // The addresses are known to be free; looking for others costs a second of every boot.
        line("IPv6DuplicateAddressDetection", Some("0".to_owned()));
    }
    if asks {
        // Clones of one image would show one machine id, and so ask for one address.
        text.push_str("\n[DHCPv4]\nClientIdentifier=mac\nUseMTU=no\nUseHostname=no\n");
    }
    text
}

/// The same for cloud-init: version 2 of its network configuration.
pub(super) fn netplan(topology: &Topology, domain: &Domain) -> Value {
    let ethernets: Map<_, _> = ports(topology, domain)
        .enumerate()
        .map(|(i, (vnet, vswitch))| (format!("vnet{i}"), ethernet(vnet, vswitch)))
        .collect();
    json!({"version": 2, "ethernets": ethernets})
}

fn ethernet(vnet: &Vnet, vswitch: &Vswitch) -> Value {
    let asks = asks(vnet, vswitch);
    let fixed = address(vnet, vswitch).filter(|_| !asks);
    let addresses: Vec<_> = fixed.into_iter().chain(address6(vnet, vswitch)).collect();
    let mut ethernet = json!({
        "match": {"macaddress": vnet.mac.to_string()},
        "addresses": addresses,
        "dhcp4": asks,
        "dhcp6": false,
        "accept-ra": false,
        "mtu": vswitch.mtu,
    });
    if asks {
        ethernet["dhcp-identifier"] = "mac".into();
    }
    let route = vswitch.route().filter(|_| !asks);
    let routes: Vec<_> = route
        .map(|via| json!({"to": "0.0.0.0/0", "via": via}))
        .into_iter()
        .chain(
            vswitch
                .route6()
                .map(|via| json!({"to": "::/0", "via": via})),
        )
        .collect();
    if !routes.is_empty() {
        ethernet["routes"] = routes.into();
    }
    // Only the lab host's own networks have a name server there.
    if let Some(server) = route.filter(|_| vswitch.mode.is_own()) {
        ethernet["nameservers"] = json!({"addresses": [server]});
    }
    ethernet
}

fn ports<'a>(
    topology: &'a Topology,
    domain: &'a Domain,
) -> impl Iterator<Item = (&'a Vnet, &'a Vswitch)> {
    let vnets = domain.vnets.iter();
    vnets.filter_map(|vnet| Some((vnet, topology.vswitches.get(&vnet.vswitch)?)))
}

/// Whether the guest asks for its IPv4 address.
fn asks(vnet: &Vnet, vswitch: &Vswitch) -> bool {
    vswitch.addressing == Addressing::Dhcp && vnet.ip.is_some()
}

fn address(vnet: &Vnet, vswitch: &Vswitch) -> Option<String> {
    Some(format!("{}/{}", vnet.ip?, vswitch.subnet?.prefix_len()))
}

fn address6(vnet: &Vnet, vswitch: &Vswitch) -> Option<String> {
    Some(format!("{}/{}", vnet.ip6?, vswitch.subnet6?.prefix_len()))
}
