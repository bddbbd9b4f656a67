//! The topologies that ship: each is sound and can be planned on any machine.

#![allow(clippy::unwrap_used, reason = "a test may fail")]

use std::fs;
use std::path::{Path, PathBuf};

use labrig::input::{self, Options};
use labrig::model::{Bytes, HostShape, RegularHost};
use labrig::plan::Shares;

/// A host of two cores, for those that describe none.
fn small_host() -> HostShape {
    RegularHost {
        sockets: 1,
        cores: 2,
        threads_per_core: 1,
        memory: Bytes::mib(8192),
        nodes: 1,
        hugepages: Default::default(),
    }
    .shape()
}

fn shipped() -> Vec<PathBuf> {
    let files = fs::read_dir("topologies").unwrap();
    let mut files: Vec<_> = files.map(|entry| entry.unwrap().path()).collect();
    files.sort();
    files
}

#[test]
fn all_are_sound() {
    for file in shipped() {
        let options = Options {
            host: Some(small_host()),
            ..Options::default()
        };
        let loaded = input::load_topology(&file, &options);
        let loaded = loaded.unwrap_or_else(|notes| panic!("{notes}"));
        let name = file.file_stem().unwrap().to_str().unwrap();
        assert_eq!(loaded.value.lab.name.as_str(), name);
        let warnings: Vec<_> = loaded
            .warnings
            .0
            .iter()
            .map(|n| n.message.as_str())
            .collect();
        let expected = |message: &&str| match name {
            "directory" => *message == "containers cannot be brought up yet",
            _ => name.ends_with("-small") && message.contains("vcpus together"),
        };
        assert!(warnings.iter().all(expected), "{name}: {warnings:?}");
    }
}

#[test]
fn each_lab_has_a_published_size_with_room_for_all() {
    for lab in ["crm", "directory", "balancer", "sysbench"] {
        let file = Path::new("topologies").join(lab).with_extension("yaml");
        let topology = input::load_topology(&file, &Options::default())
            .unwrap_or_else(|notes| panic!("{notes}"))
            .value;
        let shape = topology.host.described.clone().unwrap();
        let shares = Shares::of(&topology, &shape);
        assert_eq!(
            (shares.excess_vcpus, shares.excess_memory),
            (0, Bytes(0)),
            "{lab}"
        );
    }
}

#[test]
fn the_web_domains_of_the_crm_are_spread_over_both_instances() {
    let load = |file: &str| {
        let options = Options {
            host: Some(small_host()),
            ..Options::default()
        };
        input::load_topology(&Path::new("topologies").join(file), &options)
            .unwrap_or_else(|notes| panic!("{notes}"))
    };
    for (file, ports) in [
        ("crm.yaml", &["3306", "3306", "3307", "3307"][..]),
        ("crm-small.yaml", &["3306", "3307"]),
    ] {
        let loaded = load(file);
        let scope = labrig::render::Scope::new(&loaded.value);
        let web = loaded
            .value
            .domains
            .iter()
            .filter(|d| d.group.as_str() == "dom");
        let found = web.map(|domain| {
            let config = domain
                .files
                .iter()
                .find(|f| f.to.ends_with("config.php"))
                .unwrap();
            let context = scope.context(Some(domain), &[]);
            let text = loaded
                .templates
                .render_with(&config.template, &config.vars, &context)
                .unwrap();
            let line = text.lines().find(|line| line.contains("db_port")).unwrap();
            line.chars()
                .filter(char::is_ascii_digit)
                .collect::<String>()
        });
        assert_eq!(found.collect::<Vec<_>>(), ports, "{file}");
    }
}
