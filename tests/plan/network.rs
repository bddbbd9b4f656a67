//! What a host's network must have for a topology, and what is planned about it.

use std::collections::BTreeMap;

use labrig::model::{DeviceKind, NetworkDevice, NetworkFacts, Observed, Topology};
use labrig::plan::{check_network, needs_network_facts, without_optional};
use labrig::ports::Hypervisor;

use crate::host::{Host, Titles, desired, topology};

/// Two domains, vswitches of any kind, and impairments.
fn lab(vswitches: &str, vnet: &str) -> String {
    format!(
        "version: 1\nname: lab\nimages: {{micro: {{build: {{micro: {{}}}}}}}}\n\
         vswitches:\n  own: {{subnet: 10.0.9.0/24}}\n  {vswitches}\ndomains:\n  \
         a: {{image: micro, split: {{cpus: 2, memory: 160MiB}}, vnets: [{{vswitch: own}}, {vnet}]}}\n  \
         b: {{image: micro, split: {{cpus: 1, memory: 160MiB}}, vnets: [{{vswitch: own}}]}}\n"
    )
}

fn device(kind: DeviceKind, mtu: u32) -> NetworkDevice {
    NetworkDevice {
        kind,
        mtu,
        bridge: None,
    }
}

/// A host with all there is.
fn rich() -> NetworkFacts {
    let port = NetworkDevice {
        bridge: Some("br0".to_owned()),
        ..device(DeviceKind::Other, 1500)
    };
    let devices = [
        ("lo", device(DeviceKind::Loopback, 65536)),
        ("br0", device(DeviceKind::Bridge, 1500)),
        ("ovs0", device(DeviceKind::Openvswitch, 9000)),
        ("eth0", device(DeviceKind::Other, 1500)),
        ("eth1", port),
    ];
    let routes = [
        ("192.168.1.0/24", "eth0"),
        ("10.1.0.0/16", "wg0"),
        ("fd00:9::/64", "eth0"),
    ];
    NetworkFacts {
        is_private: false,
        may_impair: true,
        lacks: BTreeMap::new(),
        devices: devices.map(|(name, d)| (name.to_owned(), d)).into(),
        openvswitch_lacks: None,
        routes: routes
            .map(|(net, device)| (net.parse().unwrap(), device.to_owned()))
            .into(),
    }
}

fn poor() -> NetworkFacts {
    let lack = |part: &str| (part.to_owned(), format!("no {part} here"));
    NetworkFacts {
        is_private: true,
        may_impair: true,
        lacks: [lack("netem"), lack("redirect")].into(),
        openvswitch_lacks: Some("it is not there".to_owned()),
        ..NetworkFacts::default()
    }
}

fn notes(topology: &Topology, facts: &NetworkFacts) -> Vec<String> {
    check_network(topology, &Observed::default(), facts)
        .iter()
        .map(|note| format!("{:?} {}: {}", note.severity, note.path, note.message))
        .collect()
}

