//! Names of a lab's domains for a hosts file.

use std::net::IpAddr;

use crate::model::{Domain, Topology, Vnet};

/// A line for each address: the domain's name for its first vnet that has one, `DOMAIN.VSWITCH` for all.
pub fn hosts_file(topology: &Topology) -> String {
    let mut out = format!("# Domains of lab {}, by labrig.\n", topology.lab.name);
    for domain in &topology.domains {
        for (address, names) in lines(domain) {
            out.push_str(&format!("{address} {}\n", names.join(" ")));
        }
    }
    out
}

fn lines(domain: &Domain) -> Vec<(IpAddr, Vec<String>)> {
    let mut lines: Vec<(IpAddr, Vec<String>)> = Vec::new();
    let mut with_address = domain
        .vnets
        .iter()
        .filter(|vnet| !addresses(vnet).is_empty());
    let first = with_address.next().map(|vnet| &vnet.vswitch);
    for vnet in &domain.vnets {
        for address in addresses(vnet) {
            let mut names = vec![format!("{}.{}", domain.name, vnet.vswitch)];
            if first == Some(&vnet.vswitch) {
                names.insert(0, domain.name.to_string());
            }
            lines.push((address, names));
        }
    }
    if lines.is_empty() {
        let address = domain.address();
        lines.extend(address.map(|address| (address.into(), vec![domain.name.to_string()])));
    }
    lines
}

fn addresses(vnet: &Vnet) -> Vec<IpAddr> {
    let (ip, ip6) = (vnet.ip.map(Into::into), vnet.ip6.map(Into::into));
    ip.into_iter().chain(ip6).collect()
}
