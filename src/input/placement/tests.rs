//! What the placement of domains promises.

use super::*;
use crate::model::RegularHost;
use proptest::prelude::*;

fn host(sockets: u32, cores: u32, threads_per_core: u32, nodes: u32, mib: u64) -> HostShape {
    RegularHost {
        sockets,
        cores,
        threads_per_core,
        memory: Bytes::mib(mib),
        nodes,
        hugepages: BTreeMap::new(),
    }
    .shape()
}

fn ask(vcpus: u32, pin: &str) -> Ask {
    Ask {
        vcpus,
        memory: Bytes::mib(100),
        pin: match pin {
            "" => Pin::Anywhere,
            "auto" => Pin::Auto,
            list => Pin::List(list.parse().unwrap()),
        },
        numa: None,
        apart: false,
    }
}

fn local(ask: Ask) -> Ask {
    Ask {
        numa: Some(Numa::Local),
        ..ask
    }
}

fn on(node: u32, ask: Ask) -> Ask {
    Ask {
        numa: Some(Numa::Node(node)),
        ..ask
    }
}

fn apart(ask: Ask) -> Ask {
    Ask { apart: true, ..ask }
}

fn set(text: &str) -> CpuSet {
    text.parse().unwrap()
}

/// Pins as `0 1` or `0-3 0-3`, with `@node` and `emulator` where there are.
fn drawn(seat: &Seat) -> String {
    let mut text = seat
        .pins
        .iter()
        .map(ToString::to_string)
        .collect::<Vec<_>>()
        .join(" ");
    if let Some(node) = seat.node {
        text += &format!(" @{node}");
    }
    text
}

#[test]
fn domains_get_their_places() {
    let smt = || host(2, 4, 2, 2, 1024); // 0-7 on node 0, 8-15 on node 1
    let cases: &[(&str, HostShape, u32, Vec<Ask>, &[&str])] = &[
        ("anywhere", smt(), 0, vec![ask(2, "")], &[""]),
        (
            "one to one in the order of cores",
            smt(),
            0,
            vec![ask(4, "auto"), ask(2, "8,10")],
            &["0 1 2 3", "8 10"],
        ),
        (
            "a longer list is for all",
            smt(),
            0,
            vec![ask(2, "0-3")],
            &["0-3 0-3"],
        ),
        (
            "an odd sibling stays idle",
            smt(),
            0,
            vec![ask(3, "auto"), ask(1, "auto"), ask(2, "auto")],
            &["0 1 2", "4", "6 7"],
        ),
        (
            "lists come first",
            smt(),
            0,
            vec![ask(2, "auto"), ask(2, "0-1")],
            &["2 3", "0 1"],
        ),
        (
            "a torn core is not free",
            smt(),
            0,
            vec![ask(2, "auto"), ask(1, "0")],
            &["2 3", "0"],
        ),
        (
            "the host keeps its cores",
            smt(),
            1,
            vec![ask(2, "auto"), ask(1, "")],
            &["2 3", "2-15"],
        ),
        (
            "one node where it fits, else both",
            smt(),
            0,
            vec![ask(6, "auto"), ask(8, "auto"), ask(2, "auto")],
            &["0 1 2 3 4 5", "8 9 10 11 12 13 14 15", "6 7"],
        ),
        (
            "more than a node has",
            smt(),
            0,
            vec![ask(10, "auto")],
            &["0 1 2 3 4 5 6 7 8 9"],
        ),
        (
            "local memory",
            host(2, 2, 1, 2, 400),
            0,
            vec![
                local(ask(1, "auto")),
                local(ask(1, "auto")),
                local(ask(1, "auto")),
            ],
            &["0 @0", "1 @0", "2 @1"],
        ),
        (
            "the second node when the first has no memory left",
            host(2, 2, 1, 2, 300),
            0,
            vec![local(ask(1, "auto")), local(ask(1, "auto"))],
            &["0 @0", "2 @1"],
        ),
        (
            "a node by number",
            smt(),
            0,
            vec![on(1, ask(2, "auto"))],
            &["8 9 @1"],
        ),
        (
            "a node without pins",
            smt(),
            0,
            vec![on(1, ask(1, "")), local(ask(1, ""))],
            &["8-15 @1", "0-7 @0"],
        ),
        (
            "apart",
            host(1, 4, 1, 1, 1024),
            0,
            vec![apart(ask(1, "auto")), ask(2, ""), ask(1, "auto")],
            &["0", "1-3 1-3", "1"],
        ),
        (
            "apart keeps the sibling idle",
            smt(),
            0,
            vec![apart(ask(1, "auto")), ask(1, "")],
            &["0", "2-15"],
        ),
    ];
    for (what, shape, cores, asks, expected) in cases {
        let (seats, problems) = place(shape, &reserve(shape, *cores), asks);
        assert_eq!(problems, [], "{what}");
        assert_eq!(
            seats.iter().map(drawn).collect::<Vec<_>>(),
            *expected,
            "{what}"
        );
    }
}