#[test]
fn what_a_host_lacks_is_named_before_anything_is_made() {
    const ON: &str = "{vswitch: x}";
    // vswitch, vnet, facts, what is said (nothing: all is well).
    type Row = (
        &'static str,
        &'static str,
        fn() -> NetworkFacts,
        &'static str,
    );
    const ROWS: &[Row] = &[
        ("x: {subnet: 10.0.0.0/24}", ON, poor, ""),
        (
            "x: {mode: bridge, bridge: br0, subnet: 10.0.0.0/24}",
            ON,
            rich,
            "",
        ),
        (
            "x: {mode: bridge, bridge: br7}",
            ON,
            rich,
            "Error vswitches.x.bridge: the host has no network device \"br7\"",
        ),
        (
            "x: {mode: bridge, bridge: br0}",
            ON,
            poor,
            "Error vswitches.x.bridge: the host has no network device \"br0\"",
        ),
        (
            "x: {mode: bridge, bridge: eth0}",
            ON,
            rich,
            "Error vswitches.x.bridge: eth0 is no bridge",
        ),
        (
            "x: {mode: bridge, bridge: ovs0}",
            ON,
            rich,
            "Error vswitches.x.bridge: ovs0 is a bridge of Open vSwitch",
        ),
        (
            "x: {mode: bridge, bridge: br0, mtu: 9000}",
            ON,
            rich,
            "Error vswitches.x.mtu: frames of 9000 bytes do not pass br0, whose MTU is 1500",
        ),
        (
            "x: {mode: openvswitch, bridge: ovs0, vlan: 7, mtu: 9000}",
            ON,
            rich,
            "",
        ),
        (
            "x: {mode: openvswitch, bridge: br0}",
            ON,
            rich,
            "Error vswitches.x.bridge: br0 is no bridge of Open vSwitch",
        ),
        (
            "x: {mode: openvswitch, bridge: ovs0}",
            ON,
            poor,
            "Error vswitches.x.bridge: the host has no Open vSwitch: it is not there",
        ),
        ("x: {mode: macvtap, port: eth0}", ON, rich, ""),
        (
            "x: {mode: macvtap, port: lo}",
            ON,
            rich,
            "Error vswitches.x.port: lo is the loopback device",
        ),
        (
            "x: {mode: macvtap, port: eth1}",
            ON,
            rich,
            "Error vswitches.x.port: eth1 is a port of bridge br0",
        ),
        (
            "x: {mode: macvtap, port: eth7}",
            ON,
            rich,
            "Error vswitches.x.port: the host has no network device \"eth7\"",
        ),
        (
            "x: {subnet: 10.1.2.0/24}",
            ON,
            rich,
            "Error vswitches.x.subnet: subnet 10.1.2.0/24 overlaps 10.1.0.0/16, which the host has on wg0",
        ),
        (
            "x: {subnet: 192.168.0.0/16}",
            ON,
            rich,
            "Error vswitches.x.subnet: subnet 192.168.0.0/16 overlaps 192.168.1.0/24, which the host has on eth0",
        ),
        (
            "x: {subnet6: \"fd00:9::/64\"}",
            ON,
            rich,
            "Error vswitches.x.subnet6: subnet fd00:9::/64 overlaps fd00:9::/64, which the host has on eth0",
        ),
        (
            "x: {mode: bridge, bridge: br0, subnet: 192.168.1.0/24}",
            ON,
            rich,
            "",
        ),
        ("x: {subnet: 10.0.0.0/24, bandwidth: 1Mbit/s}", ON, poor, ""),
        ("x: {subnet: 10.0.0.0/24, delay: 1ms}", ON, rich, ""),
        (
            "x: {subnet: 10.0.0.0/24, delay: 1ms}",
            ON,
            poor,
            "Error vswitches.x.delay: the host lacks the kernel's netem, for delay, jitter and loss: no netem here",
        ),
        (
            "x: {subnet: 10.0.0.0/24, loss: 1%, optional: true}",
            ON,
            poor,
            "Warning vswitches.x.loss: the host lacks the kernel's netem, for delay, jitter and loss: no netem here",
        ),
        (
            "x: {subnet: 10.0.0.0/24}",
            "{vswitch: x, inbound: {loss: 1%}}",
            poor,
            "Error domains.a.vnets[1].inbound.loss: the host lacks the kernel's netem, for delay, jitter and loss: no netem here",
        ),
        (
            "x: {subnet: 10.0.0.0/24}",
            "{vswitch: x, outbound: {bandwidth: 1Mbit/s}}",
            poor,
            "Error domains.a.vnets[1].outbound: the host lacks the kernel's ifb, cls_u32 and act_mirred, for frames from a domain: no redirect here",
        ),
        (
            "x: {subnet: 10.0.0.0/24, bandwidth: 1Mbit/s}",
            ON,
            || NetworkFacts {
                may_impair: false,
                ..rich()
            },
            "Error vswitches.x: the host lacks root's rights, for impairments: only root may set them",
        ),
    ];
    for (vswitch, vnet, facts, said) in ROWS {
        let topology = topology(&lab(vswitch, vnet));
        let facts = facts();
        let expected: Vec<_> = Some(*said).filter(|s| !s.is_empty()).into_iter().collect();
        assert_eq!(notes(&topology, &facts), expected, "{vswitch} {vnet}");
        if !said.is_empty() {
            assert!(
                needs_network_facts(&topology, facts.is_private),
                "{vswitch}"
            );
        }
    }
}

