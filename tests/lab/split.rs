//! Shares of the host: where guests really run, what their machines are, what is refused.

use std::collections::BTreeMap;
use std::fs;

use labrig::backend::host_shape;
use nix::sched::{CpuSet, sched_setaffinity};
use nix::unistd::Pid;

use super::common::{Lab, Process};

/// Two guests with cores of their own; the first has an I/O thread.
const PINNED: &str = "\
version: 1
name: pinned
images:
  micro: {build: {micro: {}}}
vswitches:
  data: {subnet: 10.10.0.0/24}
defaults:
  image: micro
  split: {cpus: 1, memory: 160MiB, pin: auto, numa: local}
  vnets: [{vswitch: data}]
domains:
  a:
    split: {io_threads: 1}
    disks: [{name: log, size: 16MiB}]
  b: {}
";

/// The CPUs of each thread of a process by the thread's name, as the kernel tells.
fn affinities(process: &Process) -> BTreeMap<String, Vec<(i32, String)>> {
    let mut found: BTreeMap<String, Vec<_>> = BTreeMap::new();
    for thread in fs::read_dir(format!("/proc/{}/task", process.pid)).unwrap() {
        let path = thread.unwrap().path();
        let name = fs::read_to_string(path.join("comm")).unwrap();
        let status = fs::read_to_string(path.join("status")).unwrap();
        let cpus = status
            .lines()
            .find_map(|line| line.strip_prefix("Cpus_allowed_list:"))
            .unwrap();
        let id = path.file_name().unwrap().to_str().unwrap().parse().unwrap();
        let entry = (id, cpus.trim().to_owned());
        found.entry(name.trim().to_owned()).or_default().push(entry);
    }
    found
}

#[track_caller]
fn vcpu_of(process: &Process) -> (i32, String) {
    let threads = affinities(process);
    let vcpu = threads.iter().find(|(name, _)| name.starts_with("CPU 0"));
    vcpu.expect("a thread for the virtual CPU").1[0].clone()
}

#[test]
fn guests_run_where_they_belong_and_are_brought_back_there() {
    let shape = host_shape::shape().unwrap();
    let cores: Vec<_> = shape
        .cores()
        .into_iter()
        .map(|core| core.cpus.iter().next().unwrap().to_string())
        .collect();
    assert!(cores.len() >= 2, "this test needs two cores");
    let lab = Lab::new("pinned", PINNED);
    lab.labrig(["plan", "--split", "topology.yaml"])
        .exits(0)
        .prints_row(&format!("a 1 {} 1 0 160 MiB -", cores[0]))
        .prints_row(&format!("b 1 {} 1 0 160 MiB -", cores[1]));
    lab.up().exits(0);
    for (domain, core) in [("a", &cores[0]), ("b", &cores[1])] {
        for (thread, cpus) in affinities(&lab.qemu(domain)) {
            for (_, cpus) in cpus {
                assert_eq!(cpus, **core, "{domain}: {thread}");
            }
        }
    }
    assert!(affinities(&lab.qemu("a")).contains_key("IO iothread1"));
    lab.labrig(["plan", "topology.yaml"])
        .exits(0)
        .prints("nothing to do");

    // Something moves a virtual CPU: that is seen, and mended while the guest runs on.
    let boot = lab.boot_id("a");
    let (thread, _) = vcpu_of(&lab.qemu("a"));
    let mut all = CpuSet::new();
    for cpu in shape.cpus().iter() {
        all.set(cpu as usize).unwrap();
    }
    sched_setaffinity(Pid::from_raw(thread), &all).unwrap();
    let reason = format!(
        "move domain a it has vcpu 0 on CPU {} instead of {}",
        shape.cpus(),
        cores[0]
    );
    lab.labrig(["plan", "topology.yaml"]).prints_row(&reason);
    lab.up().exits(0).says("move domain a");
    assert_eq!(vcpu_of(&lab.qemu("a")), (thread, cores[0].clone()));
    assert_eq!(lab.boot_id("a"), boot);
}

#[test]
fn the_host_keeps_its_core() {
    let text = PINNED.replace("defaults:", "host: {reserve: 1}\ndefaults:");
    let text = text.replace("  b: {}\n", "  b: {split: {pin: null, numa: null}}\n");
    let lab = Lab::new("pinned", &text);
    lab.up().exits(0);
    let shape = host_shape::shape().unwrap();
    let cores = shape.cores();
    let first = cores[1].cpus.iter().next().unwrap().to_string();
    let (kept, left) = (&cores[0].cpus, shape.cpus().difference(&cores[0].cpus));
    assert_eq!(vcpu_of(&lab.qemu("a")).1, first);
    assert_eq!(vcpu_of(&lab.qemu("b")).1, left.to_string());
    // QEMU's own threads, libvirt and the DHCP server are with the host.
    let own = affinities(&lab.qemu("a"));
    assert_eq!(own["IO iothread1"][0].1, kept.to_string());
    let others = lab.processes().into_iter().filter(|process| {
        let command = &process.command;
        command.contains("libvirtd") || command.contains("dnsmasq")
    });
    let mut count = 0;
    for process in others {
        count += 1;
        for (thread, cpus) in affinities(&process) {
            assert_eq!(cpus[0].1, kept.to_string(), "{} {thread}", process.command);
        }
    }
    assert!(count >= 2);
}

