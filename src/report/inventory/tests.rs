//! Inventories of a lab with every kind of domain.

use std::path::Path;

use super::{Inventory, Reach, hosts_file};
use crate::input::{self, Options};
use crate::model::{DomainKind, Endpoint, Topology};

/// The lab of the input tests, with an external machine and the host in it.
fn topology() -> Topology {
    let path = Path::new("tests/input/good/topology.yaml");
    let loaded = input::load_topology(path, &Options::default());
    let mut topology = loaded.unwrap_or_else(|notes| panic!("{notes}")).value;
    let mut other = topology.domains[0].clone();
    other.vnets.clear();
    for (name, kind) in [
        (
            "elsewhere",
            DomainKind::External(Endpoint {
                address: "192.0.2.7".parse().unwrap(),
                port: 2222,
                user: "admin".to_owned(),
                key: "/keys/admin's key".into(),
                host_key: "ssh-ed25519 AAAA".to_owned(),
            }),
        ),
        ("primary", DomainKind::Host),
    ] {
        other.name = name.parse().unwrap();
        other.group = other.name.clone();
        other.kind = kind;
        topology.domains.push(other.clone());
    }
    topology
}

fn reach(proxy: Option<&str>) -> Reach {
    Reach {
        key: "/state/50% \"x\"/id".into(),
        known_hosts: "/state/50% \"x\"/known_hosts".into(),
        proxy: proxy.map(ToOwned::to_owned),
    }
}

#[test]
fn a_lab_for_ssh() {
    let embedded = reach(Some("labrig --state-dir '/state/50% \"x\"' __dial lab"));
    insta::assert_snapshot!(Inventory::of(&topology(), &embedded).ssh_config());
}

#[test]
fn a_lab_for_ansible() {
    let embedded = reach(Some("labrig --state-dir '/state/50% \"x\"' __dial lab"));
    let inventory = Inventory::of(&topology(), &embedded);
    insta::assert_snapshot!(inventory.ansible_yaml());
    let yaml: serde_json::Value = serde_yaml::from_str(&inventory.ansible_yaml()).unwrap();
    assert_eq!(yaml, inventory.ansible());
}

#[test]
fn a_lab_on_this_machine_needs_no_proxy_and_its_host_is_this_machine() {
    let ansible = Inventory::of(&topology(), &reach(None)).ansible();
    let hosts = &ansible["all"]["hosts"];
    assert_eq!(hosts["primary"]["ansible_connection"], "local");
    let args = hosts["db"]["ansible_ssh_common_args"].as_str().unwrap();
    let words = shlex::split(args).unwrap();
    assert!(words.contains(&"HostKeyAlias=db".to_owned()), "{words:?}");
    assert!(!args.contains("ProxyCommand"), "{args}");
}

#[test]
fn groups_have_names_that_ansible_takes() {
    let mut topology = topology();
    topology.domains.truncate(2);
    let mut names = Vec::new();
    for group in ["all", "db", "web-tier"] {
        topology.domains[1].group = group.parse().unwrap();
        let ansible = Inventory::of(&topology, &reach(None)).ansible();
        let groups = ansible["all"]["children"].as_object().unwrap();
        names.extend(groups.keys().cloned());
    }
    assert_eq!(names, ["all_group", "db_group", "web_tier"]);
}

#[test]
fn names_for_a_hosts_file() {
    insta::assert_snapshot!(hosts_file(&topology()));
}
