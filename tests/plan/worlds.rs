//! Tables of worlds: every way to be half built, every change of the file, cut short after every
//! action.

use std::path::Path;

use crate::host::{Host, LAB, Titles, desired};
use labrig::model::Bytes;
use labrig::plan::{Desired, check_ram_disks};
use labrig::ports::Hypervisor;

/// What can be wrong with a lab that was up, with what the plan must and must not do about it.
type Row = (
    &'static str,
    fn(&Host, &Desired),
    &'static [&'static str],
    &'static [&'static str],
);

const DB: &str = "labrig-lab.db";
const PROBE: &str = "labrig-lab.probe";
const DATA: &str = "labrig-lab.data";
const FRONT: &str = "labrig-lab.front";

fn seed_of(desired: &Desired, name: &str) -> std::path::PathBuf {
    let mut domains = desired.domains.iter();
    domains
        .find(|d| d.name.as_str() == name)
        .unwrap()
        .seed
        .0
        .clone()
}

const BROKEN: &[Row] = &[
    (
        "nothing is wrong",
        |_, _| {},
        &[],
        &["start", "stop", "remove"],
    ),
    (
        "a guest powered itself off",
        |host, _| host.hypervisor.power_off(DB),
        &["start domain db", "await domain db"],
        &["web1", "create", "define", "stop"],
    ),
    (
        "a network was stopped under its domains",
        |host, _| host.hypervisor.stop_network(FRONT),
        &[
            "start network labrig-lab.front",
            "stop domain probe",
            "start domain web2",
        ],
        &["domain db", "define", "create"],
    ),
    (
        "all networks were stopped and a guest is off",
        |host, _| {
            host.hypervisor.stop_network(FRONT);
            host.hypervisor.stop_network(DATA);
            host.hypervisor.power_off(DB);
        },
        &[
            "start network labrig-lab.data",
            "start domain db",
            "stop domain web1",
        ],
        &["stop domain db", "define"],
    ),
    (
        "a network is gone",
        |host, _| host.hypervisor.remove_network(DATA).unwrap(),
        &[
            "define network labrig-lab.data",
            "stop domain db",
            "start domain db",
        ],
        &["probe", "define domain"],
    ),
    (
        "a disk is gone under its running domain",
        |host, desired| host.hypervisor.lose_file(&desired.domains[0].disks[1].path),
        &["stop domain db", "create disk", "start domain db"],
        &["web1", "define", "write seed"],
    ),
    (
        "a seed is gone",
        |host, desired| host.hypervisor.lose_file(&seed_of(desired, "probe")),
        &["stop domain probe", "write seed", "start domain probe"],
        &["domain db", "create", "define"],
    ),
    (
        "a domain is gone, its files are not",
        |host, _| {
            host.hypervisor.stop_domain(DB).unwrap();
            host.hypervisor.remove_domain(DB).unwrap();
        },
        &["define domain db", "start domain db"],
        &["create", "write", "stop"],
    ),
    (
        "a defined domain has no file at all",
        |host, desired| {
            host.hypervisor.power_off(DB);
            for disk in &desired.domains[0].disks {
                host.hypervisor.lose_file(&disk.path);
            }
            host.hypervisor.lose_file(&seed_of(desired, "db"));
        },
        &["create disk", "write seed", "start domain db"],
        &["define", "web1"],
    ),
    (
        "the link to an image is gone, nothing needs it now",
        |host, desired| host.hypervisor.lose_link(&desired.images[0].link),
        &["provide image deb"],
        &["domain"],
    ),
    (
        "the link to an image is gone, and a guest is off",
        |host, desired| {
            host.hypervisor.lose_link(&desired.images[1].link);
            host.hypervisor.power_off(PROBE);
        },
        &["provide image micro", "start domain probe"],
        &["domain db", "domain web1"],
    ),
    (
        "files nobody knows lie around",
        |host, _| {
            host.hypervisor.leave_file(Path::new("/lab/disks/.tmpAb3x"));
            host.hypervisor
                .leave_file(Path::new("/lab/disks/db-root-0.qcow2.new"));
        },
        &["remove file .tmpAb3x", "remove file db-root-0.qcow2.new"],
        &["domain", "network"],
    ),
    (
        "impairments were lifted",
        |host, _| host.hypervisor.lift_impairments(),
        &[
            "impair vnet of web1 on front",
            "impair vnet of web2 on front",
            "impair vnet of probe on front",
        ],
        &["db", "on data", "start", "stop"],
    ),
    (
        "a reservation was taken away",
        |host, desired| {
            let reservation = desired.networks[0].reservations.first().unwrap();
            host.hypervisor.reserve(DATA, reservation, false).unwrap();
        },
        &["reserve 10.0.0."],
        &["start", "stop"],
    ),
    (
        "a reservation was taken away, and the network is down",
        |host, desired| {
            let reservation = desired.networks[0].reservations.first().unwrap();
            host.hypervisor.reserve(DATA, reservation, false).unwrap();
            host.hypervisor.stop_network(DATA);
        },
        &["reserve 10.0.0.", "start network labrig-lab.data"],
        &["probe"],
    ),
];

