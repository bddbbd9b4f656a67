//! Whole inputs: what they resolve to, and how the notes about wrong ones are drawn.

#![allow(clippy::unwrap_used, reason = "a test may fail")]

use std::path::Path;

use labrig::cli::notes;
use labrig::input::{self, Options};
use labrig::model::Domain;

fn pretty(value: &impl serde::Serialize) -> String {
    serde_json::to_string_pretty(value).unwrap()
}

fn good() -> input::LoadedPlaybook {
    let loaded = input::load_playbook(
        Path::new("tests/input/good/playbook.yaml"),
        &Options::default(),
    );
    loaded.unwrap_or_else(|notes| panic!("{notes}"))
}

#[test]
fn a_topology_resolves_as_ever() {
    insta::assert_snapshot!("topology", pretty(&good().topology.value));
}

#[test]
fn a_playbook_resolves_as_ever() {
    insta::assert_snapshot!("playbook", pretty(&good().playbook.value));
}

#[test]
fn notes_of_all_files_are_drawn_at_once() {
    let path = Path::new("tests/input/wrong/playbook.yaml");
    let Err(notes) = input::load_playbook(path, &Options::default()) else {
        panic!()
    };
    insta::assert_snapshot!("notes", notes::draw(&notes, false));
    insta::assert_snapshot!("notes_json", notes::json(&notes).unwrap());
}

#[test]
fn all_files_that_were_read_are_kept_as_they_were() {
    let loaded = good();
    let files = |inputs: &[input::InputFile]| {
        inputs
            .iter()
            .map(|f| f.path.display().to_string())
            .collect::<Vec<_>>()
    };
    let template =
        ["header", "instance.cnf"].map(|n| format!("tests/input/good/templates/mariadb/{n}.tera"));
    let mut topology = vec!["tests/input/good/topology.yaml".to_owned()];
    topology.extend(template.clone());
    assert_eq!(files(&loaded.topology.inputs), topology);
    let mut playbook = vec!["tests/input/good/playbook.yaml".to_owned()];
    playbook.extend(template);
    playbook.push("tests/input/good/files/prepare.sh".to_owned());
    assert_eq!(files(&loaded.playbook.inputs), playbook);
    for file in loaded.topology.inputs.iter().chain(&loaded.playbook.inputs) {
        assert_eq!(file.content, std::fs::read(&file.path).unwrap());
    }
}

#[test]
fn another_lab_name_moves_everything() {
    let options = Options {
        name: Some("other".parse().unwrap()),
        ..Options::default()
    };
    let path = Path::new("tests/input/good/topology.yaml");
    let other = input::load_topology(path, &options)
        .unwrap_or_else(|notes| panic!("{notes}"))
        .value;
    let first = good().topology.value;
    assert_eq!(other.lab.name.as_str(), "other");
    for (a, b) in first.domains.iter().zip(&other.domains) {
        let id = |d: &Domain| d.guest().map(|g| (g.libvirt_name.clone(), g.uuid));
        assert_ne!(id(a), id(b));
        // What the file fixes stays.
        let fixed = a.name.as_str() == "db";
        assert_eq!(a.vnets[0].mac == b.vnets[0].mac, fixed, "{}", a.name);
    }
    for name in ["data", "client1"] {
        assert_ne!(first.vswitches[name].device, other.vswitches[name].device);
    }
}

#[test]
fn an_image_whose_file_is_gone_is_known_by_its_key() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("t.yaml");
    let text = "version: 1\nname: x\nimages: {i: {path: d.img}}\nvswitches: {s: {subnet: 10.0.0.0/24}}\n\
        domains: {d: {image: i, split: {cpus: 1, memory: 1GiB}, vnets: [{vswitch: s}]}}\n";
    std::fs::write(&file, text).unwrap();
    let disk = directory.path().join("d.img");
    std::fs::write(&disk, "content").unwrap();
    let key = |options: &Options| {
        let loaded = input::load_topology(&file, options).map_err(|notes| notes.to_string())?;
        Ok::<_, String>(loaded.value.images["i"].key)
    };
    let there = key(&Options::default()).unwrap();
    std::fs::remove_file(&disk).unwrap();
    assert!(
        key(&Options::default())
            .unwrap_err()
            .contains("cannot be read")
    );
    let options = Options {
        image_keys: [(disk, there)].into(),
        ..Options::default()
    };
    assert_eq!(key(&options), Ok(there));
}

