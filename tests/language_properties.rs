//! However a lab is said, it is the same lab: written out, or by defaults, groups, variables,
//! expressions and included files.

#![allow(clippy::unwrap_used, reason = "a test may fail")]

use std::collections::{BTreeMap, HashSet};
use std::fmt::Write as _;

use labrig::input::{self, Options};
use labrig::model::Topology;
use proptest::prelude::*;

const HEAD: &str = "version: 1\nname: lab\n";
const PARTS: &str = "images: {micro: {build: {micro: {}}}}\n\
    vswitches: {a: {subnet: 10.0.0.0/25}, b: {subnet: 10.0.1.0/25}}\n";

/// Domains by name: how many there are, of which size in MiB, and whether they are on the second
/// vswitch too.
type Groups = BTreeMap<String, (u32, u64, bool)>;

fn groups() -> impl Strategy<Value = Groups> {
    // Names without digits at the end, so that no expanded name meets another.
    let group = (1..6_u32, 32..512_u64, any::<bool>());
    prop::collection::btree_map("[a-z]{1,6}x", group, 1..10)
}

/// The lab with every key in its place.
fn written_out(groups: &Groups) -> String {
    let mut text = format!("{HEAD}{PARTS}domains:\n");
    for (name, (count, memory, both)) in groups {
        let second = if *both { ", {vswitch: b}" } else { "" };
        writeln!(
            text,
            "  {name}: {{count: {count}, image: micro, split: {{cpus: 1, memory: {memory}MiB}}, \
             vnets: [{{vswitch: a}}{second}]}}"
        )
        .unwrap();
    }
    text
}

/// The same lab in other words, over an included file with [`PARTS`].
fn put_together(groups: &Groups) -> String {
    let sizes: HashSet<u64> = groups.values().map(|(_, memory, _)| *memory).collect();
    let mut text = format!("include: [parts.yaml]\n{HEAD}vars:\n  first: a\n");
    for (name, (count, ..)) in groups {
        writeln!(text, "  n_{name}: {count}").unwrap();
    }
    text.push_str(
        "defaults: {split: {cpus: \"{{ count - count + 1 }}\", memory: 9999GiB}, boot_timeout: 1m}\n\
         groups:\n  one: {vnets: [{vswitch: \"{{ vars.first }}\"}]}\n  \
         both: {vnets: [{vswitch: a}, {vswitch: \"{% if name %}b{% endif %}\"}]}\n",
    );
    for size in sizes {
        writeln!(
            text,
            "  m{size}: {{split: {{memory: \"{{{{ {size} }}}}MiB\"}}}}"
        )
        .unwrap();
    }
    text.push_str("domains:\n");
    for (name, (_, memory, both)) in groups {
        let on = if *both { "both" } else { "one" };
        writeln!(
            text,
            "  {name}: {{groups: [one, {on}, m{memory}], count: \"{{{{ vars.n_{name} }}}}\", \
             image: micro, boot_timeout: ~}}"
        )
        .unwrap();
    }
    text
}

fn load(text: &str) -> Topology {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("t.yaml");
    std::fs::write(&file, text).unwrap();
    std::fs::write(directory.path().join("parts.yaml"), PARTS).unwrap();
    let loaded = input::load_topology(&file, &Options::default());
    loaded
        .unwrap_or_else(|notes| panic!("{notes}\n{text}"))
        .value
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_lab_is_the_same_however_it_is_said(groups in groups()) {
        let (plain, other) = (load(&written_out(&groups)), load(&put_together(&groups)));
        prop_assert_eq!(&plain.domains, &other.domains);
        prop_assert_eq!(&plain.vswitches, &other.vswitches);
        prop_assert_eq!(&plain.images, &other.images);
        let names: HashSet<_> = other.domains.iter().map(|d| &d.name).collect();
        prop_assert_eq!(names.len(), other.domains.len());
    }
}
