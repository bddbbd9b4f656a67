//! What people read of a plan.

use crate::host::{Host, LAB, desired};
use labrig::report::plan_text;

/// The plan of a change to a lab that is up, without the list of actions.
fn summary(host: &Host, topology: &str) -> String {
    let text = plan_text(&host.plan(&desired(topology)));
    let (summary, actions) = text.split_once("\nin this order:\n").unwrap_or((&text, ""));
    assert!(actions.is_empty() || actions.lines().count() > 0);
    let lines = summary.lines();
    let lines = lines.map(|line| line.split_whitespace().collect::<Vec<_>>().join(" "));
    lines.collect::<Vec<_>>().join("\n")
}

#[test]
fn a_plan_says_what_becomes_of_each_part() {
    let lab = desired(LAB);
    let up = || Host::with(&lab);
    let nothing = "nothing to do: the lab is as its file says";
    assert_eq!(summary(&up(), LAB), nothing);

    let made = summary(&Host::new(), LAB);
    for line in [
        "made:",
        "image deb the lab has no such image yet",
        "domain db the domain is new",
    ] {
        assert!(made.lines().any(|l| l == line), "{made}");
    }
    assert_eq!(made.matches("domain db").count(), 1, "{made}");
    assert!(
        !made.contains("changed:") && !made.contains("destroyed:"),
        "{made}"
    );

    let host = up();
    host.hypervisor.power_off("labrig-lab.db");
    assert_eq!(summary(&host, LAB), "started:\ndomain db it does not run");

    let host = up();
    host.hypervisor.lose_file(&lab.domains[0].disks[1].path);
    assert_eq!(
        summary(&host, LAB),
        "restarted:\ndomain db one of its disks was lost"
    );

    let host = up();
    host.hypervisor.stop_network("labrig-lab.front");
    let stopped = summary(&host, LAB);
    for part in [
        "restarted:\ndomain probe network labrig-lab.front is started anew",
        "started:\nnetwork labrig-lab.front it is not active",
    ] {
        assert!(stopped.contains(part), "{stopped}");
    }

    let changed = summary(&up(), &LAB.replace("mtu: 1400", "mtu: 1300"));
    for part in [
        "changed:\n",
        "network labrig-lab.front vswitch front changed",
        "domain probe its definition changed",
        "destroyed:\nfile ",
    ] {
        assert!(changed.contains(part), "{changed}");
    }

    let renamed = summary(&up(), &LAB.replace("probe:", "prober:"));
    assert!(
        renamed.contains("made:\ndomain prober the domain is new"),
        "{renamed}"
    );
    assert!(
        renamed.contains("destroyed:\ndomain labrig-lab.probe it is not in the topology"),
        "{renamed}"
    );
}