#[test]
fn playbooks_are_told_from_topologies() {
    assert!(input::is_playbook(Path::new(
        "tests/input/good/playbook.yaml"
    )));
    assert!(!input::is_playbook(Path::new(
        "tests/input/good/topology.yaml"
    )));
    assert!(!input::is_playbook(Path::new("tests/input/gone.yaml")));
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("f.yaml");
    for (text, playbook) in [
        ("{version: 1, trial: []}", true),
        ("trial: [", true),
        ("domains: [", false),
    ] {
        std::fs::write(&file, text).unwrap();
        assert_eq!(input::is_playbook(&file), playbook, "{text}");
    }
}

#[test]
fn domains_are_of_four_kinds() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("t.yaml");
    let text = "version: 1
name: kinds
images: {micro: {build: {micro: {}}}}
vswitches: {data: {subnet: 10.0.0.0/24}}
defaults: {image: micro, split: {cpus: 1, memory: 64MiB}, vnets: [{vswitch: data}]}
domains:
  box: {kind: container}
  gen: {kind: host, count: 2}
  alone: {kind: host, vnets: []}
  far:
    kind: external
    external: {address: 192.0.2.7, port: 2222, user: admin, key: id, host_key: ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIJdD7y3aLq454yWBdwLWbieU1ebz9/cu7/QEXn9OIeZJ far}
  vm: {}
";
    std::fs::write(&file, text).unwrap();
    std::fs::write(directory.path().join("id"), "a key").unwrap();
    let loaded = input::load_topology(&file, &Options::default());
    let loaded = loaded.unwrap_or_else(|notes| panic!("{notes}"));
    let warnings = loaded.warnings.to_string();
    assert!(
        warnings.contains("containers cannot be brought up yet"),
        "{warnings}"
    );
    assert!(warnings.contains("open to other users"), "{warnings}");
    let topology = loaded.value;
    let seen: Vec<_> = topology
        .domains
        .iter()
        .map(|d| {
            let ip = d
                .address()
                .map_or_else(|| "-".to_owned(), |ip| ip.to_string());
            (
                d.name.to_string(),
                d.kind.word(),
                ip,
                d.split.is_some(),
                d.guest().is_some(),
            )
        })
        .filter(|(_, kind, ..)| *kind != "vm")
        .map(|(name, kind, ip, split, made)| format!("{name} {kind} {ip} {split} {made}"))
        .filter(|line| !line.starts_with("box container 10.0.0."))
        .collect();
    assert_eq!(
        seen,
        [
            "gen1 host 10.0.0.1 true false",
            "gen2 host 10.0.0.1 true false",
            "alone host - true false",
            "far external 192.0.2.7 false false"
        ]
    );
    let labrig::model::DomainKind::External(endpoint) = &topology.domain("far").unwrap().kind
    else {
        panic!("{topology:?}")
    };
    assert_eq!((endpoint.port, endpoint.user.as_str()), (2222, "admin"));
    assert_eq!(endpoint.key, directory.path().join("id"));
    assert_eq!(
        endpoint.host_key,
        "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIJdD7y3aLq454yWBdwLWbieU1ebz9/cu7/QEXn9OIeZJ"
    );
}

#[test]
fn a_micro_guest_that_would_not_boot_is_warned_of() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("t.yaml");
    for (memory, warnings) in [("80MiB", 1), ("128MiB", 0)] {
        let text = format!(
            "version: 1\nname: x\nimages: {{m: {{build: {{micro: {{}}}}}}}}\n\
             vswitches: {{s: {{subnet: 10.0.0.0/24}}}}\n\
             domains: {{d: {{image: m, split: {{cpus: 1, memory: {memory}}}, vnets: [{{vswitch: s}}]}}}}\n"
        );
        std::fs::write(&file, text).unwrap();
        let loaded = input::load_topology(&file, &Options::default());
        let loaded = loaded.unwrap_or_else(|notes| panic!("{notes}"));
        let boots = |note: &&labrig::diag::Note| note.message.contains("does not boot");
        assert_eq!(
            loaded.warnings.0.iter().filter(boots).count(),
            warnings,
            "{memory}"
        );
    }
}
