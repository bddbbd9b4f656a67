//! What has to come before what.

use std::collections::BTreeMap;

use crate::host::{Host, LAB, Titles, desired};
use labrig::model::{Acceleration, Bytes, HostFacts, HostShape, RegularHost};
use labrig::plan::{Plan, check_budget};

/// Whether the action titled `first` is sure to be done before `then` is begun.
fn is_before(plan: &Plan, first: &str, then: &str) -> bool {
    let find = |title: &str| {
        let titles = plan.titles();
        let found = titles.iter().position(|t| t.starts_with(title));
        found.unwrap_or_else(|| panic!("no {title} in {titles:#?}"))
    };
    plan.before(find(then)).contains(&find(first))
}

#[test]
fn nothing_waits_for_what_it_does_not_need() {
    let plan = Host::new().plan(&desired(LAB));
    for (first, then) in [
        ("provide image deb", "define domain db"),
        ("start network labrig-lab.data", "define domain db"),
        ("create disk db-root", "define domain db"),
        ("provide image deb", "create disk db-log"),
        ("provide image deb", "write seed db"),
        ("provide image deb", "start domain probe"),
        ("start network labrig-lab.data", "start domain probe"),
        ("await domain db", "start domain web1"),
    ] {
        assert!(!is_before(&plan, first, then), "{then} waits for {first}");
    }
    for (first, then) in [
        ("provide image deb", "create disk db-root"),
        ("provide image micro", "start domain probe"),
        ("start network labrig-lab.front", "start domain web1"),
        ("start network labrig-lab.data", "start domain web1"),
        ("create disk db-log", "start domain db"),
        ("write seed db", "start domain db"),
        ("define domain db", "start domain db"),
        ("start domain db", "await domain db"),
    ] {
        assert!(
            is_before(&plan, first, then),
            "{then} does not wait for {first}"
        );
    }
}

#[test]
fn nothing_is_changed_under_a_running_domain() {
    let host = Host::with(&desired(LAB));
    let changed = LAB
        .replace("mtu: 1400", "mtu: 1300")
        .replace("size: 1GiB", "size: 2GiB")
        .replace("ip: 10.0.0.10", "ip: 10.0.0.11")
        .replace("mariadb", "mysql");
    let plan = host.plan(&desired(&changed));
    for (first, then) in [
        // A lab that cannot be changed is left as it is.
        ("provide image deb", "stop domain db"),
        ("stop domain db", "define domain db"),
        ("stop domain db", "create disk db-log"),
        ("stop domain db", "write seed db"),
        ("stop domain probe", "remove network labrig-lab.front"),
        ("stop domain web1", "remove network labrig-lab.front"),
        (
            "remove network labrig-lab.front",
            "define network labrig-lab.front",
        ),
        ("start network labrig-lab.front", "start domain probe"),
        // A change that fails has not cost the old disk.
        ("define domain db", "remove file db-log"),
        ("stop domain db", "remove file db-log"),
    ] {
        assert!(
            is_before(&plan, first, then),
            "{then} does not wait for {first}"
        );
    }
    assert!(!is_before(
        &plan,
        "stop domain db",
        "remove network labrig-lab.front"
    ));
}

#[test]
fn an_address_is_free_before_another_takes_it() {
    let host = Host::with(&desired(LAB));
    let renamed = host.plan(&desired(&LAB.replace("  db:", "  base:")));
    assert!(is_before(
        &renamed,
        "stop domain labrig-lab.db",
        "release 10.0.0.10"
    ));
    assert!(is_before(
        &renamed,
        "release 10.0.0.10",
        "reserve 10.0.0.10"
    ));
    assert!(is_before(
        &renamed,
        "reserve 10.0.0.10",
        "start domain base"
    ));
    let switch = host.plan(&desired(&LAB.replace("data", "store")));
    assert!(is_before(
        &switch,
        "remove network labrig-lab.data",
        "start network labrig-lab.store"
    ));
}

/// A host of two nodes with 1000 huge pages.
fn shape() -> HostShape {
    RegularHost {
        sockets: 2,
        cores: 4,
        threads_per_core: 1,
        memory: Bytes::mib(4096),
        nodes: 2,
        hugepages: BTreeMap::from([(Bytes::mib(2), 1000)]),
    }
    .shape()
}

