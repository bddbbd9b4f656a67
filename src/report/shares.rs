//! Who has what of a host, as a table.

use std::fmt::Write as _;

use super::number::plain;
use super::table::Table;
use crate::model::{Bytes, CpuSet};
use crate::plan::{DomainShare, Shares};

/// Draws the shares; at most `width` columns wide where that is known.
pub fn shares_text(shares: &Shares, width: Option<u16>) -> String {
    let mut text = format!(
        "host ({}): {} threads on {} cores, {}",
        if shares.described {
            "described"
        } else {
            "measured"
        },
        shares.threads,
        shares.cores,
        mib(shares.memory)
    );
    if shares.nodes.len() > 1 {
        let _ = write!(text, ", {} NUMA nodes", shares.nodes.len());
    }
    text.push('\n');
    let heads = [
        "domain",
        "vcpus",
        "CPUs",
        "cores",
        "node",
        "memory",
        "huge pages",
    ];
    let mut table = Table::new(heads.map(str::to_owned), width);
    if !shares.reserve.is_empty() {
        let kept = shares.reserve.len().to_string();
        let cpus = shares.reserve.to_string();
        table.row(
            ["(the host)".to_owned(), kept, cpus]
                .into_iter()
                .chain(["-"; 4].map(str::to_owned)),
        );
    }
    for domain in &shares.domains {
        table.row(row(domain));
    }
    text.push_str(&table.text());
    if shares.qemu > Bytes(0) {
        let _ = writeln!(text, "QEMU itself: {}", mib(shares.qemu));
    }
    if shares.nodes.len() > 1 {
        for node in &shares.nodes {
            let _ = writeln!(
                text,
                "node {}: CPUs {}, {} of {} bound",
                node.node,
                node.cpus,
                mib(node.bound),
                mib(node.memory)
            );
        }
    }
    let unpinned = match shares.unpinned.is_empty() {
        true => String::new(),
        false => format!(", CPUs {} pinned to nobody", shares.unpinned),
    };
    let _ = writeln!(
        text,
        "spare: {} threads, {}{unpinned}",
        shares.spare_threads,
        mib(shares.spare_memory)
    );
    let excess = match (shares.excess_vcpus, shares.excess_memory) {
        (0, Bytes(0)) => "nothing".to_owned(),
        (vcpus, Bytes(0)) => format!("{vcpus} vcpus"),
        (0, memory) => mib(memory),
        (vcpus, memory) => format!("{vcpus} vcpus, {}", mib(memory)),
    };
    let _ = writeln!(text, "overcommitted: {excess}");
    text
}

fn row(domain: &DomainShare) -> [String; 7] {
    let or_any = |cpus: &CpuSet| match cpus.is_empty() {
        true => "any".to_owned(),
        false if !domain.pinned => format!("any of {cpus}"),
        false => cpus.to_string(),
    };
    let nodes: Vec<_> = domain.nodes.iter().map(ToString::to_string).collect();
    let dash = |text: String| {
        if text.is_empty() {
            "-".to_owned()
        } else {
            text
        }
    };
    [
        plain(&domain.name),
        domain.vcpus.to_string(),
        or_any(&domain.cpus),
        dash(match domain.pinned {
            true => domain.cores.to_string(),
            false => String::new(),
        }),
        dash(nodes.join(",")),
        mib(domain.memory),
        dash(
            domain
                .hugepages
                .map_or(String::new(), |size| format!("{} x {size}", domain.pages)),
        ),
    ]
}

/// Whole MiB, rounded up.
fn mib(size: Bytes) -> String {
    format!("{} MiB", size.0.div_ceil(1 << 20))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::archive::testing;
    use crate::model::{RegularHost, Split};
    use std::collections::BTreeMap;

    #[test]
    fn everyone_is_listed_with_what_is_spare_and_what_is_not_there() {
        let shape = RegularHost {
            sockets: 2,
            cores: 4,
            threads_per_core: 2,
            memory: Bytes::mib(16 << 10),
            nodes: 2,
            hugepages: BTreeMap::from([(Bytes::mib(2), 1024)]),
        }
        .shape();
        let mut topology = testing::topology();
        topology.host.described = Some(shape.clone());
        topology.host.reserve = "0-1".parse().unwrap();
        let (mut domain, mut domains) = (topology.domains.remove(0), Vec::new());
        let mut add = |name: &str, split: Split| {
            domain.name = name.parse().unwrap();
            domain.split = Some(split);
            domains.push(domain.clone());
        };
        let cpu = |cpu: u32| [cpu].into_iter().collect::<CpuSet>();
        add(
            "db",
            Split {
                pins: (8..12).map(cpu).collect(),
                owns_cores: true,
                node: Some(1),
                hugepages: Some(Bytes::mib(2)),
                ..Split::new(4, Bytes::mib(2048))
            },
        );
        add(
            "load",
            Split {
                pins: vec!["2-7,12-15".parse().unwrap(); 2],
                ..Split::new(2, Bytes::mib(512))
            },
        );
        add("web", Split::new(1, Bytes::mib(512)));
        topology.domains = domains;
        insta::assert_snapshot!(shares_text(&Shares::of(&topology, &shape), None));

        topology.domains[2].split = Some(Split::new(32, Bytes::mib(20 << 10)));
        let text = shares_text(&Shares::of(&topology, &shape), None);
        let last = text.lines().last().unwrap();
        assert_eq!(last, "overcommitted: 24 vcpus, 7232 MiB");
    }
}
