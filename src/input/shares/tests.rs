//! What topologies say of splits, hosts and machines, right and wrong.

use crate::diag::{Note, Notes, Severity};
use crate::input::{Loaded, Options, load_topology};
use crate::model::{Bytes, DomainKind, HostShape, RegularHost, Topology};

/// Two sockets of four cores with two threads, two nodes, 16 GiB, 1000 huge pages.
const HOST: &str =
    "{sockets: 2, cores: 4, threads_per_core: 2, memory: 16GiB, numa: 2, hugepages: {2MiB: 1000}}";

/// A topology with these lines of domains; each gets an image and a vnet.
fn text(host: &str, domains: &str) -> String {
    let host = match host {
        "" => String::new(),
        host => format!("host: {host}\n"),
    };
    format!(
        "version: 1\nname: t\n{host}images: {{m: {{build: {{micro: {{}}}}}}}}\n\
         vswitches: {{d: {{subnet: 10.0.0.0/24}}}}\n\
         defaults: {{image: m, vnets: [{{vswitch: d}}]}}\ndomains:\n{domains}"
    )
}

fn load(text: &str, host: Option<HostShape>) -> Result<Loaded<Topology>, Notes> {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("t.yaml");
    std::fs::write(&file, text).unwrap();
    let options = Options {
        host,
        ..Options::default()
    };
    load_topology(&file, &options)
}

#[track_caller]
fn good(host: &str, domains: &str) -> Topology {
    match load(&text(host, domains), None) {
        Ok(loaded) => {
            assert_eq!(loaded.warnings.0, [], "{domains}");
            loaded.value
        }
        Err(notes) => panic!("{domains}: {notes:#?}"),
    }
}

/// All notes, good or bad.
fn notes(host: &str, domains: &str) -> Vec<Note> {
    match load(&text(host, domains), None) {
        Ok(loaded) => loaded.warnings.0,
        Err(notes) => notes.0,
    }
}

#[test]
fn shares_of_a_described_host() {
    let cases = [
        ("{cpus: 4, memory: 1GiB}", 4, 1024, ""),
        ("{cpus: 1/4, memory: 25%}", 4, 4096, ""),
        ("{cpus: 30%, memory: 1/3}", 4, 5461, ""),
        ("{cores: 2, threads_per_core: 2, memory: 1GiB}", 4, 1024, ""),
        ("{cpus: 2, memory: 1GiB, pin: auto}", 2, 1024, "0 1"),
        ("{cpus: 2, memory: 1GiB, pin: \"8,10\"}", 2, 1024, "8 10"),
        ("{cpus: 2, memory: 1GiB, pin: 8-11}", 2, 1024, "8-11 8-11"),
        (
            "{cpus: 2, memory: 1GiB, pin: auto, numa: 1}",
            2,
            1024,
            "8 9",
        ),
        ("{cpus: 1, memory: 1GiB, numa: 0}", 1, 1024, "0-7"),
        ("{cpus: 1, memory: 1GiB, pin: 3}", 1, 1024, "3"),
    ];
    for (split, vcpus, mib, pins) in cases {
        let topology = good(HOST, &format!("  a: {{split: {split}}}\n"));
        let split_of = topology.domains[0].split.as_ref().unwrap();
        let drawn: Vec<_> = split_of.pins.iter().map(ToString::to_string).collect();
        assert_eq!(
            (split_of.vcpus, split_of.memory, drawn.join(" ").as_str()),
            (vcpus, Bytes::mib(mib), pins),
            "{split}"
        );
    }
}

#[test]
fn everything_of_a_split_arrives() {
    let split = "{cpus: 2, memory: 512MiB, pin: auto, numa: local, hugepages: 2MiB, emulator: 6-7, \
                 io_threads: 2, shares: 512, quota: 150%, memory_limit: 2GiB, apart: true}";
    let topology = good(HOST, &format!("  a: {{split: {split}}}\n"));
    insta::assert_snapshot!(serde_json::to_string_pretty(&topology.domains[0].split).unwrap());
}

