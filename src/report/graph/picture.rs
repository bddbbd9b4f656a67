//! What a picture of a lab says, before it is known where it stands.

use std::net::IpAddr;

use crate::model::{Addressing, Domain, DomainKind, Name, Topology, Vnet, Vswitch};

/// Up to this many domains each is drawn by itself; beyond, members of a group that look the same
/// are drawn as one.
const MOST_SINGLE: usize = 24;

/// All that is drawn of a lab.
#[derive(Debug)]
pub(super) struct Picture {
    /// The lab's name.
    pub lab: String,
    /// How much it has, as in `2 domains, 1 vswitch`.
    pub extent: String,
    /// Its vswitches.
    pub vswitches: Vec<DrawnVswitch>,
    /// Its domains, in order.
    pub domains: Vec<DrawnDomain>,
}

/// A vswitch.
#[derive(Debug)]
pub(super) struct DrawnVswitch {
    pub name: String,
    /// Mode, subnets, MTU, impairments.
    pub facts: Vec<String>,
}

/// A domain, or several that look the same.
#[derive(Debug)]
pub(super) struct DrawnDomain {
    /// Its name, or the first and the last.
    pub name: String,
    /// How many they are.
    pub count: usize,
    /// The word for what kind of machine it is.
    pub kind: &'static str,
    /// CPUs, memory, image.
    pub facts: Vec<String>,
    /// What listens on it.
    pub instances: Vec<String>,
    pub ports: Vec<DrawnPort>,
}

/// A domain's port on a vswitch.
#[derive(Debug)]
pub(super) struct DrawnPort {
    /// Index into [`Picture::vswitches`].
    pub vswitch: usize,
    /// One for each family.
    pub addresses: Vec<String>,
    /// What is special about it.
    pub facts: Vec<String>,
}

impl Picture {
    pub fn of(topology: &Topology) -> Self {
        let names: Vec<_> = topology.vswitches.keys().collect();
        let folds = topology.domains.len() > MOST_SINGLE;
        let domains = topology
            .domains
            .chunk_by(|a, b| folds && looks_the_same(a, b))
            .map(|members| DrawnDomain::of(members, &names))
            .collect();
        Self {
            lab: topology.lab.name.to_string(),
            extent: format!(
                "{}, {}",
                counted(topology.domains.len(), "domain", "domains"),
                counted(topology.vswitches.len(), "vswitch", "vswitches")
            ),
            vswitches: topology
                .vswitches
                .iter()
                .map(|(name, vswitch)| DrawnVswitch {
                    name: name.to_string(),
                    facts: vswitch_facts(vswitch),
                })
                .collect(),
            domains,
        }
    }
}

impl DrawnDomain {
    fn of(members: &[Domain], vswitches: &[&Name]) -> Self {
        let (Some(first), Some(last)) = (members.first(), members.last()) else {
            unreachable!("chunks have members")
        };
        let ports = first.vnets.iter().enumerate().filter_map(|(i, vnet)| {
            let ports: Vec<_> = members.iter().filter_map(|d| d.vnets.get(i)).collect();
            Some(DrawnPort {
                vswitch: vswitches.binary_search(&&vnet.vswitch).ok()?,
                addresses: port_addresses(&ports),
                facts: vnet_facts(vnet),
            })
        });
        Self {
            name: match members {
                [only] => only.name.to_string(),
                _ => format!("{} … {}", first.name, last.name),
            },
            count: members.len(),
            kind: first.kind.word(),
            facts: domain_facts(first),
            instances: instances(first),
            ports: ports.collect(),
        }
    }

    /// What it is, as in `3 × vm`.
    pub fn what(&self) -> String {
        match self.count {
            1 => self.kind.to_owned(),
            count => format!("{count} × {}", self.kind),
        }
    }
}

impl DrawnPort {
    /// The vswitch's name with what is special about the port.
    pub fn label(&self, picture: &Picture) -> String {
        let name = picture.vswitches[self.vswitch].name.clone();
        let facts = self.facts.iter().cloned();
        std::iter::once(name)
            .chain(facts)
            .collect::<Vec<_>>()
            .join(" · ")
    }
}