#[test]
fn huge_pages_are_counted_where_they_are() {
    let facts = HostFacts {
        acceleration: Acceleration::Emulation,
        cpu_model: String::new(),
        threads: 8,
        memory: Bytes::mib(4096),
        // Nothing but what QEMU itself takes is ordinary memory.
        memory_free: Bytes::mib(4 * 192),
        kernel: String::new(),
        libvirt: String::new(),
        qemu: String::new(),
        machines: BTreeMap::new(),
    };
    // 512 + 3 * 160 MiB are 496 pages.
    for (what, node, free, fits) in [
        ("all are free", None, 500, true),
        ("as many as are needed", None, 248, true),
        ("one is missing", None, 247, false),
        ("on one node", Some(1), 496, true),
        ("one is missing on that node", Some(1), 495, false),
    ] {
        let mut topology = crate::host::topology(LAB);
        for domain in &mut topology.domains {
            let split = domain.split.as_mut().unwrap();
            split.hugepages = Some(Bytes::mib(2));
            split.node = node;
        }
        let mut shape = shape();
        for node in &mut shape.nodes {
            node.hugepages.get_mut(&Bytes::mib(2)).unwrap().free = free;
        }
        let desired = crate::host::desired_of(&topology);
        let host = Host::new();
        let check = |host: &Host, shape: &HostShape| {
            let observed = host.observe(&desired);
            let plan = labrig::plan::plan(&desired, &observed);
            check_budget(&topology, &desired, &observed, &plan, &facts, shape)
        };
        let notes = check(&host, &shape);
        assert_eq!(notes.is_empty(), fits, "{what}: {notes:?}");
        for note in notes {
            assert_eq!(note.path, "domains.db.split.hugepages");
        }
        // What runs has its pages.
        host.up(&desired).unwrap();
        for node in &mut shape.nodes {
            node.hugepages.get_mut(&Bytes::mib(2)).unwrap().free = 0;
        }
        assert_eq!(check(&host, &shape), [], "{what}");
        host.hypervisor
            .displace("labrig-lab.db", |p| p.memory = Bytes::mib(1));
        assert_eq!(check(&host, &shape), [], "{what}, one is started again");
    }
}

#[test]
fn memory_is_counted_as_it_is_and_as_it_will_be() {
    let free = |mib| HostFacts {
        acceleration: Acceleration::Emulation,
        cpu_model: String::new(),
        threads: 8,
        memory: Bytes::mib(4096),
        memory_free: Bytes::mib(mib),
        kernel: String::new(),
        libvirt: String::new(),
        qemu: String::new(),
        machines: BTreeMap::new(),
    };
    // 512 + 3 * 160 MiB of guests, 4 * 192 MiB of QEMU.
    let needed = 512 + 3 * 160 + 4 * 192;
    let host = Host::with(&desired(LAB));
    let larger = LAB.replace("512MiB", "1GiB");
    let renamed = larger.replace("  db:", "  base:");
    for (what, host, text, free_mib, fits) in [
        ("a new lab that fits", &Host::new(), LAB, needed, true),
        (
            "a new lab that does not",
            &Host::new(),
            LAB,
            needed - 1,
            false,
        ),
        ("an unchanged lab", &host, LAB, 0, true),
        ("512 MiB more", &host, larger.as_str(), 512, true),
        (
            "512 MiB more than is free",
            &host,
            larger.as_str(),
            511,
            false,
        ),
        (
            "another one in its place",
            &host,
            renamed.as_str(),
            512,
            true,
        ),
        (
            "another one in its place, too large",
            &host,
            renamed.as_str(),
            511,
            false,
        ),
    ] {
        let topology = crate::host::topology(text);
        let desired = crate::host::desired_of(&topology);
        let observed = host.observe(&desired);
        let plan = labrig::plan::plan(&desired, &observed);
        let notes = check_budget(
            &topology,
            &desired,
            &observed,
            &plan,
            &free(free_mib),
            &shape(),
        );
        assert_eq!(notes.is_empty(), fits, "{what}: {notes:?}");
    }
}

#[test]
fn no_more_memory_than_the_host_has() {
    let host = Host::with(&desired(LAB));
    let text = LAB.replace("512MiB", "1GiB");
    let topology = crate::host::topology(&text);
    let desired = crate::host::desired_of(&topology);
    let observed = host.observe(&desired);
    let plan = labrig::plan::plan(&desired, &observed);
    // The guest has touched nothing of its memory yet: what it would free is free already.
    let facts = HostFacts {
        acceleration: Acceleration::Emulation,
        cpu_model: String::new(),
        threads: 8,
        memory: Bytes::mib(1024),
        memory_free: Bytes::mib(1000),
        kernel: String::new(),
        libvirt: String::new(),
        qemu: String::new(),
        machines: BTreeMap::new(),
    };
    let notes = check_budget(&topology, &desired, &observed, &plan, &facts, &shape());
    assert_eq!(notes.len(), 1, "{notes:?}");
    assert_eq!(notes[0].path, "domains.db.split.memory");
}