#[test]
fn parts_are_of_the_measured_host_where_none_is_described() {
    let host = RegularHost {
        sockets: 1,
        cores: 8,
        threads_per_core: 1,
        memory: Bytes::mib(4096),
        nodes: 1,
        hugepages: Default::default(),
    };
    let domains = "  a: {split: {cpus: 1/4, memory: 1/4, pin: auto}}\n";
    let loaded = load(&text("{reserve: 2}", domains), Some(host.shape()));
    let Ok(Loaded { value, .. }) = loaded else {
        panic!("it is good");
    };
    let split = value.domains[0].split.as_ref().unwrap();
    assert_eq!((split.vcpus, split.memory), (2, Bytes::mib(1024)));
    assert_eq!(split.cpus().to_string(), "2-3");
    assert_eq!(value.host.reserve.to_string(), "0-1");
    assert!(value.host.described.is_none());
}

#[test]
fn members_of_a_group_get_cores_of_their_own() {
    let domains = "  a: {count: 3, split: {cpus: 2, memory: 1GiB, pin: auto}}\n  \
                   b: {count: 2, split: {cpus: 1, memory: 1GiB, pin: \"{{ 6 + index * 2 }}\"}}\n";
    let topology = good(HOST, &domains);
    let cpus = topology.domains.iter().map(|domain| {
        let split = domain.split.as_ref().unwrap();
        split.cpus().to_string()
    });
    assert_eq!(cpus.collect::<Vec<_>>(), ["0-1", "2-3", "4-5", "8", "10"]);
}

#[test]
fn machines() {
    let machine = "{type: pc-q35-7.2, firmware: uefi, tpm: true, cpu: {model: EPYC, cores: 2, threads: 2}, \
                   xml: <domain><vcpu current='1'>4</vcpu></domain>}";
    let topology = good(
        HOST,
        &format!("  a: {{split: {{cpus: 4, memory: 1GiB}}, machine: {machine}}}\n"),
    );
    let DomainKind::Vm(guest) = &topology.domains[0].kind else {
        panic!("a is a virtual machine");
    };
    insta::assert_snapshot!(serde_json::to_string_pretty(&guest.machine).unwrap());
    // Cores of a split are the guest's cores, unless it says otherwise.
    let topology = good(
        HOST,
        "  a: {split: {cores: 2, threads_per_core: 4, memory: 1GiB}}\n",
    );
    let DomainKind::Vm(guest) = &topology.domains[0].kind else {
        panic!("a is a virtual machine");
    };
    let cpus = guest.machine.cpu.topology.unwrap();
    assert_eq!((cpus.sockets, cpus.cores, cpus.threads), (1, 2, 4));
}

/// A mistake: the host, the domains, what is said, and the place it is said of.
struct Wrong(&'static str, &'static str, &'static str, &'static str);