#[test]
fn a_lab_s_own_bridge_is_in_nobody_s_way() {
    let topology = topology(&lab("x: {subnet: 192.168.1.0/24}", "{vswitch: x}"));
    let host = Host::with(&crate::host::desired_of(&topology));
    let observed = host.hypervisor.observe().unwrap();
    let bridge = topology.vswitches["x"].device.clone();
    let mut facts = rich();
    facts.routes = vec![("192.168.1.0/24".parse().unwrap(), bridge.clone())];
    assert!(check_network(&topology, &observed, &facts).is_empty());
    // Also one that the topology no longer has, or has under another name.
    let renamed = crate::host::topology(&lab("y: {subnet: 192.168.1.0/24}", "{vswitch: y}"));
    assert_ne!(renamed.vswitches["y"].device, bridge);
    assert!(check_network(&renamed, &observed, &facts).is_empty());
    assert_eq!(notes(&renamed, &facts).len(), 1);
}

#[test]
fn only_what_is_optional_and_lacking_is_left_out() {
    let topology = topology(&lab(
        "x: {subnet: 10.0.0.0/24, bandwidth: 8Mbit/s, delay: 2ms, jitter: 1ms, optional: true}",
        "{vswitch: x, inbound: {bandwidth: 1Mbit/s}, outbound: {bandwidth: 2Mbit/s, optional: true}}",
    ));
    assert_eq!(*without_optional(&topology, &rich()), topology);
    let left = without_optional(&topology, &poor());
    let vswitch = &left.vswitches["x"];
    let impairments = left.domains[0].vnets[1].impairments(vswitch);
    assert_eq!(impairments.to_string(), "inbound 1Mbit/s; outbound nothing");
    assert_eq!(vswitch.impairment.to_string(), "8Mbit/s");
    assert!(!needs_network_facts(
        &crate::host::topology(&lab("x: {mode: nat, subnet: 10.0.0.0/24}", "{vswitch: x}")),
        true
    ));
}

#[test]
fn impairments_are_set_at_every_start_seen_when_lost_and_changed_without_a_restart() {
    const X: &str = "x: {subnet: 10.0.0.0/24, bandwidth: 8Mbit/s}";
    const VNET: &str = "{vswitch: x, outbound: {delay: 5ms}}";
    let before = desired(&lab(X, VNET));
    let host = Host::new();
    let plan = host.plan(&before);
    let titles = plan.titles();
    let at = |title: &str| titles.iter().position(|t| t == title).unwrap();
    let (impair, ready) = (at("impair vnet of a on x"), at("await domain a"));
    assert!(plan.before(impair).contains(&at("start domain a")));
    assert!(
        plan.before(ready).contains(&impair),
        "a is ready when all is set"
    );
    assert!(
        !titles.iter().any(|t| t.contains("vnet of b")),
        "{titles:?}"
    );
    host.apply(plan).unwrap();
    host.is_up(&before, "new");

    host.hypervisor.lift_impairments();
    assert_eq!(host.plan(&before).titles(), ["impair vnet of a on x"]);
    host.up(&before).unwrap();
    host.is_up(&before, "mended");

    for (what, vswitch, vnet) in [
        (
            "changed",
            "x: {subnet: 10.0.0.0/24, bandwidth: 9Mbit/s}",
            VNET,
        ),
        (
            "added",
            "x: {subnet: 10.0.0.0/24, bandwidth: 9Mbit/s}",
            "{vswitch: x, outbound: {delay: 5ms}, inbound: {loss: 1%}}",
        ),
        ("lifted", "x: {subnet: 10.0.0.0/24}", "{vswitch: x}"),
    ] {
        let after = desired(&lab(vswitch, vnet));
        assert_eq!(
            host.plan(&after).titles(),
            ["impair vnet of a on x"],
            "{what}"
        );
        host.up(&after).unwrap();
        host.is_up(&after, what);
    }
}

#[test]
fn running_domains_are_told_of_those_that_come_and_go() {
    let base = lab("x: {subnet: 10.0.0.0/24}", "{vswitch: x}");
    let host = Host::with(&desired(&base));
    let more = format!(
        "{base}  c: {{image: micro, split: {{cpus: 1, memory: 160MiB}}, vnets: [{{vswitch: x}}]}}\n"
    );
    for text in [more.as_str(), &base] {
        let wanted = desired(text);
        let titles = host.plan(&wanted).titles();
        for domain in ["a", "b"] {
            let told = format!("tell hosts to domain {domain}");
            assert!(titles.contains(&told), "{titles:?}");
        }
        assert!(!titles.contains(&"start domain a".to_owned()), "{titles:?}");
        host.up(&wanted).unwrap();
        host.is_up(&wanted, "told");
    }
}
