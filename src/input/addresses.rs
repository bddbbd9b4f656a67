//! MAC and IP addresses of vnets.
//!
//! Each derives from a hash of (lab, domain, position), so the same file gives the same addresses
//! everywhere, and a domain that comes or goes moves others only where two hashes truly meet.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::net::Ipv4Addr;

use ipnet::Ipv4Net;

use super::read::{Doc, Spot, Written};
use super::topology::VswitchSpec;
use crate::model::{Digest, Digester, MacAddr, Name};

/// Addresses of a subnet that no vnet gets: the network, its gateway and its broadcast address.
const SET_ASIDE: u64 = 3;

/// A vnet that wants addresses.
pub(super) struct Port<'a> {
    pub domain: &'a Name,
    /// Position in the domain, from 0.
    pub index: usize,
    pub vswitch: &'a VswitchSpec,
    pub ip: Option<&'a Written<Ipv4Addr>>,
    pub mac: Option<&'a Written<MacAddr>>,
}

/// The lab host's address on a subnet: the first that a host can have.
pub(super) fn gateway(subnet: Ipv4Net) -> Ipv4Addr {
    nth(subnet, 1)
}

fn nth(subnet: Ipv4Net, n: u64) -> Ipv4Addr {
    Ipv4Addr::from_bits(subnet.network().to_bits().wrapping_add(n as u32))
}

fn size(subnet: Ipv4Net) -> u64 {
    1 << (32 - subnet.prefix_len())
}

/// Decides every port's addresses, in the order of `ports`. Notes fixed ones that cannot be.
pub(super) fn assign(doc: &Doc, lab: &Name, ports: &[Port<'_>]) -> Vec<(MacAddr, Ipv4Addr)> {
    let macs = assign_macs(doc, lab, ports);
    let mut ips = vec![Ipv4Addr::UNSPECIFIED; ports.len()];
    let mut by_vswitch: BTreeMap<&Name, Vec<usize>> = BTreeMap::new();
    for (i, port) in ports.iter().enumerate() {
        by_vswitch
            .entry(&port.vswitch.name.value)
            .or_default()
            .push(i);
    }
    for members in by_vswitch.into_values() {
        if let Some(subnet) = &ports[members[0]].vswitch.subnet {
            assign_ips(doc, lab, subnet, ports, &members, &mut ips);
        }
    }
    macs.into_iter().zip(ips).collect()
}

fn assign_macs(doc: &Doc, lab: &Name, ports: &[Port<'_>]) -> Vec<MacAddr> {
    let mut fixed: HashMap<MacAddr, &Spot> = HashMap::new();
    for mac in ports.iter().filter_map(|port| port.mac) {
        if let Some(first) = fixed.insert(mac.value, &mac.spot)
            && *first != mac.spot
        {
            let note = doc.error(
                &mac.spot,
                format!("MAC address {} is given twice", mac.value),
            );
            let note = note.hint("change one of them, or leave it out");
            doc.push(note.label(Some(doc.place(first)), "first given here"));
        }
    }
    let mut taken: HashSet<MacAddr> = fixed.into_keys().collect();
    let mut macs = vec![MacAddr::derived([0; 5]); ports.len()];
    for (i, _) in in_hash_order(lab, ports, 0..ports.len()) {
        macs[i] = match ports[i].mac {
            Some(mac) => mac.value,
            None => (0_u32..)
                .map(|attempt| derived_mac(lab, &ports[i], attempt))
                .find(|mac| taken.insert(*mac))
                .unwrap_or(macs[i]),
        };
    }
    macs
}

fn derived_mac(lab: &Name, port: &Port<'_>, attempt: u32) -> MacAddr {
    let digest = port_digest("mac", lab, port)
        .field(attempt.to_be_bytes())
        .finish();
    let [a, b, c, d, e, ..] = *digest.bytes();
    MacAddr::derived([a, b, c, d, e])
}

fn assign_ips(
    doc: &Doc,
    lab: &Name,
    subnet: &Written<Ipv4Net>,
    ports: &[Port<'_>],
    members: &[usize],
    ips: &mut [Ipv4Addr],
) {
    let net = subnet.value;
    let room = size(net).saturating_sub(SET_ASIDE);
    if members.len() as u64 > room {
        let message = format!(
            "{net} has room for {room} vnets, {} are on it",
            members.len()
        );
        let hint = "take a larger subnet (a smaller prefix length), or spread the domains";
        doc.push(doc.error(&subnet.spot, message).hint(hint));
        return;
    }
    let mut taken: HashSet<Ipv4Addr> = HashSet::new();
    let mut spots: HashMap<Ipv4Addr, &Spot> = HashMap::new();
    for &i in members {
        let Some(ip) = ports[i].ip else { continue };
        ips[i] = ip.value;
        taken.insert(ip.value);
        let place = Some(doc.place(&subnet.spot));
        if let Some(wrong) = unusable(net, ip.value) {
            let note = doc.error(&ip.spot, format!("{} {wrong}", ip.value));
            let hint = format!(
                "take one from {} to {}",
                nth(net, 2),
                nth(net, size(net) - 2)
            );
            doc.push(note.hint(hint).label(place, "the subnet"));
        } else if let Some(first) = spots.insert(ip.value, &ip.spot)
            && *first != ip.spot
        {
            let note = doc.error(&ip.spot, format!("address {} is given twice", ip.value));
            let note = note.hint("change one of them, or leave it out: a free one is found");
            doc.push(note.label(Some(doc.place(first)), "first given here"));
        }
    }
    for (i, digest) in in_hash_order(lab, ports, members.iter().copied()) {
        if ports[i].ip.is_some() {
            continue;
        }
        let home = leading_u64(digest) % room;
        let free = (0..room).map(|step| nth(net, 2 + (home + step) % room));
        if let Some(ip) = free.into_iter().find(|ip| taken.insert(*ip)) {
            ips[i] = ip;
        }
    }
}

/// Why an address cannot be a vnet's.
fn unusable(net: Ipv4Net, ip: Ipv4Addr) -> Option<&'static str> {
    if !net.contains(&ip) {
        Some("is outside the vswitch's subnet")
    } else if ip == net.network() {
        Some("is the subnet's own address")
    } else if ip == net.broadcast() {
        Some("is the subnet's broadcast address")
    } else if ip == gateway(net) {
        Some("is the lab host's own address on the vswitch")
    } else {
        None
    }
}

/// The ports in an order that depends on each port's own hash only.
fn in_hash_order(
    lab: &Name,
    ports: &[Port<'_>],
    members: impl Iterator<Item = usize>,
) -> Vec<(usize, Digest)> {
    let mut order: Vec<(usize, Digest)> = members
        .map(|i| (i, port_digest("ip", lab, &ports[i]).finish()))
        .collect();
    order.sort_unstable_by_key(|(i, digest)| (*digest, *i));
    order
}

fn port_digest(purpose: &str, lab: &Name, port: &Port<'_>) -> Digester {
    Digester::default()
        .field(purpose)
        .field(lab.as_str())
        .field(port.domain.as_str())
        .field((port.index as u64).to_be_bytes())
}

fn leading_u64(digest: Digest) -> u64 {
    let [a, b, c, d, e, f, g, h, ..] = *digest.bytes();
    u64::from_be_bytes([a, b, c, d, e, f, g, h])
}
