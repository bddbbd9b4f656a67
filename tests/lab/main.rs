//! Labs of real guests, through the binary.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test may fail")]

#[path = "../common/mod.rs"]
mod common;

mod bad_days;
mod disks;
mod hosts;
mod images;
mod inventory;
mod kinds;
mod life;
mod networks;
mod settings;
mod split;
mod topologies;
mod wrong_input;

use common::Lab;

/// Two guests on two vswitches.
pub const PAIR: &str = "\
version: 1
name: pair
images:
  micro: {build: {micro: {}}}
vswitches:
  data: {subnet: 10.10.0.0/24}
  uplink: {mode: nat, subnet: 10.10.9.0/24}
domains:
  a:
    image: micro
    split: {cpus: 1, memory: 160MiB}
    vnets: [{vswitch: data, ip: 10.10.0.11}, {vswitch: uplink, ip: 10.10.9.11}]
    files: [{template: motd.tera, to: /etc/motd, mode: \"0600\", vars: {greeting: hello}}]
  b:
    image: micro
    split: {cpus: 1, memory: 160MiB}
    vnets: [{vswitch: data, ip: 10.10.0.12}, {vswitch: uplink, ip: 10.10.9.12}]
";

/// The template of a's message of the day.
pub const MOTD: &str =
    "{{ vars.greeting }} from {{ domain.name }}, {{ domains.b.ips.uplink }} is b\n";

/// One guest.
pub const SOLO: &str = "\
version: 1
name: solo
images:
  micro: {build: {micro: {}}}
vswitches:
  data: {subnet: 10.10.0.0/24}
domains:
  a:
    image: micro
    split: {cpus: 1, memory: 160MiB}
    vnets: [{vswitch: data, ip: 10.10.0.11}]
";

/// The lab of [`PAIR`], with its template.
pub fn pair() -> Lab {
    let lab = Lab::new("pair", PAIR);
    lab.write("templates/motd.tera", MOTD);
    lab
}
