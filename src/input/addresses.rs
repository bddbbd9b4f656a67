//! MAC and IP addresses of vnets.
//!
//! Each derives from a hash of (lab, domain, position), so the same file gives the same addresses
//! everywhere, and a domain that comes or goes moves others only where two hashes truly meet.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use ipnet::{IpNet, Ipv4Net, Ipv6Net};

use super::read::{Doc, Spot, Written};
use super::topology::VswitchSpec;
use crate::model::{Digest, Digester, MacAddr, Name};

/// Addresses at the beginning of a subnet that no vnet gets by itself: its own, and the gateway's.
const SET_ASIDE: u64 = 2;

/// A vnet that wants addresses.
pub(super) struct Port<'a> {
    pub domain: &'a Name,
    /// Position in the domain, from 0.
    pub index: usize,
    pub vswitch: &'a VswitchSpec,
    pub ip: Option<&'a Written<Ipv4Addr>>,
    pub ip6: Option<&'a Written<Ipv6Addr>>,
    pub mac: Option<&'a Written<MacAddr>>,
}

/// What a vnet gets.
#[derive(Debug, Clone, Copy)]
pub(super) struct Assigned {
    pub mac: MacAddr,
    pub ip: Option<Ipv4Addr>,
    pub ip6: Option<Ipv6Addr>,
}

/// A subnet whose addresses are given out.
struct Pool<'a> {
    net: IpNet,
    spot: &'a Spot,
    gateway: Option<IpAddr>,
    /// Whether the lab host is the gateway.
    is_own: bool,
}

/// The lab host's address on a subnet: the first that a host can have.
pub(super) fn gateway(subnet: Ipv4Net) -> Ipv4Addr {
    nth4(subnet, 1)
}

/// The same for IPv6.
pub(super) fn gateway6(subnet: Ipv6Net) -> Ipv6Addr {
    nth6(subnet, 1)
}

fn nth(net: IpNet, n: u64) -> IpAddr {
    match net {
        IpNet::V4(net) => nth4(net, n as u32).into(),
        IpNet::V6(net) => nth6(net, n).into(),
    }
}

fn nth4(net: Ipv4Net, n: u32) -> Ipv4Addr {
    Ipv4Addr::from_bits(net.network().to_bits().wrapping_add(n))
}

fn nth6(net: Ipv6Net, n: u64) -> Ipv6Addr {
    Ipv6Addr::from_bits(net.network().to_bits().wrapping_add(n.into()))
}

