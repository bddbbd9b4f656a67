//! Machines that labrig does not make: when they are reached, when files go to them.

use crate::host::{Host, LAB, Titles, desired};
use labrig::plan::{Plan, plan};

/// The lab with the lab host as one more domain.
fn with_host() -> String {
    format!(
        "{LAB}  gen:\n    kind: host\n    split: {{cpus: 1, memory: 64MiB}}\n    vnets: [{{vswitch: data}}]\n"
    )
}

fn about_gen(plan: &Plan) -> Vec<String> {
    let titles = plan.titles().into_iter();
    titles.filter(|title| title.contains(" gen")).collect()
}

#[test]
fn a_host_is_awaited_and_given_its_files_once_its_networks_are_up() {
    let desired = desired(&with_host());
    let mut host = Host::new();
    let first = host.plan(&desired);
    assert_eq!(about_gen(&first), ["await host gen", "write 1 file on gen"]);
    let titles = first.titles();
    let at = |title: &str| titles.iter().position(|t| t == title).unwrap();
    let before = first.before(at("await host gen"));
    assert!(before.contains(&at("start network labrig-lab.data")));
    assert!(!before.contains(&at("start network labrig-lab.front")));
    assert!(
        first
            .before(at("write 1 file on gen"))
            .contains(&at("await host gen"))
    );

    let reservations = desired.networks.iter().flat_map(|n| &n.reservations);
    assert!(reservations.into_iter().all(|r| r.domain.as_str() != "gen"));
    host.add_machine("gen");
    host.up(&desired).unwrap();
    host.is_up(&desired, "with a host");

    // Another content is another digest, and none at all is one more thing to do.
    let mut changed = desired.clone();
    changed.machines[0].digest = Some(labrig::model::Digester::default().finish());
    assert_eq!(host.plan(&changed).titles(), ["write 1 file on gen"]);
    changed.machines[0].digest = None;
    changed.machines[0].files.clear();
    assert_eq!(host.plan(&changed).titles(), ["take files away from gen"]);
    host.up(&changed).unwrap();
    host.is_up(&changed, "without files");
}

#[test]
fn a_machine_that_does_not_answer_is_given_up_in_time() {
    let desired = desired(&with_host());
    let host = Host::new();
    let error = host.up(&desired).unwrap_err();
    assert_eq!(error.title, "await host gen");
    assert!(
        error.source.to_string().contains("within 0.3s"),
        "{}",
        error.source
    );
    let seen = plan(&desired, &host.observe(&desired));
    assert_eq!(about_gen(&seen), ["await host gen", "write 1 file on gen"]);
}
