//! What holds for every topology, tried on many made-up ones.

#![allow(clippy::unwrap_used, reason = "a test may fail")]

use std::collections::{BTreeMap, HashSet};
use std::fmt::Write as _;
use std::net::Ipv4Addr;

use labrig::input::{self, Options};
use labrig::model::Topology;
use proptest::prelude::*;

const GOOD: &str = include_str!("input/good/topology.yaml");
const GOOD_PLAYBOOK: &str = include_str!("input/good/playbook.yaml");

/// Loads the text as a topology; none when there are errors.
fn load(text: &[u8]) -> Option<Topology> {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("t.yaml");
    std::fs::write(&file, text).unwrap();
    input::load_topology(&file, &Options::default())
        .ok()
        .map(|loaded| loaded.value)
}

/// Domains by name with how many there are and whether they are on the second vswitch too.
type Groups = BTreeMap<String, (u32, bool)>;

fn groups() -> impl Strategy<Value = Groups> {
    // Names without digits at the end, so that no expanded name meets another.
    prop::collection::btree_map("[a-z]{1,6}x", (1..6_u32, any::<bool>()), 1..10)
}

/// A lab on a small subnet, so that hashes do meet.
fn topology(groups: &Groups) -> String {
    let mut text = "version: 1\nname: lab\nimages: {micro: {build: {micro: {}}}}\n\
        vswitches: {a: {subnet: 10.0.0.0/25, subnet6: \"fd00:1::/64\"}, b: {subnet: 10.0.1.0/25}}\ndomains:\n"
        .to_owned();
    for (name, (count, both)) in groups {
        let second = if *both { ", {vswitch: b}" } else { "" };
        writeln!(
            text,
            "  {name}: {{count: {count}, image: micro, split: {{cpus: 1, memory: 64MiB}}, \
             vnets: [{{vswitch: a}}{second}]}}"
        )
        .unwrap();
    }
    text
}

/// Addresses by vswitch and domain.
fn addresses(topology: &Topology) -> BTreeMap<(String, String), Ipv4Addr> {
    let ports = topology
        .domains
        .iter()
        .flat_map(|d| d.vnets.iter().map(move |v| (d, v)));
    ports
        .filter_map(|(d, v)| Some(((v.vswitch.to_string(), d.name.to_string()), v.ip?)))
        .collect()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 128, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn resolving_is_repeatable_and_nothing_collides(groups in groups()) {
        let text = topology(&groups);
        let resolved = load(text.as_bytes()).unwrap();
        prop_assert_eq!(&resolved, &load(text.as_bytes()).unwrap());

        let count: u32 = groups.values().map(|(count, _)| count).sum();
        prop_assert_eq!(resolved.domains.len(), count as usize);
        let distinct = |values: Vec<String>| values.iter().collect::<HashSet<_>>().len() == values.len();
        let domains = &resolved.domains;
        let guests = || domains.iter().filter_map(|d| d.guest());
        prop_assert!(distinct(domains.iter().map(|d| d.name.to_string()).collect()));
        prop_assert!(distinct(guests().map(|g| g.libvirt_name.clone()).collect()));
        prop_assert!(distinct(guests().map(|g| g.uuid.to_string()).collect()));
        let vnets: Vec<_> = domains.iter().flat_map(|d| &d.vnets).collect();
        prop_assert!(distinct(vnets.iter().map(|v| v.mac.to_string()).collect()));
        prop_assert!(distinct(vnets.iter().filter_map(|v| v.ip).map(|ip| ip.to_string()).collect()));
        prop_assert!(distinct(vnets.iter().filter_map(|v| v.ip6).map(|ip| ip.to_string()).collect()));
        prop_assert!(distinct(vnets.iter().map(|v| v.device.clone()).collect()));
        for vnet in vnets {
            let vswitch = &resolved.vswitches[&vnet.vswitch];
            let (subnet, ip) = (vswitch.subnet.unwrap(), vnet.ip.unwrap());
            prop_assert!(subnet.contains(&ip));
            let set_aside = [vswitch.gateway.unwrap(), subnet.network(), subnet.broadcast()];
            prop_assert!(!set_aside.contains(&ip));
            prop_assert_eq!(vnet.ip6.is_some(), vswitch.subnet6.is_some());
        }
    }

    #[test]
    fn a_new_domain_moves_only_what_it_collides_with(groups in groups(), new in "[a-z]{1,6}y") {
        let before = addresses(&load(topology(&groups).as_bytes()).unwrap());
        let mut more = groups.clone();
        more.insert(new, (1, true));
        let after = addresses(&load(topology(&more).as_bytes()).unwrap());
        for ((vswitch, domain), ip) in &before {
            let now = after[&(vswitch.clone(), domain.clone())];
            // One that moved was pushed: somebody else is there now.
            let holder = after.iter().find(|((v, d), other)| v == vswitch && d != domain && *other == ip);
            prop_assert!(now == *ip || holder.is_some(), "{} on {} moved from {} to {}", domain, vswitch, ip, now);
        }
    }

    #[test]
    fn the_order_of_domains_decides_no_address(groups in groups()) {
        let text = topology(&groups);
        let (head, domains) = text.split_once("domains:\n").unwrap();
        let reversed: Vec<&str> = domains.lines().rev().collect();
        let reversed = format!("{head}domains:\n{}\n", reversed.join("\n"));
        let (a, b) = (load(text.as_bytes()).unwrap(), load(reversed.as_bytes()).unwrap());
        prop_assert_eq!(addresses(&a), addresses(&b));
    }

    #[test]
    fn no_bytes_make_it_panic(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        load(&bytes);
    }

    #[test]
    fn no_damage_makes_it_panic(
        at in any::<prop::sample::Index>(),
        cut in 0..40_usize,
        put in "[-a-z0-9:{}\\[\\], \"'\n\t&*!|>%@`ü\u{1}]{0,12}",
        playbook in any::<bool>(),
    ) {
        let mut text = if playbook { GOOD_PLAYBOOK } else { GOOD }.as_bytes().to_vec();
        let start = at.index(text.len());
        let end = (start + cut).min(text.len());
        text.splice(start..end, put.bytes());
        let directory = tempfile::tempdir().unwrap();
        let (topology, file) = (directory.path().join("topology.yaml"), directory.path().join("p.yaml"));
        for name in ["header", "instance.cnf"] {
            let name = format!("templates/mariadb/{name}.tera");
            std::fs::create_dir_all(directory.path().join("templates/mariadb")).unwrap();
            std::fs::copy(format!("tests/input/good/{name}"), directory.path().join(name)).unwrap();
        }
        std::fs::write(&topology, if playbook { GOOD.as_bytes() } else { &text }).unwrap();
        std::fs::write(&file, if playbook { &text } else { GOOD_PLAYBOOK.as_bytes() }).unwrap();
        if let Err(notes) = input::load_playbook(&file, &Options::default()) {
            prop_assert!(notes.has_errors());
            labrig::cli::notes::draw(&notes, true);
        }
    }
}