#[test]
fn what_is_wrong_is_told() {
    use ProblemKind as K;
    let smt = || host(2, 2, 2, 2, 400); // 0-3 on node 0, 4-7 on node 1
    let none = None;
    let cases: Vec<(&str, u32, Vec<Ask>, usize, K)> = vec![
        ("cpu", 0, vec![ask(1, "7-9")], 0, K::NoSuchCpus(set("8-9"))),
        ("node", 0, vec![on(2, ask(1, ""))], 0, K::NoSuchNode(2)),
        (
            "node of auto",
            0,
            vec![on(2, ask(1, "auto"))],
            0,
            K::NoSuchNode(2),
        ),
        (
            "node of list",
            0,
            vec![on(9, ask(1, "1"))],
            0,
            K::NoSuchNode(9),
        ),
        (
            "cores",
            1,
            vec![ask(8, "auto")],
            0,
            K::TooFewCores {
                free: 6,
                node: none,
            },
        ),
        (
            "cores of a node",
            1,
            vec![on(0, ask(3, "auto"))],
            0,
            K::TooFewCores {
                free: 2,
                node: Some(0),
            },
        ),
        (
            "no node is large enough",
            1,
            vec![local(ask(5, "auto"))],
            0,
            K::TooFewCores {
                free: 4,
                node: Some(1),
            },
        ),
        (
            "memory of a node",
            0,
            vec![
                on(0, ask(1, "auto")),
                on(0, ask(1, "auto")),
                on(0, ask(1, "")),
            ],
            2,
            K::TooLittleMemory {
                free: Bytes::mib(0),
                node: 0,
            },
        ),
        (
            "overlap",
            0,
            vec![ask(2, "0-1"), ask(2, "1-2")],
            1,
            K::Overlap {
                other: 0,
                cpus: set("1"),
            },
        ),
        (
            "torn",
            0,
            vec![ask(2, "0,2"), ask(2, "1,3")],
            1,
            K::TornCores {
                other: 0,
                cpus: set("1,3"),
            },
        ),
        ("reserved", 1, vec![ask(2, "1-2")], 0, K::Reserved(set("1"))),
        (
            "remote",
            0,
            vec![on(0, ask(2, "3-4"))],
            0,
            K::Remote {
                cpus: set("4"),
                node: 0,
            },
        ),
        (
            "spread",
            0,
            vec![local(ask(2, "3-4"))],
            0,
            K::Spread(set("3-4")),
        ),
        ("crowded", 0, vec![ask(2, "3")], 0, K::Crowded(1)),
        (
            "nothing left",
            0,
            vec![apart(ask(8, "0-7")), ask(1, "")],
            1,
            K::NothingLeft,
        ),
    ];
    for (what, cores, asks, ask, kind) in cases {
        let shape = smt();
        let (_, problems) = place(&shape, &reserve(&shape, cores), &asks);
        assert_eq!(problems, [Problem { ask, kind }], "{what}");
    }
}

