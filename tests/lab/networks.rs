//! Vswitches and vnets of every kind, between real guests.

use std::process::Command;
use std::time::Instant;

use nix::unistd::Uid;

use super::common::{Lab, Running};
use super::hosts::SharedHost;

/// A topology with micro guests; the rest of it is given.
fn topology(name: &str, rest: &str) -> String {
    format!(
        "version: 1\nname: {name}\nimages: {{micro: {{build: {{micro: {{}}}}}}}}\n\
         defaults: {{image: micro, split: {{cpus: 1, memory: 160MiB}}}}\n{rest}"
    )
}

/// A new lab of micro guests.
fn lab(name: &str, rest: &str) -> Lab {
    Lab::new(name, &topology(name, rest))
}

/// Runs a program in the network of a lab's embedded host.
#[track_caller]
fn inside(lab: &Lab, name: &str, words: &[&str]) -> String {
    let pid = lab.state().join("labs").join(name).join("host/pid");
    let pid = std::fs::read_to_string(pid).unwrap();
    let mut command = Command::new("nsenter");
    command.args(["--target", &pid, "--net"]);
    if !Uid::effective().is_root() {
        command.args(["--user", "--preserve-credentials"]);
    }
    command.arg("--").args(words);
    Running::start(command).end().exits(0).stdout
}

/// The device of a domain's vnet.
fn device(lab: &Lab, domain: usize, vnet: usize) -> String {
    let device = &lab.record()["topology"]["domains"][domain]["vnets"][vnet]["device"];
    device.as_str().unwrap().to_owned()
}

/// Starts servers from which files are fetched.
#[track_caller]
fn serve(lab: &Lab, domains: &[&str]) {
    for domain in domains {
        lab.exec(domain, "mkdir /tmp/www && httpd -p 80 -h /tmp/www");
    }
}

/// How fast a file of some KiB comes from one domain, at an address, to another, in Mbit/s; the
/// time of the command that fetches it counts as well.
#[track_caller]
fn rate(lab: &Lab, from: &str, to: &str, address: &str, kib: u32) -> f64 {
    let file = format!("dd if=/dev/zero of=/tmp/www/file bs=1k count={kib} 2>/dev/null");
    lab.exec(from, &file);
    let began = Instant::now();
    let got = lab.exec(to, &format!("wget -q -O - http://{address}/file | wc -c"));
    let seconds = began.elapsed().as_secs_f64();
    assert_eq!(got, (kib * 1024).to_string());
    f64::from(kib * 8192) / seconds / 1e6
}