#[test]
fn a_machine_with_uefi_and_a_tpm() {
    const MACHINE: &str = "machine: {type: q35, firmware: uefi, tpm: true, cpu: {model: EPYC, cores: 2}, xml: \"<domain><description>mine</description></domain>\"}";
    let text = super::SOLO.replace(
        "    image: micro\n",
        &format!("    image: micro\n    {MACHINE}\n"),
    );
    let lab = Lab::new("solo", &text.replace("cpus: 1", "cpus: 2"));
    lab.up().exits(0);
    assert_eq!(
        lab.exec("a", "ls -d /sys/firmware/efi"),
        "/sys/firmware/efi"
    );
    let cores = lab.exec(
        "a",
        "cat /sys/devices/system/cpu/cpu0/topology/core_cpus_list",
    );
    assert_eq!(cores, "0", "no siblings");
    assert_eq!(lab.exec("a", "cat /sys/devices/system/cpu/online"), "0-1");
    let variables = lab.state().join("labs/solo/nvram/a.fd");
    assert!(fs::metadata(&variables).unwrap().len() > 0);
    let swtpm = |lab: &Lab| {
        let is_it = |process: &Process| process.command.starts_with("/usr/bin/swtpm");
        lab.processes()
            .iter()
            .filter(|process| is_it(process))
            .count()
    };
    assert_eq!(swtpm(&lab), 1);
    lab.up().exits(0).says("nothing to do");

    // Its variables and its TPM go with it, and only with it.
    let tpm = lab.state().join("labs/solo/host/lib/swtpm");
    assert_eq!(fs::read_dir(&tpm).unwrap().count(), 1);
    lab.write(
        "topology.yaml",
        text.replace("  a:", "  c:").replace(MACHINE, ""),
    );
    lab.up().exits(0);
    assert!(!variables.exists());
    assert_eq!(fs::read_dir(&tpm).unwrap().count(), 0);
    assert_eq!(swtpm(&lab), 0);
}

#[test]
fn what_this_host_cannot_do_is_refused_before_anything_is_made() {
    let machine = |lines: &str| {
        super::SOLO.replace(
            "    image: micro\n",
            &format!("    image: micro\n    {lines}\n"),
        )
    };
    let split =
        |keys: &str| super::SOLO.replace("memory: 160MiB", &format!("memory: 160MiB, {keys}"));
    for (text, said) in [
        (split("quota: 50%"), "quota needs control groups"),
        (split("shares: 512"), "shares needs control groups"),
        (
            split("memory_limit: 400MiB"),
            "memory_limit needs control groups",
        ),
        (
            machine("machine: {type: pc-q35-99.0}"),
            "no machine type \"pc-q35-99.0\"",
        ),
        (
            machine("machine: {cpu: {model: Z80}}"),
            "no processor \"Z80\"",
        ),
    ] {
        let lab = Lab::new("solo", &text);
        for verb in ["plan", "up"] {
            lab.labrig([verb, "topology.yaml"]).exits(3).says(said);
        }
        assert_eq!(lab.labs_entries(), [""; 0], "{said}");
        assert_eq!(lab.processes(), []);
    }
}

#[test]
fn a_lab_for_a_larger_host_is_planned_but_not_brought_up() {
    let host =
        "host: {sockets: 4, cores: 64, threads_per_core: 8, memory: 4TiB, numa: 4, reserve: 2}\n";
    let split =
        "split: {cores: 4, threads_per_core: 8, memory: 1/8, pin: auto, numa: local, quota: 800%}";
    let text = super::SOLO
        .replace("images:", &format!("{host}images:"))
        .replace("split: {cpus: 1, memory: 160MiB}", split);
    let lab = Lab::new("solo", &text);
    lab.labrig(["check", "topology.yaml"]).exits(0);
    lab.labrig(["plan", "topology.yaml"])
        .exits(0)
        .prints_row("start domain a the domain is new");
    lab.labrig(["plan", "--split", "topology.yaml"])
        .exits(0)
        .prints("host (described): 2048 threads on 256 cores")
        .prints_row("(the host) 16 0-15 - - - -")
        .prints_row("a 32 16-47 4 0 524288 MiB -");
    let shares = lab.labrig(["plan", "--split", "topology.yaml", "--json"]);
    let shares = shares.exits(0).json();
    assert_eq!(shares["domains"][0]["cpus"], "16-47");
    assert_eq!(shares["spare_threads"], 2048 - 16 - 32);
    lab.up()
        .exits(3)
        .says("threads instead of 2048")
        .says("topology.yaml:3:1");
    assert_eq!(lab.labs_entries(), [""; 0]);
}
