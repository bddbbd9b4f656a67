//! What holds for every lab, tried on many made-up ones.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use labrig::plan::Plan;
use proptest::prelude::*;

use crate::host::{Host, Titles, desired};

/// A group of domains: how many, which image, memory, disks beside the root, on which vswitches.
type Group = (u32, bool, u64, u32, [bool; 3]);
type Groups = BTreeMap<String, Group>;

const VSWITCHES: [&str; 3] = ["a", "b", "c"];

fn group() -> impl Strategy<Value = Group> {
    let vswitches = any::<[bool; 3]>().prop_filter("no vnet", |on| on.contains(&true));
    (1..4_u32, any::<bool>(), 64..256_u64, 0..3_u32, vswitches)
}

fn groups() -> impl Strategy<Value = Groups> {
    // Names without digits at the end, so that no expanded name meets another.
    prop::collection::btree_map("[a-d]x", group(), 1..5)
}

fn text(groups: &Groups) -> String {
    let mut text = "version: 1\nname: lab\nimages:\n  micro: {build: {micro: {}}}\n  \
        deb: {build: {suite: bookworm, packages: [], size: 2GiB}}\nvswitches:\n"
        .to_owned();
    for (i, vswitch) in VSWITCHES.iter().enumerate() {
        writeln!(text, "  {vswitch}: {{subnet: 10.0.{i}.0/24}}").unwrap();
    }
    text.push_str("domains:\n");
    for (name, (count, is_debian, memory, disks, on)) in groups {
        let image = if *is_debian { "deb" } else { "micro" };
        let root = is_debian.then(|| "{name: root}".to_owned());
        let disks: Vec<_> = root
            .into_iter()
            .chain((0..*disks).map(|i| format!("{{name: d{i}, size: 1GiB}}")))
            .collect();
        let on = VSWITCHES.iter().zip(on).filter(|(_, on)| **on);
        let vnets: Vec<_> = on.map(|(name, _)| format!("{{vswitch: {name}}}")).collect();
        writeln!(
            text,
            "  {name}: {{count: {count}, image: {image}, split: {{cpus: 1, memory: {memory}MiB}}, \
             disks: [{}], vnets: [{}]}}",
            disks.join(", "),
            vnets.join(", ")
        )
        .unwrap();
    }
    text
}

/// Part of a plan that may have been done when it was cut off: each choice is the next action out of
/// those that could be begun.
fn part(plan: &Plan, choices: &[prop::sample::Index]) -> Plan {
    let mut order: Vec<usize> = Vec::new();
    for choice in choices.iter().take(plan.actions.len()) {
        let could: Vec<_> = (0..plan.actions.len())
            .filter(|i| !order.contains(i))
            .filter(|&i| {
                plan.actions[i]
                    .after
                    .iter()
                    .all(|before| order.contains(before))
            })
            .collect();
        order.push(could[choice.index(could.len())]);
    }
    plan.ordered(&order)
}

fn json(plan: &Plan) -> String {
    serde_json::to_string(plan).unwrap()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_plan_is_repeatable_ordered_and_enough(groups in groups()) {
        let wanted = desired(&text(&groups));
        let host = Host::new();
        let plan = host.plan(&wanted);
        prop_assert_eq!(json(&plan), json(&host.plan(&desired(&text(&groups)))));
        for (i, action) in plan.actions.iter().enumerate() {
            prop_assert!(action.after.iter().all(|&before| before < i), "{}", action.title());
        }
        host.apply(plan).unwrap();
        host.is_up(&wanted, "made up");
    }

    #[test]
    fn one_changed_domain_is_all_that_is_touched(groups in groups(), which in any::<prop::sample::Index>()) {
        let name = which.get(&groups.keys().cloned().collect::<Vec<_>>()).clone();
        let mut changed = groups.clone();
        changed.get_mut(&name).unwrap().2 += 1;
        let wanted = desired(&text(&changed));
        let plan = Host::with(&desired(&text(&groups))).plan(&wanted);
        prop_assert!(!plan.is_empty());
        for action in &plan.actions {
            let domain = action.domain.as_ref().map(|domain| domain.trim_end_matches(char::is_numeric));
            prop_assert_eq!(domain, Some(name.as_str()), "{}", action.title());
        }
    }

    #[test]
    fn from_any_lab_to_any_other_cut_off_anywhere(
        before in groups(),
        after in groups(),
        choices in prop::collection::vec(any::<prop::sample::Index>(), 0..60),
    ) {
        let wanted = desired(&text(&after));
        let host = Host::with(&desired(&text(&before)));
        let part = part(&host.plan(&wanted), &choices);
        host.apply(part.clone()).unwrap();
        host.mends_and_goes(&wanted, &format!("cut off after {:?}", part.titles()));
    }
}