#[test]
fn guests_know_all_names_in_both_families_also_of_those_that_come_later() {
    const ABC: &str = "\
vswitches:
  data: {subnet: 10.10.0.0/24, subnet6: fd00:1::/64}
  asked: {subnet: 10.10.1.0/24, addressing: dhcp}
  six: {mode: nat, subnet6: fd00:6::/64, mtu: 1400}
domains:
  a: {vnets: [{vswitch: data}, {vswitch: six, ip6: \"fd00:6::a\"}]}
  b: {vnets: [{vswitch: six}, {vswitch: asked}, {vswitch: data, ip6: \"fd00:1::b\"}]}
";
    let lab = lab("names", ABC);
    lab.up().exits(0);
    // Of several vswitches that both are on, the first of the one that asks counts.
    lab.exec("a", "ping -4 -c 1 -W 10 b && ping -6 -c 1 -W 10 b");
    let hosts = lab.exec("a", "grep -w b /etc/hosts");
    assert!(hosts.lines().any(|line| line == "fd00:1::b b"), "{hosts}");
    let hosts = lab.exec("b", "grep -w a /etc/hosts");
    assert!(
        hosts.starts_with("10.10.0.") && hosts.ends_with("\nfd00:6::a a"),
        "{hosts}"
    );
    lab.exec("b", "ping -6 -c 1 -W 10 a && ping -6 -c 1 -W 10 fd00:6::1");
    assert_eq!(
        lab.exec("b", "nc -w 10 a 22 </dev/null | head -c 8"),
        "SSH-2.0-"
    );
    assert_eq!(lab.exec("b", "cat /sys/class/net/eth0/mtu"), "1400");

    // DHCP gave the address that the topology says.
    let record = lab.record();
    let vnet = &record["topology"]["domains"][1]["vnets"][1];
    let wanted = format!("inet {}/24", vnet["ip"].as_str().unwrap());
    let shown = lab.exec("b", "ip -4 address show dev eth1; ps | grep -c '[u]dhcpc'");
    assert!(shown.contains(&wanted) && shown.ends_with('1'), "{shown}");

    let boots = [lab.boot_id("a"), lab.boot_id("b")];
    let more = format!("{ABC}  late: {{vnets: [{{vswitch: data}}]}}\n");
    lab.write("topology.yaml", topology("names", &more));
    lab.labrig(["plan", "topology.yaml"])
        .exits(0)
        .prints_row("tell hosts to domain a names or addresses of domains changed");
    lab.up().exits(0);
    lab.exec("a", "ping -4 -c 1 -W 10 late && ping -6 -c 1 -W 10 late");
    lab.exec("late", "ping -6 -c 1 -W 10 b");
    assert_eq!([lab.boot_id("a"), lab.boot_id("b")], boots);
    lab.up().exits(0).says("nothing to do");
}

#[test]
fn a_routed_vswitch_reaches_another() {
    let lab = lab(
        "routed",
        "\
vswitches:
  left: {mode: routed, subnet: 10.20.0.0/24, subnet6: fd00:20::/64}
  right: {mode: routed, subnet: 10.21.0.0/24, subnet6: fd00:21::/64}
domains:
  a: {vnets: [{vswitch: left}]}
  b: {vnets: [{vswitch: right}]}
",
    );
    lab.up().exits(0);
    lab.exec("a", "ping -4 -c 1 -W 10 b && ping -6 -c 1 -W 10 b");
    // Nor is an address translated: the way back is as good.
    lab.exec("b", "ping -4 -c 1 -W 10 a && ping -6 -c 1 -W 10 a");
}

#[test]
fn a_bandwidth_holds_both_ways_is_mended_and_changed_while_guests_run() {
    const SLOW: &str = "\
vswitches:
  ssh: {subnet: 10.10.9.0/24}
  data: {subnet: 10.10.0.0/24, bandwidth: 40Mbit/s}
domains:
  a: {vnets: [{vswitch: ssh}, {vswitch: data, ip: 10.10.0.11, outbound: {bandwidth: 4Mbit/s}}]}
  b: {vnets: [{vswitch: ssh}, {vswitch: data, ip: 10.10.0.12, inbound: {bandwidth: 16Mbit/s}}]}
";
    let lab = lab("slow", SLOW);
    lab.up().exits(0);
    let boots = [lab.boot_id("a"), lab.boot_id("b")];
    serve(&lab, &["a", "b"]);
    let rate = |from: &str, to: &str, address: &str, kib: u32| rate(&lab, from, to, address, kib);
    // The slowest part of the way counts: what a sends (4), then what b takes (16, of the vswitch's 40).
    let sent = rate("a", "b", "10.10.0.11", 1024);
    assert!((1.0..4.4).contains(&sent), "{sent} Mbit/s of 4");
    // The other way only the vswitch's: it is faster than that.
    let back = rate("b", "a", "10.10.0.12", 4096);
    assert!((4.4..44.0).contains(&back), "{back} Mbit/s of 40");

    // What somebody takes away is seen and set again.
    let (out, into) = (device(&lab, 0, 1), device(&lab, 1, 1));
    let shown = inside(&lab, "slow", &["tc", "-j", "qdisc", "show"]);
    assert!(shown.contains("\"rate\":500000,") && shown.contains("\"rate\":2000000"));
    inside(&lab, "slow", &["tc", "qdisc", "del", "dev", &into, "root"]);
    inside(
        &lab,
        "slow",
        &["tc", "qdisc", "del", "dev", &out, "ingress"],
    );
    let mut plan = lab.labrig(["plan", "topology.yaml"]).exits(0);
    for domain in ["a", "b"] {
        let row =
            format!("impair vnet of {domain} on data what its frames meet is not what it is to be");
        plan = plan.prints_row(&row);
    }
    lab.up().exits(0);
    let sent = rate("a", "b", "10.10.0.11", 512);
    assert!(sent < 4.8, "{sent} Mbit/s of 4");

    // Another bandwidth, and none, restart nobody.
    lab.write(
        "topology.yaml",
        topology(
            "slow",
            &SLOW.replace("outbound: {bandwidth: 4Mbit/s}", "queues: 1"),
        ),
    );
    lab.up().exits(0);
    let shown = inside(&lab, "slow", &["tc", "-j", "qdisc", "show"]);
    assert!(
        !shown.contains("ingress") && !shown.contains("\"rate\":500000,"),
        "{shown}"
    );
    assert_eq!(
        inside(&lab, "slow", &["ip", "link", "show", "type", "ifb"]),
        ""
    );
    let sent = rate("a", "b", "10.10.0.11", 2048);
    assert!((4.4..17.6).contains(&sent), "{sent} Mbit/s of 16");
    assert_eq!([lab.boot_id("a"), lab.boot_id("b")], boots);

    // A domain that starts has it from the start.
    lab.qemu("b").kill();
    super::common::until("libvirt sees b's end", || {
        lab.status("b")["state"] == "shut off"
    });
    lab.up().exits(0).says("impair vnet of b on data");
    lab.up().exits(0).says("nothing to do");
}

#[test]
fn a_delay_is_had_or_refused_by_name() {
    const FAR: &str = "\
vswitches:
  ssh: {subnet: 10.10.9.0/24}
  far: {subnet: 10.10.0.0/24, delay: 40ms, jitter: 1ms}
domains:
  a: {vnets: [{vswitch: ssh}, {vswitch: far, ip: 10.10.0.11}]}
  b: {vnets: [{vswitch: ssh}, {vswitch: far, ip: 10.10.0.12}]}
";
    let lab = lab("far", FAR);
    let findings = lab.labrig(["host", "doctor", "--json"]).json();
    let findings = findings.as_array().unwrap();
    let netem = findings.iter().find(|f| f["name"] == "netem").unwrap();
    if netem["state"] == "good" {
        lab.up().exits(0);
        // Once at b, once at a on the way back.
        let ping = lab.exec("a", "ping -c 1 -W 10 10.10.0.12 | grep time=");
        let ms = ping.split("time=").nth(1).unwrap().split(' ').next();
        let ms: f64 = ms.unwrap().parse().unwrap();
        assert!((76.0..400.0).contains(&ms), "{ping}");
    } else {
        lab.up()
            .exits(3)
            .says("the host lacks the kernel's netem, for delay, jitter and loss")
            .says("topology.yaml:7:38")
            .says("optional: true");
        assert_eq!(lab.labs_entries(), [""; 0], "nothing was made");
        let optional = FAR.replace(
            "jitter: 1ms",
            "jitter: 1ms, optional: true, bandwidth: 40Mbit/s",
        );
        lab.write("topology.yaml", topology("far", &optional));
        lab.up()
            .exits(0)
            .says("the host lacks the kernel's netem")
            .says("it is left out");
        // What the kernel can do is done.
        let shown = inside(
            &lab,
            "far",
            &["tc", "-j", "qdisc", "show", "dev", &device(&lab, 0, 1)],
        );
        assert!(shown.contains("\"rate\":5000000"), "{shown}");
        lab.up().exits(0).says("nothing to do");
    }
}

#[test]
fn a_bridge_and_a_port_of_the_host_are_used_and_left_as_they_are() {
    const LAN: &str = "\
vswitches:
  lan: {mode: bridge, bridge: br0, subnet: 10.30.0.0/24}
  wire: {mode: macvtap, port: port0, subnet: 10.31.0.0/24, bandwidth: 400Mbit/s}
domains:
  a: {vnets: [{vswitch: lan, ip: 10.30.0.11}, {vswitch: wire, ip: 10.31.0.11, outbound: {bandwidth: 80Mbit/s}}]}
  b: {vnets: [{vswitch: lan, ip: 10.30.0.12}, {vswitch: wire, ip: 10.31.0.12, inbound: {bandwidth: 4Mbit/s}}]}
";
    let host = SharedHost::start();
    let mut lab = lab("lan", LAN);
    // An embedded host has no such devices.
    lab.up()
        .exits(3)
        .says("the host has no network device \"br0\"")
        .says("the host has no network device \"port0\"")
        .says("--host qemu:///system");
    assert_eq!(lab.labs_entries(), [""; 0], "nothing was made");

    lab.on_shared_host(host.prefix(lab.directory()));
    let up = || lab.labrig(["up", "topology.yaml", "--host", "qemu:///system"]);
    host.sh("ip link add port0 type veth peer name wire0; ip link set port0 up; ip link set wire0 up; ip link add br0 type bridge; ip link set br0 up mtu 1400; ip address add 10.30.0.1/24 dev br0");
    up().exits(3)
        .says("frames of 1500 bytes do not pass br0, whose MTU is 1400");
    lab.write(
        "topology.yaml",
        topology("lan", &LAN.replace("bridge: br0", "bridge: port0")),
    );
    up().exits(3).says("port0 is no bridge");
    lab.write("topology.yaml", topology("lan", LAN));
    host.sh("ip link set br0 mtu 1500");
    up().exits(0);
    for address in ["10.30.0.12", "10.31.0.12", "10.30.0.1"] {
        lab.exec("a", &format!("ping -c 1 -W 10 {address}"));
    }
    host.sh("ip -j link show master br0 | grep -q '\"lp'");
    up().exits(0).says("nothing to do");

    // A macvtap's directions are the right way round.
    serve(&lab, &["a", "b"]);
    let into = rate(&lab, "a", "b", "10.31.0.11", 1024);
    assert!((1.0..4.4).contains(&into), "{into} Mbit/s of 4");
    let out = rate(&lab, "b", "a", "10.31.0.12", 4096);
    assert!(out > 4.4, "{out} Mbit/s, not of 4");

    // A subnet that the host has already is refused by name.
    let clash = format!("{LAN}  c: {{vnets: [{{vswitch: more}}]}}\n")
        .replace("10.30.0.", "10.32.0.")
        .replace("  lan:", "  more: {subnet: 10.30.0.128/25}\n  lan:");
    lab.write("topology.yaml", topology("lan", &clash));
    up().exits(3)
        .says("subnet 10.30.0.128/25 overlaps 10.30.0.0/24, which the host has on br0");

    lab.down().exits(0);
    host.sh("ip link show br0 && ip link show port0 && ! ip -j link show | grep -q '\"ifname\":\"l[pi]'");
    lab.assert_nothing_left();
}