#[test]
fn qemu_itself_runs_on_the_hosts_cores_or_on_the_domains() {
    let shape = host(1, 4, 1, 1, 1024);
    for (cores, expected) in [(0, ["0", "2", ""]), (1, ["0", "0", "1-3"])] {
        let asks = [ask(1, "auto"), ask(1, "2"), ask(1, "")];
        let (seats, _) = place(&shape, &reserve(&shape, cores), &asks);
        let emulators = seats.iter().map(|seat| {
            seat.emulator
                .as_ref()
                .map_or(String::new(), ToString::to_string)
        });
        assert_eq!(emulators.collect::<Vec<_>>(), expected, "{cores}");
    }
}

fn any_host() -> impl Strategy<Value = HostShape> {
    (1..4_u32, 1..6_u32, 1..4_u32, 1..4_u32, 200..4000_u64)
        .prop_map(|(sockets, cores, threads, nodes, mib)| host(sockets, cores, threads, nodes, mib))
}

fn any_ask() -> impl Strategy<Value = Ask> {
    let numa = prop_oneof![
        Just(None),
        Just(Some(Numa::Local)),
        (0..4_u32).prop_map(|node| Some(Numa::Node(node)))
    ];
    (1..7_u32, 1..300_u64, any::<bool>(), numa, any::<bool>()).prop_map(
        |(vcpus, mib, auto, numa, apart)| Ask {
            vcpus,
            memory: Bytes::mib(mib),
            pin: if auto { Pin::Auto } else { Pin::Anywhere },
            numa,
            apart: apart && auto,
        },
    )
}

fn owned_cores(shape: &HostShape, seat: &Seat) -> Vec<u32> {
    let cpus = seat.pins.iter().flat_map(CpuSet::iter);
    let mut cores: Vec<_> = cpus.map(|cpu| shape.thread(cpu).unwrap().core).collect();
    cores.dedup();
    cores
}

proptest! {
    #[test]
    fn chosen_cores_are_whole_and_shared_with_nobody(
        shape in any_host(), cores in 0..3_u32, asks in prop::collection::vec(any_ask(), 0..8)
    ) {
        let reserved = reserve(&shape, cores);
        let (seats, problems) = place(&shape, &reserved, &asks);
        let mut taken: Vec<_> = reserved.iter().map(|cpu| shape.thread(cpu).unwrap().core).collect();
        taken.dedup();
        let mut memory: BTreeMap<u32, u64> = BTreeMap::new();
        for (index, (ask, seat)) in asks.iter().zip(&seats).enumerate() {
            let failed = problems.iter().any(|problem| problem.ask == index);
            if ask.pin == Pin::Auto {
                prop_assert_eq!(seat.owns_cores, !failed);
            }
            if let Some(node) = seat.node {
                *memory.entry(node).or_default() += ask.memory.0;
                let cpus: CpuSet = seat.pins.iter().flat_map(CpuSet::iter).collect();
                prop_assert!(cpus.difference(&shape.cpus_of(node)).is_empty());
            }
            if seat.owns_cores {
                prop_assert_eq!(seat.pins.len(), ask.vcpus as usize);
                prop_assert!(seat.pins.iter().all(|pin| pin.len() == 1));
                for core in owned_cores(&shape, seat) {
                    prop_assert!(!taken.contains(&core), "core {} twice", core);
                    taken.push(core);
                }
            }
        }
        for (node, taken) in memory {
            prop_assert!(taken <= shape.node(node).unwrap().memory.0);
        }
        // What is said to be short is short.
        for problem in &problems {
            if let ProblemKind::TooFewCores { free, .. } = problem.kind {
                prop_assert!(free < asks[problem.ask].vcpus as usize);
            }
        }
    }

    #[test]
    fn a_domain_at_the_end_moves_no_other(
        shape in any_host(), cores in 0..3_u32, asks in prop::collection::vec(any_ask(), 1..8)
    ) {
        let reserved = reserve(&shape, cores);
        let (all, _) = place(&shape, &reserved, &asks);
        let (fewer, _) = place(&shape, &reserved, &asks[..asks.len() - 1]);
        for (ask, (seat, before)) in asks.iter().zip(all.iter().zip(&fewer)) {
            if ask.pin == Pin::Auto {
                prop_assert_eq!(seat, before);
            }
            prop_assert_eq!(seat.node, before.node);
        }
    }
}
