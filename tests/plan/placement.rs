//! Domains that are not where they belong on the host: seen, mended, or told.

use crate::host::{Host, LAB, Titles, desired_of, platform, topology};
use labrig::backend::fake::{Fault, Operation};
use labrig::model::{
    Acceleration, Bytes, CpuSet, DomainKind, Firmware, Machine, Placement, Split, Topology,
};
use labrig::plan::{Desired, check_platform};
use labrig::ports::chain;

const DB: &str = "labrig-lab.db";

fn set(text: &str) -> CpuSet {
    text.parse().unwrap()
}

/// The lab with its first domain pinned.
fn pinned() -> Desired {
    let mut topology = topology(LAB);
    let split = topology.domains[0].split.as_mut().unwrap();
    split.pins = vec![set("2"), set("3")];
    split.emulator = Some(set("1"));
    split.io_threads = 1;
    desired_of(&topology)
}

#[test]
fn what_was_moved_is_moved_back_while_it_runs() {
    let desired = pinned();
    let cases: [(fn(&mut Placement), &str); 3] = [
        (
            |p| p.vcpus[1] = set("0-7"),
            "vcpu 1 on CPU 0-7 instead of 3",
        ),
        (
            |p| p.emulator = set("2"),
            "the emulator on CPU 2 instead of 1",
        ),
        (
            |p| p.io_threads[0] = set("5"),
            "I/O thread 1 on CPU 5 instead of 1",
        ),
    ];
    for (displace, said) in cases {
        let host = Host::with(&desired);
        host.hypervisor.displace(DB, displace);
        let plan = host.plan(&desired);
        assert_eq!(plan.titles(), ["move domain db"]);
        assert_eq!(plan.actions[0].reason, format!("it has {said}"));
        host.apply(plan).unwrap();
        host.is_up(&desired, said);
    }
}

#[test]
fn other_memory_needs_a_new_start() {
    let desired = pinned();
    let host = Host::with(&desired);
    host.hypervisor.displace(DB, |p| p.memory = Bytes::mib(256));
    let plan = host.plan(&desired);
    assert_eq!(
        plan.titles(),
        ["stop domain db", "start domain db", "await domain db"]
    );
    assert_eq!(
        plan.actions[0].reason,
        "it has 262144 KiB of memory instead of 524288 KiB"
    );
    host.mends_and_goes(&desired, "memory");
}

#[test]
fn a_domain_that_starts_elsewhere_is_an_error() {
    let desired = pinned();
    let host = Host::new();
    host.hypervisor.ignore_pins(DB);
    let error = host.up(&desired).unwrap_err();
    assert_eq!(error.title, "await domain db");
    assert_eq!(
        chain(&error.source),
        "find domain labrig-lab.db where it belongs: vcpu 0 on CPU 0-7 instead of 2, \
         vcpu 1 on CPU 0-7 instead of 3, the emulator on CPU 0-7 instead of 1, \
         I/O thread 1 on CPU 0-7 instead of 1"
    );
    // And it stays one: what is not there is not taken for there.
    let error = host.up(&desired).unwrap_err();
    assert_eq!(error.title, "move domain db");
}

#[test]
fn what_fails_on_the_way_is_tried_again() {
    let desired = pinned();
    for operation in [Operation::Placement, Operation::MoveDomain] {
        let host = Host::with(&desired);
        host.hypervisor.displace(DB, |p| p.vcpus[0] = set("0"));
        host.faults.add(Fault::on(operation, DB));
        assert!(host.up(&desired).is_err(), "{operation:?}");
        host.mends_and_goes(&desired, "a fault");
    }
}

fn machine_of(topology: &mut Topology) -> &mut Machine {
    match &mut topology.domains[0].kind {
        DomainKind::Vm(guest) => &mut guest.machine,
        other => panic!("{other:?}"),
    }
}

#[test]
fn what_a_host_lacks_is_named() {
    type Change = fn(&mut Topology);
    fn split(topology: &mut Topology) -> &mut Split {
        topology.domains[0].split.as_mut().unwrap()
    }
    let cases: [(Change, &str, &str); 8] = [
        (
            |t| machine_of(t).kind = "pc-q35-99.0".to_owned(),
            "domains.db.machine.type",
            "no machine type \"pc-q35-99.0\"",
        ),
        (
            |t| {
                machine_of(t).kind = "pc".to_owned();
                machine_of(t).firmware = Firmware::Uefi;
            },
            "domains.db.machine.firmware",
            "no UEFI firmware for pc-i440fx-7.2",
        ),
        (
            |t| machine_of(t).cpu.model = Some("host".to_owned()),
            "domains.db.machine.cpu.model",
            "emulation cannot show",
        ),
        (
            |t| machine_of(t).cpu.model = Some("Z80".to_owned()),
            "domains.db.machine.cpu.model",
            "knows no processor \"Z80\"",
        ),
        (
            |t| split(t).shares = Some(2),
            "domains.db.split.shares",
            "shares needs control groups",
        ),
        (
            |t| split(t).quota = Some(50),
            "domains.db.split.quota",
            "quota needs control groups",
        ),
        (
            |t| split(t).memory_limit = Some(Bytes::mib(900)),
            "domains.db.split.memory_limit",
            "memory_limit needs control groups",
        ),
        (
            |t| split(t).hugepages = Some(Bytes::mib(2)),
            "domains.db.split.hugepages",
            "no file system with huge pages of 2MiB",
        ),
    ];
    let platform = platform(Acceleration::Emulation);
    for (change, path, message) in cases {
        let mut topology = topology(LAB);
        change(&mut topology);
        let notes = check_platform(&topology, &platform);
        assert_eq!(notes.len(), 1, "{path}: {notes:?}");
        assert_eq!(notes[0].path, path);
        assert!(notes[0].message.contains(message), "{}", notes[0].message);
    }
    let mut without_tpm = platform.clone();
    without_tpm.tpm = false;
    let mut topology = topology(LAB);
    machine_of(&mut topology).tpm = true;
    machine_of(&mut topology).firmware = Firmware::Uefi;
    assert_eq!(check_platform(&topology, &platform), []);
    let notes = check_platform(&topology, &without_tpm);
    assert_eq!(notes[0].path, "domains.db.machine.tpm");
}