#[test]
fn whatever_broke_is_mended_and_nothing_else_is_touched() {
    let desired = desired(LAB);
    for (what, damage, musts, must_nots) in BROKEN {
        let host = Host::with(&desired);
        damage(&host, &desired);
        let titles = host.plan(&desired).titles();
        for must in *musts {
            assert!(
                titles.iter().any(|t| t.contains(must)),
                "{what}: no {must} in {titles:#?}"
            );
        }
        for must_not in *must_nots {
            assert!(
                !titles.iter().any(|t| t.contains(must_not)),
                "{what}: {must_not} in {titles:#?}"
            );
        }
        host.mends_and_goes(&desired, what);
    }
}

#[test]
fn what_is_mended_half_is_mended_by_the_next() {
    let desired = desired(LAB);
    for (what, damage, ..) in BROKEN {
        let host = Host::with(&desired);
        damage(&host, &desired);
        every_cut(&host, &desired, what);
    }
}

/// Tries the plan cut off after each of its actions.
fn every_cut(host: &Host, desired: &Desired, what: &str) {
    let (world, plan) = (host.hypervisor.world(), host.plan(desired));
    for n in 0..=plan.actions.len() {
        let host = Host::holding(world.clone());
        host.apply(plan.first(n)).unwrap();
        host.mends_and_goes(
            desired,
            &format!("{what}, cut off after {:?}", plan.first(n).titles()),
        );
    }
}

/// A change of the file: what to write for what; several changes at once.
type Change = (&'static str, &'static [(&'static str, &'static str)]);

const CHANGES: &[Change] = &[
    ("a domain gets more memory", &[("512MiB", "768MiB")]),
    ("a domain is new", &[("count: 2", "count: 3")]),
    ("a domain is gone", &[("count: 2", "count: 1")]),
    (
        "a domain has another name at the same address",
        &[("  db:", "  base:")],
    ),
    (
        "two domains change addresses",
        &[
            ("vnets: [{vswitch: data, ip: 10.0.0.10}]", "vnets: [DB]"),
            (
                "{vswitch: front, ip: 10.0.1.10}",
                "{vswitch: data, ip: 10.0.0.10}",
            ),
            ("vnets: [DB]", "vnets: [{vswitch: front, ip: 10.0.1.10}]"),
        ],
    ),
    (
        "a domain has another address",
        &[("ip: 10.0.0.10", "ip: 10.0.0.99")],
    ),
    (
        "a domain leaves a vswitch",
        &[("[{vswitch: data}, {vswitch: front}]", "[{vswitch: data}]")],
    ),
    ("a vswitch has another MTU", &[("mtu: 1400", "mtu: 1300")]),
    ("a vswitch has another subnet", &[("10.0.1.", "10.0.2.")]),
    (
        "a vswitch has IPv6 as well",
        &[(
            "subnet: 10.0.1.0/24",
            "subnet: 10.0.1.0/24, subnet6: \"fd00:1::/64\"",
        )],
    ),
    (
        "a vswitch has another mode",
        &[("mode: nat", "mode: routed")],
    ),
    (
        "a vswitch is a bridge of the host, where nobody gives addresses",
        &[
            ("mode: nat", "mode: bridge, bridge: br0"),
            ("{vswitch: front, ip: 10.0.1.10}", "{vswitch: data}"),
        ],
    ),
    (
        "a vswitch has another bandwidth, a vnet a delay, and a domain is new",
        &[
            ("bandwidth: 1Gbit/s", "bandwidth: 2Gbit/s"),
            ("ip: 10.0.0.10", "ip: 10.0.0.10, outbound: {delay: 1ms}"),
            ("count: 2", "count: 3"),
        ],
    ),
    (
        "a vnet has another model",
        &[("ip: 10.0.0.10", "ip: 10.0.0.10, model: vmxnet3")],
    ),
    (
        "a vswitch has another name and the same subnet",
        &[("data", "store")],
    ),
    (
        "two vswitches change subnets",
        &[
            ("10.0.1.", "10.9.9."),
            ("10.0.0.", "10.0.1."),
            ("10.9.9.", "10.0.0."),
        ],
    ),
    (
        "a vswitch is gone",
        &[
            ("[{vswitch: data}, {vswitch: front}]", "[{vswitch: front}]"),
            ("{vswitch: data, ip: 10.0.0.10}", "{vswitch: front}"),
            ("  data: {subnet: 10.0.0.0/24}\n", ""),
        ],
    ),
    ("a disk is larger", &[("size: 1GiB", "size: 2GiB")]),
    ("a disk is gone", &[(", {name: log, size: 1GiB}", "")]),
    (
        "an image has another package",
        &[("mariadb-server", "postgresql")],
    ),
    (
        "everything is another",
        &[
            ("data", "d2"),
            ("front", "f2"),
            ("  db:", "  base:"),
            ("web", "www"),
            ("probe", "sonde"),
        ],
    ),
];

