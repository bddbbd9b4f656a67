//! Domains that labrig does not make: the lab host itself, and machines that are there already.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use nix::unistd::Uid;

use super::SOLO;
use super::common::Lab;
use super::hosts::become_ordinary;

/// The lab host under two names, and nothing else.
const HOSTS: &str = "\
version: 1
name: mix
vswitches:
  data: {subnet: 10.10.0.0/24}
domains:
  gen:
    kind: host
    count: 2
    split: {cpus: 1, memory: 64MiB}
    vnets: [{vswitch: data}]
    files: [{template: motd.tera, to: \"/etc/labrig-test/motd{{ index }}\"}]
";

/// A guest beside them.
const GUEST: &str = "  a:
    image: micro
    split: {cpus: 1, memory: 160MiB}
    vnets: [{vswitch: data, ip: 10.10.0.11}]
";

const PLAYBOOK: &str = "\
version: 1
name: count
topology: topology.yaml
roles: {load: [gen1]}
factors: {k: [1, 2]}
design: {repetitions: 1, order: blocks, seed: 3}
setup:
  - {on: load, copy: {from: count.sh, to: /root/count.sh, mode: \"0755\"}}
trial:
  - {on: load, wait: {command: test -x /root/count.sh}, timeout: 30s}
  - {on: load, load: {run: \"/root/count.sh {{ k }}\", adapter: lines, expect: 1s}, timeout: 1m}
metrics: {n: {primary: true, unit: count, better: higher}}
";

const COUNT: &str = "#!/bin/sh\necho metric n \"$1\" count\n";

/// Everything on the lab host; `lab` has domains gen1 and gen2.
fn use_hosts(lab: &Lab) {
    // What it must not see, and what must not be there afterwards.
    let probe = format!("labrig-probe-{}", std::process::id());
    let on_machine = Path::new("/var/lib").join(&probe);
    lab.write(
        "templates/motd.tera",
        "{{ domain.name }} at {{ domain.ip }}\n",
    );
    lab.labrig(["plan", "topology.yaml"])
        .exits(0)
        .prints_row("await host gen1 it was not seen to answer")
        .prints_row("write 1 file on gen1 its files are not these");
    assert_eq!(lab.labs_entries(), [""; 0], "a plan makes nothing");
    lab.up().exits(0);
    lab.up().exits(0).says("nothing to do");
    assert_eq!(
        lab.exec("gen2", "cat /etc/labrig-test/motd2"),
        "gen2 at 10.10.0.1"
    );
    assert_eq!(lab.status("gen1")["state"], "reachable");

    // The lab's own network, processes and files.
    let devices = lab.exec("gen1", "ls /sys/class/net");
    let mut devices: Vec<_> = devices.lines().collect();
    devices
        .retain(|device| *device != "lo" && !device.starts_with("lr") && !device.starts_with("lp"));
    assert_eq!(devices, [""; 0], "only the lab's devices");
    assert!(
        lab.exec("gen1", "ip -4 -o address")
            .contains("inet 10.10.0.1/24")
    );
    assert_eq!(lab.exec("gen1", "cat /proc/1/comm"), "labrig");
    assert_eq!(
        lab.exec("gen1", "id -u; echo $HOME; ls -A /tmp"),
        "0\n/root"
    );
    // What the kernel has once for the whole machine stays as it is.
    let swappiness = fs::read_to_string("/proc/sys/vm/swappiness").unwrap();
    let hostname = nix::unistd::gethostname().unwrap();
    lab.exec(
        "gen1",
        "! (echo 7 >/proc/sys/vm/swappiness) 2>/dev/null && ! mount -t proc proc /mnt 2>/dev/null; \
         hostname labrig-probe 2>/dev/null; true",
    );
    assert_eq!(
        fs::read_to_string("/proc/sys/vm/swappiness").unwrap(),
        swappiness
    );
    assert_eq!(nix::unistd::gethostname().unwrap(), hostname);
    lab.exec("gen1", "echo 2048 >/proc/sys/net/core/somaxconn");

    lab.exec(
        "gen1",
        &format!(
            "echo x >{}; mkdir /{probe}; touch /etc/{probe}",
            on_machine.display()
        ),
    );
    assert_eq!(
        lab.exec("gen2", &format!("cat {}", on_machine.display())),
        "x"
    );
    for path in [
        on_machine,
        Path::new("/").join(&probe),
        Path::new("/etc").join(&probe),
    ] {
        assert!(!path.exists(), "{}", path.display());
    }

    // One name for all of a counted group.
    let all = lab
        .labrig(["exec", "mix", "gen", "--", "echo here"])
        .exits(0)
        .stdout;
    let mut lines: Vec<_> = all.lines().collect();
    lines.sort_unstable();
    assert_eq!(lines, ["gen1: here", "gen2: here"]);
    lab.labrig(["exec", "mix", "gen1", "--", "echo no >&2; exit 7"])
        .exits(7)
        .says("no");
    lab.labrig(["ssh", "mix", "gen1", "--", "cat", "/etc/labrig-test/motd1"])
        .exits(0)
        .prints("gen1 at 10.10.0.1");

    // A changed file is delivered again.
    lab.write("templates/motd.tera", "new\n");
    lab.labrig(["plan", "topology.yaml"])
        .exits(0)
        .prints("write 1 file on gen2");
    lab.up().exits(0);
    assert_eq!(lab.exec("gen1", "cat /etc/labrig-test/motd1"), "new");

    // Steps of a playbook run there, and what they leave running is swept.
    lab.write("playbook.yaml", PLAYBOOK);
    lab.write("count.sh", COUNT);
    lab.labrig(["run", "playbook.yaml"]).exits(0);
    lab.exec("gen1", "test -x /root/count.sh");
}

#[test]
fn the_lab_host_is_a_domain_beside_guests() {
    let images = "images:\n  micro: {build: {micro: {}}}\nvswitches:";
    let topology = HOSTS.replace("vswitches:", images) + GUEST;
    let lab = Lab::new("mix", &topology);
    use_hosts(&lab);
    // Both ways.
    let banner = "bash -c 'head -c 8 </dev/tcp/10.10.0.11/22'";
    assert_eq!(lab.exec("gen1", banner), "SSH-2.0-");
    lab.exec("a", "ping -c 1 -W 10 10.10.0.1");
    lab.down().exits(0);
    lab.assert_nothing_left();
}

#[test]
fn the_lab_host_is_a_domain_for_an_ordinary_user() {
    let mut lab = Lab::with_own_images("mix", HOSTS);
    if Uid::effective().is_root() {
        become_ordinary(&mut lab);
    }
    use_hosts(&lab);
    // What belongs to the machine's root is replaced, but never changed.
    lab.exec(
        "gen1",
        "! echo x >>/etc/hosts && sed -i s/localhost/lab/ /etc/hosts",
    );
    assert!(
        fs::read_to_string("/etc/hosts")
            .unwrap()
            .contains("localhost")
    );
    let processes = lab.processes();
    assert!(
        !processes.iter().any(super::common::Process::is_of_root),
        "{processes:?}"
    );
    lab.down().exits(0);
    lab.assert_nothing_left();
}

#[test]
fn an_external_machine_is_used_and_left_as_it_was() {
    // A guest of one lab is a machine that is there already to another one beside it.
    let there = Lab::new("solo", SOLO);
    there.up().exits(0);
    there.exec("a", "echo theirs >/etc/issue");
    let ssh = there.state().join("labs/solo/ssh");
    let known = fs::read_to_string(ssh.join("known_hosts")).unwrap();
    let key = known
        .split_whitespace()
        .skip(1)
        .take(2)
        .collect::<Vec<_>>()
        .join(" ");
    let topology = format!(
        "version: 1\nname: far\ndomains:\n  x:\n    kind: external\n    external: {{address: 10.10.0.11, key: id, host_key: {key}}}\n    files: [{{template: issue.tera, to: /etc/issue}}, {{template: issue.tera, to: /srv/deep/new}}]\n    boot_timeout: 20s\n"
    );
    let mut lab = Lab::new("far", &topology);
    lab.write(
        "templates/issue.tera",
        "{{ domain.name }} is {{ domains.x.ip }}\n",
    );
    fs::copy(ssh.join("id_ed25519"), lab.path("id")).unwrap();
    fs::set_permissions(lab.path("id"), fs::Permissions::from_mode(0o600)).unwrap();
    lab.on_shared_host(there.inside(lab.directory()));

    lab.labrig(["check", "topology.yaml"]).exits(0);
    lab.up().exits(0);
    lab.up().exits(0).says("nothing to do");
    assert_eq!(
        lab.exec("x", "hostname; cat /etc/issue /srv/deep/new"),
        "a\nx is 10.10.0.11\nx is 10.10.0.11"
    );
    let status = lab.status("x");
    assert_eq!(
        (status["state"].as_str(), status["kind"].as_str()),
        (Some("reachable"), Some("external"))
    );
    lab.labrig(["ssh", "far", "x", "--", "hostname"])
        .exits(0)
        .prints("a");
    lab.write("playbook.yaml", PLAYBOOK.replace("gen1", "x"));
    lab.write("count.sh", COUNT);
    lab.labrig(["run", "playbook.yaml"]).exits(0);

    // Another host key is another machine.
    let other = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIJdD7y3aLq454yWBdwLWbieU1ebz9/cu7/QEXn9OIeZJ";
    let wrong = topology
        .replace(&key, other)
        .replace("name: far", "name: wrong");
    lab.write("wrong.yaml", wrong);
    lab.labrig(["up", "wrong.yaml"])
        .exits(4)
        .says("another host key");
    lab.labrig(["down", "wrong"]).exits(0).says("are left on x");

    lab.down().exits(0);
    assert_eq!(
        there.exec(
            "a",
            "cat /etc/issue; ls -A /srv/deep /root/.local/state/labrig"
        ),
        "theirs\n/root/.local/state/labrig:\n\n/srv/deep:"
    );
    lab.assert_nothing_left();
}

#[test]
fn containers_are_refused_before_anything_is_made() {
    let topology = SOLO.replace("    image: micro", "    kind: container\n    image: micro");
    let lab = Lab::new("solo", &topology);
    lab.labrig(["check", "topology.yaml"])
        .exits(0)
        .says("warning")
        .says("containers cannot be brought up yet");
    for verb in ["plan", "up"] {
        lab.labrig([verb, "topology.yaml"])
            .exits(3)
            .says("containers cannot be brought up yet");
    }
    assert_eq!(lab.labs_entries(), [""; 0]);
}
