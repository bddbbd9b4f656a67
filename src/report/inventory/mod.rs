//! How other tools reach a lab's domains: inventories of Ansible, configuration of `ssh`, names for a
//! hosts file.

mod ansible;
mod hosts;
mod ssh_config;

use std::net::IpAddr;
use std::path::PathBuf;

pub use hosts::hosts_file;

use crate::model::{Domain, DomainKind, Name, Topology};

/// Port that labrig's guests serve SSH on.
const SSH_PORT: u16 = 22;

/// What a lab has for whoever wants to reach its domains.
#[derive(Debug, Clone)]
pub struct Reach {
    /// File with the private key that its guests know.
    pub key: PathBuf,
    /// File with the host keys of all domains, by name.
    pub known_hosts: PathBuf,
    /// Command for a shell that connects to the address and port put after it; none where addresses
    /// of the lab are reached as they are.
    pub proxy: Option<String>,
}

/// The domains of a lab with the way to each.
#[derive(Debug, Clone)]
pub struct Inventory {
    lab: Name,
    known_hosts: PathBuf,
    entries: Vec<Entry>,
}

#[derive(Debug, Clone)]
struct Entry {
    name: Name,
    /// The counted group that it is a member of.
    group: Option<Name>,
    way: Way,
}

#[derive(Debug, Clone)]
enum Way {
    Ssh(SshWay),
    /// It is the machine that asks.
    Local,
    /// There is none, for this reason.
    Closed(&'static str),
}

#[derive(Debug, Clone)]
struct SshWay {
    address: IpAddr,
    port: u16,
    user: String,
    key: PathBuf,
    /// Command for a shell whose standard input and output are the connection.
    proxy: Option<String>,
}

impl Inventory {
    /// All domains of a lab, in order.
    pub fn of(topology: &Topology, reach: &Reach) -> Self {
        let entries = topology.domains.iter().map(|domain| Entry {
            name: domain.name.clone(),
            group: (domain.group != domain.name).then(|| domain.group.clone()),
            way: Way::to(domain, reach),
        });
        Self {
            lab: topology.lab.name.clone(),
            known_hosts: reach.known_hosts.clone(),
            entries: entries.collect(),
        }
    }

    /// Lines that say which domains were left out and why, those with no SSH among them if `local`
    /// cannot be said.
    fn left_out(&self, says_local: bool) -> Vec<String> {
        let lines = self.entries.iter().filter_map(|entry| match entry.way {
            Way::Ssh(_) => None,
            Way::Local if says_local => None,
            Way::Local => Some(format!("# {} is this machine itself.", entry.name)),
            Way::Closed(reason) => Some(format!("# {} is left out: {reason}.", entry.name)),
        });
        lines.collect()
    }
}

impl Way {
    fn to(domain: &Domain, reach: &Reach) -> Self {
        match &domain.kind {
            DomainKind::External(endpoint) => Self::Ssh(SshWay {
                address: endpoint.address.into(),
                port: endpoint.port,
                user: endpoint.user.clone(),
                key: endpoint.key.clone(),
                proxy: None,
            }),
            DomainKind::Host if reach.proxy.is_none() => Self::Local,
            DomainKind::Host => Self::Closed("it is the lab's host in namespaces of its own"),
            DomainKind::Vm(_) | DomainKind::Container(_) => match domain.address() {
                None => Self::Closed("it has no address"),
                Some(address) => Self::Ssh(SshWay {
                    address: address.into(),
                    port: SSH_PORT,
                    user: "root".to_owned(),
                    key: reach.key.clone(),
                    proxy: reach
                        .proxy
                        .as_ref()
                        .map(|proxy| format!("{proxy} {address} {SSH_PORT}")),
                }),
            },
        }
    }
}

impl SshWay {
    /// Options of `ssh` beside address, port, user and key, as they stand in its configuration.
    fn options(&self, entry: &Entry, known_hosts: &std::path::Path) -> Vec<(&'static str, String)> {
        let mut options = vec![
            // The file of host keys knows domains by name, whatever address they are reached at.
            ("HostKeyAlias", entry.name.to_string()),
            ("IdentitiesOnly", "yes".to_owned()),
            (
                "UserKnownHostsFile",
                ssh_config::quoted(&known_hosts.to_string_lossy()),
            ),
            ("GlobalKnownHostsFile", "none".to_owned()),
            ("StrictHostKeyChecking", "yes".to_owned()),
        ];
        options.extend(
            self.proxy
                .as_ref()
                .map(|proxy| ("ProxyCommand", ssh_config::without_tokens(proxy))),
        );
        options
    }
}

#[cfg(test)]
mod tests;