fn looks_the_same(a: &Domain, b: &Domain) -> bool {
    let ports = |d: &Domain| -> Vec<_> {
        let ports = d.vnets.iter();
        ports
            .map(|vnet| (vnet.vswitch.clone(), vnet_facts(vnet)))
            .collect()
    };
    a.group == b.group
        && a.kind.word() == b.kind.word()
        && domain_facts(a) == domain_facts(b)
        && instances(a) == instances(b)
        && ports(a) == ports(b)
}

/// `1 domain`, `2 domains`.
pub(super) fn counted(count: usize, one: &str, many: &str) -> String {
    format!("{count} {}", if count == 1 { one } else { many })
}

fn vswitch_facts(vswitch: &Vswitch) -> Vec<String> {
    let mut facts = vec![vswitch.mode.word().to_owned()];
    if !vswitch.mode.is_own() {
        facts.push(vswitch.device.clone());
    }
    facts.extend(vswitch.vlan.map(|tag| format!("VLAN {tag}")));
    facts.extend(vswitch.subnet.map(|subnet| subnet.to_string()));
    facts.extend(vswitch.subnet6.map(|subnet| subnet.to_string()));
    if vswitch.addressing == Addressing::Dhcp {
        facts.push("DHCP".to_owned());
    }
    facts.push(format!("MTU {}", vswitch.mtu));
    if !vswitch.impairment.is_none() {
        facts.push(vswitch.impairment.to_string());
    }
    facts
}

fn domain_facts(domain: &Domain) -> Vec<String> {
    let mut facts = Vec::new();
    if let Some(split) = &domain.split {
        let cpus = split.vcpus as usize;
        facts.push(match domain.kind {
            DomainKind::Host => counted(cpus, "thread", "threads"),
            _ => counted(cpus, "vCPU", "vCPUs"),
        });
        facts.push(split.memory.to_string());
    }
    facts.extend(domain.guest().map(|guest| guest.image.to_string()));
    if let DomainKind::External(endpoint) = &domain.kind {
        facts.push(format!("{}:{}", endpoint.address, endpoint.port));
    }
    facts
}

fn instances(domain: &Domain) -> Vec<String> {
    let instances = domain.instances.iter();
    instances
        .map(|instance| format!("{} {}:{}", instance.name, instance.engine, instance.port))
        .collect()
}

fn vnet_facts(vnet: &Vnet) -> Vec<String> {
    [("in", vnet.inbound), ("out", vnet.outbound)]
        .into_iter()
        .filter(|(_, impairment)| !impairment.is_none())
        .map(|(way, impairment)| format!("{way} {impairment}"))
        .collect()
}

/// The addresses of one port of each of several domains, by family.
fn port_addresses(ports: &[&Vnet]) -> Vec<String> {
    let families: [Vec<IpAddr>; 2] = [
        ports
            .iter()
            .filter_map(|vnet| vnet.ip)
            .map(Into::into)
            .collect(),
        ports
            .iter()
            .filter_map(|vnet| vnet.ip6)
            .map(Into::into)
            .collect(),
    ];
    families.iter().filter_map(|all| range(all)).collect()
}

/// One address, the first and the last of a row without gaps, or how many there are.
fn range(addresses: &[IpAddr]) -> Option<String> {
    let number = |address: &IpAddr| match address {
        IpAddr::V4(address) => u128::from(u32::from(*address)),
        IpAddr::V6(address) => u128::from(*address),
    };
    let is_row = addresses
        .windows(2)
        .all(|pair| number(&pair[0]).checked_add(1) == Some(number(&pair[1])));
    match addresses {
        [] => None,
        [only] => Some(only.to_string()),
        [first, .., last] if is_row => Some(format!("{first} … {last}")),
        _ => Some(counted(addresses.len(), "address", "addresses")),
    }
}