const WRONG: &[Wrong] = &[
    Wrong(
        HOST,
        "  a: {split: {memory: 1GiB}}\n",
        "\"cpus\" is missing",
        "8:7",
    ),
    Wrong(
        HOST,
        "  a: {split: {cpus: 1, cores: 1, memory: 1GiB}}\n",
        "exclude each other",
        "8:24",
    ),
    Wrong(
        HOST,
        "  a: {split: {cpus: 1, threads_per_core: 2, memory: 1GiB}}\n",
        "threads of cores that are not given",
        "8:42",
    ),
    Wrong(
        HOST,
        "  a: {split: {cpus: 1/0, memory: 1GiB}}\n",
        "no part of anything",
        "8:21",
    ),
    Wrong(
        HOST,
        "  a: {split: {cpus: 3/2, memory: 1GiB}}\n",
        "more than all the host has",
        "8:21",
    ),
    Wrong(
        HOST,
        "  a: {split: {cpus: half, memory: 1GiB}}\n",
        "is no part",
        "8:21",
    ),
    Wrong(
        HOST,
        "  a: {split: {cpus: 1/32, memory: 1GiB}}\n",
        "1/32 of the host's 16 threads are 0",
        "8:21",
    ),
    Wrong(
        HOST,
        "  a: {split: {cpus: 1, memory: 1/1000}}\n",
        "1/1000 of the host's memory is 16MiB: too small",
        "8:32",
    ),
    Wrong(
        HOST,
        "  a: {split: {cpus: 1, memory: 120%}}\n",
        "more than all the host has",
        "8:32",
    ),
    Wrong(
        HOST,
        "  a: {split: {cores: 1000, threads_per_core: 64, memory: 1GiB}}\n",
        "64000 vcpus",
        "8:22",
    ),
    Wrong(
        HOST,
        "  a: {split: {cpus: 1, memory: 1GiB, pin: all}}\n",
        "is no list of CPUs",
        "8:43",
    ),
    Wrong(
        HOST,
        "  a: {split: {cpus: 1, memory: 1GiB, pin: 3-1}}\n",
        "ends before it begins",
        "8:43",
    ),
    Wrong(
        HOST,
        "  a: {split: {cpus: 4, memory: 1GiB, pin: 14-17}}\n",
        "the host has no CPU 16-17",
        "8:43",
    ),
    Wrong(
        HOST,
        "  a: {split: {cpus: 1, memory: 1GiB, numa: 2}}\n",
        "the host has no NUMA node 2",
        "8:44",
    ),
    Wrong(
        HOST,
        "  a: {split: {cpus: 1, memory: 1GiB, numa: near}}\n",
        "\"near\" is not known here",
        "8:44",
    ),
    Wrong(
        HOST,
        "  a: {split: {cpus: 2, memory: 1GiB, pin: 7-8, numa: local}}\n",
        "on several NUMA nodes",
        "8:43",
    ),
    Wrong(
        HOST,
        "  a: {split: {cpus: 17, memory: 1GiB, pin: auto}}\n",
        "those that are free have 16 threads",
        "8:44",
    ),
    Wrong(
        HOST,
        "  a: {count: 9, split: {cpus: 1, memory: 1GiB, pin: auto}}\n",
        "domain a9 needs whole cores for 1 vcpus; those that are free have 0",
        "8:53",
    ),
    Wrong(
        HOST,
        "  a: {split: {cpus: 9, memory: 1GiB, pin: auto, numa: local}}\n",
        "that are free on node 1 have 8 threads",
        "8:43",
    ),
    Wrong(
        HOST,
        "  a: {split: {cpus: 1, memory: 9GiB, pin: auto, numa: local}}\n",
        "takes 9408 MiB with QEMU's own, node 0 has 8192 MiB",
        "8:55",
    ),
    Wrong(
        HOST,
        "  a: {count: 2, split: {cpus: 1, memory: 1GiB, pin: 3}}\n",
        "CPU 3 cannot be given to a1 and to a2",
        "8:53",
    ),
    Wrong(
        HOST,
        "  a: {split: {cpus: 1, memory: 1GiB, apart: true}}\n",
        "cannot be kept apart",
        "8:45",
    ),
    Wrong(
        HOST,
        "  a: {split: {cpus: 1, memory: 1GiB, hugepages: 3MiB}}\n",
        "there are no huge pages of 3MiB",
        "8:49",
    ),
    Wrong(
        HOST,
        "  a: {split: {cpus: 1, memory: 1GiB, hugepages: 1024KiB}}\n",
        "the host has no huge pages of 1MiB",
        "8:49",
    ),
    Wrong(
        HOST,
        "  a: {split: {cpus: 1, memory: 1GiB, hugepages: 1GiB}}\n",
        "the host has no huge pages of 1GiB",
        "8:49",
    ),
    Wrong(
        HOST,
        "  a: {split: {cpus: 1, memory: 33MiB, hugepages: 2MiB}}\n",
        "33MiB is no multiple of 2MiB",
        "8:50",
    ),
    Wrong(
        HOST,
        "  a: {split: {cpus: 1, memory: 2GiB, hugepages: 2MiB}}\n",
        "makes it 1024 huge pages of 2MiB, the host has 1000",
        "8:49",
    ),
    Wrong(
        HOST,
        "  a: {split: {cpus: 1, memory: 1002MiB, hugepages: 2MiB, numa: 1}}\n",
        "makes it 501 huge pages of 2MiB, node 1 has 500",
        "8:52",
    ),
    Wrong(
        HOST,
        "  a: {split: {cpus: 1, memory: 1GiB, emulator: 15-16}}\n",
        "the host has no CPU 16",
        "8:48",
    ),
    Wrong(
        HOST,
        "  a: {split: {cpus: 1, memory: 1GiB, io_threads: 0}}\n",
        "0 is not a whole number",
        "8:50",
    ),
    Wrong(
        HOST,
        "  a: {split: {cpus: 1, memory: 1GiB, shares: 1}}\n",
        "1 is not a whole number",
        "8:46",
    ),
    Wrong(
        HOST,
        "  a: {split: {cpus: 1, memory: 1GiB, quota: 50}}\n",
        "a text is wanted here",
        "8:45",
    ),
    Wrong(
        HOST,
        "  a: {split: {cpus: 1, memory: 1GiB, quota: 0%}}\n",
        "is no quota",
        "8:45",
    ),
    Wrong(
        HOST,
        "  a: {split: {cpus: 1, memory: 1GiB, memory_limit: 1GiB}}\n",
        "a limit of 1GiB ends the domain",
        "8:52",
    ),
    Wrong(
        HOST,
        "  a: {split: {cpus: 1, memory: 16GiB}}\n",
        "the domains take 16576 MiB together",
        "8:32",
    ),
    Wrong(
        "",
        "  a: {split: {cpus: 1/4, memory: 1GiB}}\n",
        "depends on the host, which is not known",
        "7:21",
    ),
    Wrong(
        "",
        "  a: {split: {cpus: 1, memory: 1GiB, pin: auto}}\n",
        "depends on the host, which is not known",
        "7:43",
    ),
    Wrong(
        "{threads: 4}",
        "  a: {split: {cpus: 1, memory: 1GiB}}\n",
        "\"memory\" is missing",
        "3:1",
    ),
    Wrong(
        "{memory: 4GiB}",
        "  a: {split: {cpus: 1, memory: 1GiB}}\n",
        "\"threads\" is missing",
        "3:1",
    ),
    Wrong(
        "{threads: 4, cores: 4, memory: 4GiB}",
        "  a: {split: {cpus: 1, memory: 1GiB}}\n",
        "exclude each other",
        "3:20",
    ),
    Wrong(
        "{cores: 8192, sockets: 2, memory: 4GiB}",
        "  a: {split: {cpus: 1, memory: 1GiB}}\n",
        "16384 threads are more than Linux can number",
        "3:1",
    ),
    Wrong(
        "{cores: 2, numa: 3, memory: 4GiB}",
        "  a: {split: {cpus: 1, memory: 1GiB}}\n",
        "3 nodes for 2 cores",
        "3:24",
    ),
    Wrong(
        "{threads: 2, memory: 4GiB, hugepages: {1GiB: 5}}",
        "  a: {split: {cpus: 1, memory: 1GiB}}\n",
        "more than the host's memory",
        "3:34",
    ),
    Wrong(
        "{threads: 2, memory: 4GiB, hugepages: {3MiB: 5}}",
        "  a: {split: {cpus: 1, memory: 1GiB}}\n",
        "there are no huge pages of 3MiB",
        "3:52",
    ),
    Wrong(
        "{threads: 2, memory: 4GiB, reserve: 2}",
        "  a: {split: {cpus: 1, memory: 1GiB}}\n",
        "2 cores of 2 are kept for the host",
        "3:43",
    ),
    Wrong(
        HOST,
        "  a: {split: {cpus: 4, memory: 1GiB}, machine: {cpu: {cores: 3}}}\n",
        "1 x 3 x 1 are 3 vcpus, the domain has 4",
        "8:62",
    ),
    Wrong(
        HOST,
        "  a: {split: {cpus: 1, memory: 1GiB}, machine: {firmware: efi}}\n",
        "\"efi\" is not known here",
        "8:59",
    ),
    Wrong(
        HOST,
        "  a: {split: {cpus: 1, memory: 1GiB}, machine: {type: q35 -x}}\n",
        "is not allowed here",
        "8:55",
    ),
    Wrong(
        HOST,
        "  a: {split: {cpus: 1, memory: 1GiB}, machine: {tpm: 2}}\n",
        "true or false is wanted",
        "8:54",
    ),
    Wrong(
        HOST,
        "  a: {split: {cpus: 1, memory: 1GiB}, machine: {xml: <domain><a></domain>}}\n",
        "no libvirt XML that can be merged: line 1 of it, column 12",
        "8:54",
    ),
    Wrong(
        HOST,
        "  a: {split: {cpus: 1, memory: 1GiB}, machine: {xml: <domain><name>x</name></domain>}}\n",
        "<name> cannot be changed",
        "8:54",
    ),
];