fn changed(change: &[(&str, &str)]) -> String {
    change.iter().fold(LAB.to_owned(), |text, (old, new)| {
        assert!(text.contains(old), "{old:?} is not in the lab");
        text.replace(old, new)
    })
}

#[test]
fn a_changed_file_is_followed_cut_off_after_any_action() {
    let before = desired(LAB);
    for (what, change) in CHANGES {
        let after = desired(&changed(change));
        let host = Host::with(&before);
        assert!(!host.plan(&after).is_empty(), "{what}: nothing is planned");
        every_cut(&host, &after, what);
    }
}

#[test]
fn the_way_back_is_open_after_any_action() {
    let before = desired(LAB);
    for (what, change) in CHANGES {
        let host = Host::with(&before);
        let (world, plan) = (
            host.hypervisor.world(),
            host.plan(&desired(&changed(change))),
        );
        for n in 0..=plan.actions.len() {
            let host = Host::holding(world.clone());
            host.apply(plan.first(n)).unwrap();
            host.mends_and_goes(&before, &format!("{what}, undone after {n} actions"));
        }
    }
}

#[test]
fn a_new_lab_can_be_cut_off_after_any_action() {
    every_cut(&Host::new(), &desired(LAB), "a new lab");
}

#[test]
fn what_is_of_another_lab_stays() {
    let host = Host::with(&desired(LAB));
    let other = LAB
        .replace("name: lab", "name: other")
        .replace("10.0.", "10.1.");
    let other = desired(&other);
    for domain in &other.domains {
        let refused = host
            .hypervisor
            .define_domain(&domain.libvirt_name, &domain.xml)
            .unwrap_err();
        assert_eq!(
            format!("{:?}", refused.source.unwrap()),
            "\"it belongs to lab other\""
        );
    }
}

/// A lab with a disk in memory, and one that is somebody's file.
const KINDS: &str = "\
version: 1
name: lab
images:
  micro: {build: {micro: {}}}
vswitches:
  data: {subnet: 10.0.0.0/24}
domains:
  db:
    image: micro
    split: {cpus: 1, memory: 160MiB}
    vnets: [{vswitch: data}]
    disks:
      - {name: fast, size: 64MiB, on: ram, filesystem: ext4, mount: /data}
      - {name: theirs, on: file, path: /srv/theirs.raw}
";

#[test]
fn a_disk_in_memory_is_mended_and_somebodys_file_is_left_alone() {
    let desired = desired(KINDS);
    let host = Host::new();
    let theirs = Path::new("/srv/theirs.raw");
    assert!(host.up(&desired).is_err(), "the file is not there");
    host.hypervisor.keep_file(theirs);
    host.up(&desired).unwrap();
    host.is_up(&desired, "with the file");

    let [fast] = desired.domains[0].disks.as_slice() else {
        panic!("labrig makes one disk")
    };
    let path = fast.path.to_str().unwrap();
    assert!(path.starts_with("/dev/shm/labrig-lab-"), "{path}");
    host.hypervisor.lose_file(&fast.path);
    let titles = host.plan(&desired).titles();
    for part in [
        "stop domain db",
        "create RAM disk db-fast",
        "start domain db",
    ] {
        assert!(titles.iter().any(|t| t.starts_with(part)), "{titles:?}");
    }
    // Its removal fails if it names the file.
    host.mends_and_goes(&desired, "a lost disk in memory");

    // With another filesystem on it, it is another disk; with other options it is the same.
    let path = |text: &str| crate::host::desired(text).domains[0].disks[0].path.clone();
    assert_ne!(path(&KINDS.replace("64MiB", "65MiB")), fast.path);
    let options = KINDS.replace("/data}", "/data, mount_options: [noatime]}");
    assert_eq!(path(&options), fast.path);
}

#[test]
fn disks_in_memory_count_as_memory() {
    let desired = desired(KINDS);
    let topology = crate::host::topology(KINDS);
    let plan = Host::new().plan(&desired);
    assert_eq!(labrig::plan::ram_disks(&plan), Bytes::mib(64));
    assert!(check_ram_disks(&topology, &plan, Bytes::mib(64)).is_none());
    let note = check_ram_disks(&topology, &plan, Bytes::mib(63)).unwrap();
    assert_eq!(note.path, "domains.db.disks");
    assert!(
        note.message.contains("64 MiB needed, 63 MiB free"),
        "{note}"
    );
}
