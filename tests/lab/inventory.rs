//! What other tools are told about a lab is true.

use std::fs;
use std::process::Command;

use super::SOLO;
use super::common::{Ended, Lab, Running};

/// The ssh program with these words, before the one that is run on the domain.
#[track_caller]
fn ssh<'a>(lab: &Lab, words: impl IntoIterator<Item = &'a str>) -> Ended {
    let mut command = Command::new("ssh");
    command
        .args(words)
        .arg("hostname")
        .current_dir(lab.directory());
    Running::start(command).end()
}

#[test]
fn a_domain_is_reached_as_the_inventory_says() {
    let lab = Lab::new("solo", SOLO);
    let print = |words: &[&str]| lab.labrig([&["inventory"], words].concat());
    let planned = print(&["topology.yaml", "--ssh-config"]).exits(0).stdout;
    print(&["solo", "--hosts"]).exits(2).says("there is no lab");
    assert_eq!(lab.labs_entries(), [""; 0], "an inventory makes nothing");

    lab.up().exits(0);
    print(&["solo", "--ssh-config", "-o", "config"]).exits(0);
    let config = fs::read_to_string(lab.path("config")).unwrap();
    assert_eq!(config, planned, "a lab is where its file said it would be");
    assert_eq!(ssh(&lab, ["-F", "config", "a"]).exits(0).stdout, "a\n");

    let ansible = print(&["solo", "--ansible", "--json"]).exits(0).json();
    let host = &ansible["all"]["hosts"]["a"];
    let var = |name: &str| host[name].as_str().unwrap();
    let mut words = shlex::split(var("ansible_ssh_common_args")).unwrap();
    words.extend(["-i", var("ansible_ssh_private_key_file"), "-l"].map(str::to_owned));
    words.extend([var("ansible_user"), var("ansible_host")].map(str::to_owned));
    let words = words.iter().map(String::as_str);
    assert_eq!(ssh(&lab, words).exits(0).stdout, "a\n");

    print(&["solo", "--hosts"])
        .exits(0)
        .prints("10.10.0.11 a a.data");
    print(&["solo", "--hosts", "--name", "other"])
        .exits(2)
        .says("go with a topology file");
}
