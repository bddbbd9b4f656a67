//! The names of all domains, as each guest's `/etc/hosts` has them.
//!
//! A file, and no DNS: it works on every kind of image and vswitch, for both address families, and
//! no name server takes part in what is measured.

use std::collections::HashMap;
use std::fmt::Write as _;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use crate::model::{Digest, Digester, Domain, Name, Topology};

/// Names and addresses of a lab. One value serves all its domains.
#[derive(Debug)]
pub struct Hosts {
    entries: Vec<Entry>,
    positions: HashMap<Name, usize>,
    digest: Digest,
}

#[derive(Debug)]
struct Entry {
    name: Name,
    /// Where it is reached when no vswitch is shared.
    address: Option<Ipv4Addr>,
    ports: Vec<Port>,
}

/// A vnet that has an address.
#[derive(Debug)]
struct Port {
    vswitch: Name,
    ip: Option<Ipv4Addr>,
    ip6: Option<Ipv6Addr>,
}

impl Hosts {
    /// The file in a guest.
    pub const PATH: &str = "/etc/hosts";

    /// The names of a lab.
    pub fn new(topology: &Topology) -> Self {
        let entries: Vec<_> = topology.domains.iter().map(Entry::of).collect();
        let positions = entries.iter().enumerate();
        Self {
            positions: positions.map(|(i, e)| (e.name.clone(), i)).collect(),
            digest: digest(&entries),
            entries,
        }
    }

    /// Digest of all names and addresses.
    pub const fn digest(&self) -> Digest {
        self.digest
    }

    /// The file of one domain. Another domain has its address on the first vswitch that both are on,
    /// in the order of this domain's vnets; without such a vswitch, its first address. So for each
    /// family.
    pub fn of(&self, domain: &Name) -> String {
        let mut text = format!(
            "127.0.0.1 localhost\n127.0.1.1 {domain}\n::1 localhost ip6-localhost ip6-loopback\n"
        );
        let own = self.positions.get(domain).map(|i| &self.entries[*i]);
        let own_ports = own.map_or(&[][..], |own| &own.ports);
        for entry in self.entries.iter().filter(|entry| entry.name != *domain) {
            for address in entry.seen_from(own_ports) {
                let _ = writeln!(text, "{address} {}", entry.name);
            }
        }
        text
    }
}

impl Entry {
    fn of(domain: &Domain) -> Self {
        let vnets = domain.vnets.iter();
        let ports = vnets.filter(|vnet| vnet.ip.is_some() || vnet.ip6.is_some());
        Self {
            name: domain.name.clone(),
            address: domain.address(),
            ports: ports
                .map(|vnet| Port {
                    vswitch: vnet.vswitch.clone(),
                    ip: vnet.ip,
                    ip6: vnet.ip6,
                })
                .collect(),
        }
    }

    fn seen_from(&self, others: &[Port]) -> impl Iterator<Item = IpAddr> {
        let on = |vswitch: &Name| self.ports.iter().find(|port| port.vswitch == *vswitch);
        let shared = others.iter().filter_map(|other| on(&other.vswitch));
        let ip = shared.clone().find_map(|port| port.ip).or(self.address);
        let mut all = shared.chain(&self.ports);
        let ip6 = all.find_map(|port| port.ip6).map(IpAddr::from);
        ip.map(IpAddr::from).into_iter().chain(ip6)
    }
}

fn digest(entries: &[Entry]) -> Digest {
    let mut digester = Digester::default();
    for entry in entries {
        digester = digester
            .field(entry.name.as_str())
            .field(format!("{:?}", entry.address));
        for port in &entry.ports {
            digester = digester
                .field(port.vswitch.as_str())
                .field(format!("{:?} {:?}", port.ip, port.ip6));
        }
    }
    digester.finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(name: &str, ports: &[(&str, &str, &str)]) -> Entry {
        let ports: Vec<_> = ports
            .iter()
            .map(|(vswitch, ip, ip6)| Port {
                vswitch: vswitch.parse().unwrap(),
                ip: ip.parse().ok(),
                ip6: ip6.parse().ok(),
            })
            .collect();
        Entry {
            name: name.parse().unwrap(),
            address: ports.iter().find_map(|port| port.ip),
            ports,
        }
    }

    #[test]
    fn a_domain_has_the_address_of_the_first_vswitch_that_is_shared() {
        let other = entry(
            "b",
            &[
                ("x", "10.0.0.2", "fd00::2"),
                ("y", "10.0.1.2", ""),
                ("z", "", "fd00:3::2"),
            ],
        );
        for (own, expected) in [
            (entry("a", &[("x", "10.0.0.1", "")]), "10.0.0.2 fd00::2"),
            (entry("a", &[("y", "10.0.1.1", "")]), "10.0.1.2 fd00::2"),
            (
                entry("a", &[("z", "", "fd00:3::1"), ("y", "10.0.1.1", "")]),
                "10.0.1.2 fd00:3::2",
            ),
            (entry("a", &[("w", "10.9.0.1", "")]), "10.0.0.2 fd00::2"),
            (entry("a", &[]), "10.0.0.2 fd00::2"),
        ] {
            let seen: Vec<_> = other
                .seen_from(&own.ports)
                .map(|ip| ip.to_string())
                .collect();
            assert_eq!(seen.join(" "), expected, "{own:?}");
        }
    }

    #[test]
    fn every_change_of_a_name_or_an_address_shows_in_the_digest() {
        let lists = [
            vec![entry("a", &[("x", "10.0.0.1", "")])],
            vec![entry("b", &[("x", "10.0.0.1", "")])],
            vec![entry("a", &[("y", "10.0.0.1", "")])],
            vec![entry("a", &[("x", "10.0.0.2", "")])],
            vec![entry("a", &[("x", "10.0.0.1", "fd00::1")])],
            vec![entry("a", &[("x", "10.0.0.1", "")]), entry("b", &[])],
        ];
        let digests: std::collections::BTreeSet<_> =
            lists.iter().map(|entries| digest(entries)).collect();
        assert_eq!(digests.len(), lists.len());
    }
}
