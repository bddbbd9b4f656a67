//! The life of a lab, from the first `up` to the last `down`.

use std::fs;

use super::common::{Lab, until};
use super::{PAIR, SOLO, pair};

#[test]
fn a_lab_from_up_to_down() {
    let lab = pair();
    lab.labrig(["plan", "topology.yaml"])
        .exits(0)
        .prints_row("start domain a the domain is new");
    assert_eq!(lab.labs_entries(), [""; 0], "a plan makes nothing");

    lab.up().exits(0).prints("lab pair is up: 2 domains");

    // It is listed as a hypervisor lists its guests.
    let table = lab.labrig(["status", "pair"]).exits(0).stdout;
    let mut lines = table.lines();
    assert!(lines.next().unwrap().starts_with("lab pair on embedded"));
    let words = |line: &str| {
        line.split_whitespace()
            .map(str::to_owned)
            .collect::<Vec<_>>()
    };
    assert_eq!(
        words(lines.next().unwrap()).join(" "),
        "NAME KIND STATE VCPUS MEMORY CPU UPTIME ADDRESSES"
    );
    let row = words(lines.next().unwrap());
    assert_eq!(
        row[..6],
        ["a", "vm", "running", "1", "160", "MiB"],
        "{row:?}"
    );
    assert_eq!(
        row[row.len() - 2..],
        ["data=10.10.0.11", "uplink=10.10.9.11"]
    );
    assert!(lab.status("b")["uptime_seconds"].as_u64().unwrap() < 300);

    // The guests took their seeds.
    assert_eq!(lab.exec("a", "hostname"), "a");
    assert_eq!(
        lab.exec("a", "cat /etc/motd; stat -c %a /etc/motd"),
        "hello from a, 10.10.9.12 is b\n600"
    );

    // They reach each other on both vswitches, and the lab host.
    for b in ["10.10.0.12", "10.10.9.12"] {
        let banner = format!("nc -w 10 {b} 22 </dev/null | head -c 8");
        assert_eq!(lab.exec("a", &banner), "SSH-2.0-");
    }
    for host in ["10.10.0.1", "10.10.9.1"] {
        lab.exec("b", &format!("ping -c 1 -W 10 {host}"));
    }

    // What a command says and how it ends is passed on, from one domain or from all.
    lab.labrig(["exec", "pair", "a", "--", "echo out; echo err >&2; exit 7"])
        .exits(7)
        .prints("out\n")
        .says("err\n");
    lab.labrig(["exec", "pair", "all", "--", "hostname"])
        .exits(0)
        .prints("a: a\n")
        .prints("b: b\n");
    lab.labrig(["ssh", "pair", "b", "--", "hostname"])
        .exits(0)
        .prints("b\n");

    // The machine's own network has none of it.
    for vswitch in lab.record()["topology"]["vswitches"]
        .as_object()
        .unwrap()
        .values()
    {
        let device = format!("/sys/class/net/{}", vswitch["device"].as_str().unwrap());
        assert!(!fs::exists(&device).unwrap(), "{device}");
    }

    // Another `up` of the same file does nothing.
    let boot = lab.boot_id("a");
    let journal = lab.state().join("labs/pair/journal.ndjson");
    let before = fs::read(&journal).unwrap();
    lab.up().exits(0).says("nothing to do");
    assert_eq!(lab.boot_id("a"), boot);
    assert_eq!(fs::read(&journal).unwrap(), before);

    // `down` leaves nothing, and says so when there is nothing.
    let processes = lab.processes();
    assert!(processes.iter().any(|p| p.command.contains("libvirtd")));
    assert!(processes.iter().any(|p| p.command.contains("dnsmasq")));
    lab.down().exits(0).prints("nothing of it is left");
    assert!(!processes.iter().any(|process| process.is_alive()));
    lab.assert_nothing_left();
    lab.down().exits(2).says("find lab pair");
}

#[test]
fn a_guest_with_another_host_key_is_refused() {
    let lab = pair();
    lab.up().exits(0);
    // What labrig takes for a is b now.
    let record = fs::read_to_string(lab.record_file()).unwrap();
    let swapped = record
        .replace("10.10.0.11", "?")
        .replace("10.10.0.12", "10.10.0.11")
        .replace('?', "10.10.0.12");
    fs::write(lab.record_file(), swapped).unwrap();
    lab.labrig(["exec", "pair", "a", "--", "hostname"])
        .exits(4)
        .says("another host key");
    lab.labrig(["ssh", "pair", "a", "--", "hostname"])
        .exits(255)
        .says("Host key verification failed");
    fs::write(lab.record_file(), record).unwrap();
    assert_eq!(lab.exec("a", "hostname"), "a");
}

#[test]
fn up_changes_what_changed_and_nothing_else() {
    let lab = pair();
    lab.up().exits(0);
    let (a, b) = (lab.boot_id("a"), lab.boot_id("b"));

    // More memory for one.
    let larger = PAIR.replacen("160MiB", "176MiB", 1);
    lab.write("topology.yaml", &larger);
    lab.labrig(["plan", "topology.yaml", "--exit-code"])
        .exits(1)
        .prints_row("start domain a its definition changed");
    lab.up().exits(0).does_not_say("domain b");
    lab.labrig(["plan", "topology.yaml", "--exit-code"])
        .exits(0)
        .prints("nothing to do");
    assert_eq!(lab.status("a")["memory_mib"], 176);
    assert_ne!(lab.boot_id("a"), a);
    assert_eq!(lab.boot_id("b"), b);

    // One more.
    let a = lab.boot_id("a");
    let c = "  c: {image: micro, split: {cpus: 1, memory: 160MiB}, vnets: [{vswitch: data}]}\n";
    lab.write("topology.yaml", format!("{larger}{c}"));
    lab.up().exits(0).says("start domain c");
    assert_eq!(lab.exec("c", "hostname"), "c");
    assert_eq!((lab.boot_id("a"), lab.boot_id("b")), (a, b.clone()));

    // Two fewer.
    let c = lab.qemu("c");
    let only_b = larger.replace(
        &larger[larger.find("  a:").unwrap()..larger.find("  b:").unwrap()],
        "",
    );
    lab.write("topology.yaml", only_b);
    lab.up().exits(0);
    assert!(!c.is_alive());
    assert_eq!(lab.status("a"), serde_json::Value::Null);
    assert_eq!(lab.boot_id("b"), b);

    // What ends without labrig is noticed and mended.
    lab.qemu("b").kill();
    until("libvirt sees b's end", || {
        lab.status("b")["state"] == "shut off"
    });
    lab.labrig(["plan", "topology.yaml"])
        .exits(0)
        .prints_row("start domain b it does not run");
    lab.up().exits(0);
    assert_ne!(lab.boot_id("b"), b);
}

#[test]
fn two_copies_of_a_lab_stand_side_by_side() {
    let lab = Lab::new("solo", SOLO);
    lab.up().exits(0);
    lab.labrig(["up", "topology.yaml", "--name", "copy"])
        .exits(0)
        .prints("lab copy is up");
    let address = "ip -4 -o address show dev eth0";
    let copied = lab.labrig(["exec", "copy", "a", "--", address]).exits(0);
    assert_eq!(copied.stdout.trim_end(), lab.exec("a", address));

    lab.exec("a", "touch /tmp/mine");
    lab.labrig(["exec", "copy", "a", "--", "test -e /tmp/mine"])
        .exits(1);
    lab.labrig(["down", "copy"]).exits(0);
    assert_eq!(lab.exec("a", "ls /tmp/mine"), "/tmp/mine");
}