/// Decides every port's addresses, in the order of `ports`. Notes fixed ones that cannot be.
pub(super) fn assign(doc: &Doc, lab: &Name, ports: &[Port<'_>]) -> Vec<Assigned> {
    let mut assigned: Vec<_> = assign_macs(doc, lab, ports)
        .into_iter()
        .map(|mac| Assigned {
            mac,
            ip: None,
            ip6: None,
        })
        .collect();
    let mut by_vswitch: BTreeMap<&Name, Vec<usize>> = BTreeMap::new();
    for (i, port) in ports.iter().enumerate() {
        by_vswitch
            .entry(&port.vswitch.name.value)
            .or_default()
            .push(i);
    }
    for members in by_vswitch.into_values() {
        let vswitch = ports[members[0]].vswitch;
        let fixed = |i: usize| fixed(ports[i].ip);
        match Pool::of(vswitch, vswitch.subnet.as_ref(), vswitch.gateway.as_ref()) {
            Some(pool) => pool.assign(doc, lab, ("ip", fixed), ports, &members, |i, ip| {
                if let IpAddr::V4(ip) = ip {
                    assigned[i].ip = Some(ip);
                }
            }),
            None => refuse_fixed(doc, vswitch, "subnet", fixed, &members),
        }
        let fixed = |i: usize| self::fixed(ports[i].ip6);
        match Pool::of(vswitch, vswitch.subnet6.as_ref(), vswitch.gateway6.as_ref()) {
            Some(pool) => pool.assign(doc, lab, ("ip6", fixed), ports, &members, |i, ip| {
                if let IpAddr::V6(ip) = ip {
                    assigned[i].ip6 = Some(ip);
                }
            }),
            None => refuse_fixed(doc, vswitch, "subnet6", fixed, &members),
        }
    }
    assigned
}

fn fixed<T: Copy + Into<IpAddr>>(written: Option<&Written<T>>) -> Option<(IpAddr, &Spot)> {
    written.map(|written| (written.value.into(), &written.spot))
}

/// Notes addresses on a vswitch that has no subnet for them.
fn refuse_fixed<'a>(
    doc: &Doc,
    vswitch: &VswitchSpec,
    key: &str,
    fixed: impl Fn(usize) -> Option<(IpAddr, &'a Spot)>,
    members: &[usize],
) {
    // A subnet that could not be read, or none where there must be one, is noted already.
    let has_none = vswitch.subnet.is_none() && vswitch.subnet6.is_none();
    if vswitch.is_broken || has_none && vswitch.mode().is_own() {
        return;
    }
    for (ip, spot) in members.iter().filter_map(|i| fixed(*i)) {
        let name = vswitch.name.value.as_str();
        let message = format!("{ip} is on vswitch {name:?}, which has no {key}");
        let note = doc.error(spot, message);
        let hint = format!("give the vswitch a {key}, or leave the address out");
        let place = Some(doc.place(&vswitch.name.spot));
        doc.push(note.hint(hint).label(place, "the vswitch"));
    }
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
    for (i, _) in in_hash_order("ip", lab, ports, 0..ports.len()) {
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

impl<'a> Pool<'a> {
    fn of<N, A>(
        vswitch: &VswitchSpec,
        subnet: Option<&'a Written<N>>,
        written: Option<&Written<A>>,
    ) -> Option<Self>
    where
        N: Copy + Into<IpNet>,
        A: Copy + Into<IpAddr>,
    {
        let subnet = subnet?;
        let net = subnet.value.into();
        let is_own = vswitch.mode().is_own();
        let gateway = match written {
            _ if is_own => Some(nth(net, 1)),
            written => written.map(|written| written.value.into()),
        };
        Some(Self {
            net,
            spot: &subnet.spot,
            gateway,
            is_own,
        })
    }

    /// How many addresses can be derived, less the gateway's if that is one of them.
    fn room(&self) -> u64 {
        let all = self.derivable();
        let last = nth(self.net, SET_ASIDE + all - 1);
        let is_within =
            |ip: IpAddr| self.net.contains(&ip) && ip >= nth(self.net, SET_ASIDE) && ip <= last;
        all - u64::from(self.gateway.is_some_and(is_within))
    }

    fn derivable(&self) -> u64 {
        match self.net {
            // The last one is the broadcast address.
            IpNet::V4(net) => (1_u64 << (32 - net.prefix_len())) - SET_ASIDE - 1,
            // A part that is large enough, and short to write.
            IpNet::V6(_) => (1 << 32) - SET_ASIDE,
        }
    }

    fn assign<'s>(
        &self,
        doc: &Doc,
        lab: &Name,
        (purpose, fixed): (&str, impl Fn(usize) -> Option<(IpAddr, &'s Spot)>),
        ports: &[Port<'_>],
        members: &[usize],
        mut give: impl FnMut(usize, IpAddr),
    ) {
        let net = self.net;
        let room = self.room();
        if members.len() as u64 > room {
            let message = format!(
                "{net} has room for {room} vnets, {} are on it",
                members.len()
            );
            let hint = "take a larger subnet (a smaller prefix length), or spread the domains";
            doc.push(doc.error(self.spot, message).hint(hint));
            return;
        }
        let mut taken: HashSet<IpAddr> = self.gateway.into_iter().collect();
        let mut spots: HashMap<IpAddr, &Spot> = HashMap::new();
        for &i in members {
            let Some((ip, spot)) = fixed(i) else { continue };
            give(i, ip);
            taken.insert(ip);
            let place = Some(doc.place(self.spot));
            if let Some(wrong) = self.unusable(ip) {
                let note = doc.error(spot, format!("{ip} {wrong}"));
                let last = nth(net, SET_ASIDE + self.derivable() - 1);
                let hint = format!("take one from {} to {last}", nth(net, SET_ASIDE));
                doc.push(note.hint(hint).label(place, "the subnet"));
            } else if let Some(first) = spots.insert(ip, spot)
                && *first != *spot
            {
                let note = doc.error(spot, format!("address {ip} is given twice"));
                let note = note.hint("change one of them, or leave it out: a free one is found");
                doc.push(note.label(Some(doc.place(first)), "first given here"));
            }
        }
        let derivable = self.derivable();
        for (i, digest) in in_hash_order(purpose, lab, ports, members.iter().copied()) {
            if fixed(i).is_some() {
                continue;
            }
            let home = leading_u64(digest) % derivable;
            let mut free =
                (0..derivable).map(|step| nth(net, SET_ASIDE + (home + step) % derivable));
            if let Some(ip) = free.find(|ip| taken.insert(*ip)) {
                give(i, ip);
            }
        }
    }

    /// Why an address cannot be a vnet's.
    fn unusable(&self, ip: IpAddr) -> Option<&'static str> {
        if !self.net.contains(&ip) {
            Some("is outside the vswitch's subnet")
        } else if ip == self.net.network() {
            Some("is the subnet's own address")
        } else if matches!(self.net, IpNet::V4(net) if ip == IpAddr::V4(net.broadcast())) {
            Some("is the subnet's broadcast address")
        } else if self.gateway == Some(ip) {
            Some(if self.is_own {
                "is the lab host's own address on the vswitch"
            } else {
                "is the vswitch's gateway"
            })
        } else {
            None
        }
    }
}

/// The ports in an order that depends on each port's own hash only.
fn in_hash_order(
    purpose: &str,
    lab: &Name,
    ports: &[Port<'_>],
    members: impl Iterator<Item = usize>,
) -> Vec<(usize, Digest)> {
    let mut order: Vec<(usize, Digest)> = members
        .map(|i| (i, port_digest(purpose, lab, &ports[i]).finish()))
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