#[test]
fn one_mistake_is_told_once_with_its_place() {
    let mut unexpected = Vec::new();
    for Wrong(host, domains, message, place) in WRONG {
        let found = notes(host, domains);
        let errors: Vec<_> = found
            .iter()
            .filter(|note| note.severity == Severity::Error)
            .map(|note| {
                let at = note.place.as_ref().unwrap();
                format!("{}:{} {}", at.line, at.column, note.message)
            })
            .collect();
        let is_it = |error: &String| error.starts_with(place) && error.contains(message);
        if errors.len() != 1 || !is_it(&errors[0]) {
            unexpected.push(format!("{domains}    {place} {message}\n -> {errors:#?}"));
        }
    }
    assert!(unexpected.is_empty(), "{}", unexpected.join("\n"));
}

#[test]
fn what_shows_in_measurements_is_a_warning_with_both_places() {
    let cases: &[(&str, &str, &str, &str, usize)] = &[
        (
            HOST,
            "  a: {split: {cpus: 2, memory: 1GiB, pin: 0-1}}\n  b: {split: {cpus: 2, memory: 1GiB, pin: 1-2}}\n",
            "CPU 1 is pinned to domain a as well",
            "9:43",
            1,
        ),
        (
            HOST,
            "  a: {split: {cpus: 1, memory: 1GiB, pin: 0}}\n  b: {split: {cpus: 1, memory: 1GiB, pin: 1}}\n",
            "CPU 1 shares its core with domain a",
            "9:43",
            1,
        ),
        (
            HOST,
            "  a: {split: {cpus: 2, memory: 1GiB, pin: 7-8, numa: 0}}\n",
            "CPU 8 is not on NUMA node 0",
            "8:43",
            1,
        ),
        (
            HOST,
            "  a: {split: {cpus: 2, memory: 1GiB, pin: 3}}\n",
            "2 vcpus take turns on 1 CPUs",
            "8:43",
            0,
        ),
        (
            "{threads: 4, memory: 4GiB, reserve: 1}",
            "  a: {split: {cpus: 1, memory: 1GiB, pin: 0}}\n",
            "CPU 0 is kept for the host",
            "8:43",
            1,
        ),
        (
            "{threads: 4, memory: 4GiB, reserve: 1}",
            "  a: {split: {cpus: 4, memory: 1GiB}}\n",
            "the domains have 4 vcpus together, the host has 3 threads",
            "8:21",
            1,
        ),
    ];
    for (host, domains, message, place, labels) in cases {
        let found = notes(host, domains);
        assert_eq!(found.len(), 1, "{domains}: {found:#?}");
        let note = &found[0];
        assert_eq!(note.severity, Severity::Warning, "{domains}");
        assert!(note.message.contains(message), "{domains}: {note:?}");
        let at = note.place.as_ref().unwrap();
        assert_eq!(format!("{}:{}", at.line, at.column), *place, "{domains}");
        assert_eq!(note.labels.len(), *labels, "{domains}: {note:?}");
    }
}
