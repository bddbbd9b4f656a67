//! Vswitches and vnets that cannot be, one mistake each: what is said, about which text, what to do,
//! and which other text it is about.

#![allow(clippy::unwrap_used, reason = "a test may fail")]

use labrig::diag::{Notes, Place};
use labrig::input::{self, Options};

/// A topology without a mistake; rows below change one thing in it.
const GOOD: &str = "\
version: 1
name: nets
images: {micro: {build: {micro: {}}}, deb: {build: {suite: bookworm}}}
vswitches:
  own: {subnet: 10.10.0.0/24, subnet6: \"fd00:1::/64\", mtu: 1400}
  lan: {mode: bridge, bridge: br0, subnet: 10.11.0.0/24, gateway: 10.11.0.1, subnet6: fd00:2::/64, gateway6: fd00:2::1}
  ovs: {mode: openvswitch, bridge: ovs0, vlan: 42}
  wire: {mode: macvtap, port: eth1, subnet: 10.12.0.0/24}
  far: {mode: routed, subnet: 10.13.0.0/24, addressing: dhcp, bandwidth: 1Gbit/s, delay: 2ms, jitter: 1ms, loss: 0.1%, optional: true}
  six: {mode: nat, subnet6: fd00:3::/64}
domains:
  a:
    image: deb
    split: {cpus: 2, memory: 160MiB}
    vnets:
      - {vswitch: own, ip: 10.10.0.11, ip6: fd00:1::11, model: vmxnet3}
      - {vswitch: lan, queues: 2, inbound: {bandwidth: 8kbit/s}, outbound: {loss: 100%}}
      - {vswitch: wire}
  b:
    image: micro
    split: {cpus: 1, memory: 160MiB}
    vnets: [{vswitch: far}, {vswitch: six, ip6: fd00:3::12}, {vswitch: ovs}, {vswitch: own, ip6: fd00:1::12}]
";

struct Row {
    old: &'static str,
    new: &'static str,
    message: &'static str,
    /// The text it is about.
    at: &'static str,
    hint: &'static str,
    /// The other text it is about; empty for none.
    other: &'static str,
}

const fn row(
    old: &'static str,
    new: &'static str,
    message: &'static str,
    at: &'static str,
    hint: &'static str,
    other: &'static str,
) -> Row {
    Row {
        old,
        new,
        message,
        at,
        hint,
        other,
    }
}

#[rustfmt::skip]
const ROWS: &[Row] = &[
    // Modes and their keys.
    row("mode: nat", "mode: nta", "\"nta\" is not known here", "nta", "nat", ""),
    row("mode: nat", "mode: on", "\"on\" is not known here", "on", "isolated", ""),
    row("mode: bridge, bridge: br0", "mode: bridge", "vswitch \"lan\" of mode bridge needs \"bridge\"", "lan", "bridge: br0", "bridge"),
    row("openvswitch, bridge: ovs0", "openvswitch", "vswitch \"ovs\" of mode openvswitch needs \"bridge\"", "ovs", "bridge: br0", "openvswitch"),
    row("macvtap, port: eth1", "macvtap", "vswitch \"wire\" of mode macvtap needs \"port\"", "wire", "port: eth1", "macvtap"),
    row("mode: nat, ", "mode: nat, bridge: br0, ", "\"bridge\" has no meaning with mode nat", "br0", "bridge or openvswitch", "nat"),
    row("own: {", "own: {bridge: br0, ", "\"bridge\" has no meaning with mode isolated", "br0", "bridge or openvswitch", ""),
    row("port: eth1", "port: eth1, bridge: br0", "\"bridge\" has no meaning with mode macvtap", "br0", "bridge or openvswitch", "macvtap"),
    row("bridge: ovs0", "bridge: ovs0, port: eth1", "\"port\" has no meaning with mode openvswitch", "eth1", "macvtap", "openvswitch"),
    row("bridge: br0", "bridge: br0, vlan: 7", "\"vlan\" has no meaning with mode bridge", "7", "openvswitch", "bridge"),
    row("mode: nat", "mode: nat, gateway6: fd00:3::9", "\"gateway6\" has no meaning with mode nat", "fd00:3::9", "the lab host is the gateway", "nat"),
    row("vlan: 42", "vlan: 0", "0 is not a whole number from 1 to 4094", "0", "1 to 4094", ""),
    row("vlan: 42", "vlan: 4095", "4095 is not a whole number", "4095", "1 to 4094", ""),
    row("vlan: 42", "valn: 42", "unknown key \"valn\"", "valn", "vlan", ""),
    row("bridge: br0", "bridge: averyveryverylongbridge", "is too long for a network device", "averyveryverylongbridge", "15 characters", ""),
    row("bridge: br0", "bridge: br/0", "'/' is not allowed here", "br/0", "br0", ""),
    row("port: eth1", "port: -eth1", "'-' is not allowed here", "-eth1", "eth1", ""),
    row("port: eth1", "port: [eth1]", "a text is wanted here", "port", "eth1", ""),
    // Subnets.
    row("mode: nat, subnet6: fd00:3::/64", "mode: nat", "vswitch \"six\" has no subnet", "six", "subnet: 10.10.0.0/24", ""),
    row("subnet6: fd00:2::/64", "subnet6: 10.9.0.0/24", "\"10.9.0.0/24\" is not an IPv6 subnet", "10.9.0.0/24", "goes under subnet", ""),
    row("subnet: 10.13.0.0/24", "subnet: fd00:9::/64", "\"fd00:9::/64\" is not an IPv4 subnet", "fd00:9::/64", "goes under subnet6", ""),
    row("subnet6: fd00:2::/64", "subnet6: \"fd00:2::\"", "is not an IPv6 subnet", "\"fd00:2::\"", "prefix length", ""),
    row("subnet6: fd00:2::/64", "subnet6: fd00:2::7/64", "an address inside a subnet", "fd00:2::7/64", "fd00:2::/64", ""),
    row("subnet6: fd00:2::/64", "subnet6: fd00:2::/48", "a prefix length of 48 has no hosts", "fd00:2::/48", "64", ""),
    row("subnet6: fd00:2::/64", "subnet6: fe80::/64", "fe80::/64 is not for hosts", "fe80::/64", "fd00::/8", ""),
    row("subnet6: fd00:2::/64", "subnet6: ff02::/64", "ff02::/64 is not for hosts", "ff02::/64", "fd00::/8", ""),
    row("subnet: 10.13.0.0/24", "subnet: 10.12.0.128/25", "subnet 10.12.0.128/25 overlaps 10.12.0.0/24 of vswitch \"wire\"", "10.12.0.128/25", "its own", "10.12.0.0/24"),
    row("fd00:2::/64, gateway6: fd00:2::1", "fd00:1::/64", "subnet fd00:1::/64 overlaps fd00:1::/64 of vswitch \"own\"", "fd00:1::/64", "its own", "\"fd00:1::/64\""),
    row("gateway: 10.11.0.1", "gateway: 10.12.0.1", "10.12.0.1 is no host of 10.11.0.0/24", "10.12.0.1", "router", "10.11.0.0/24"),
    row("subnet: 10.12.0.0/24", "gateway: 10.12.0.1", "a gateway needs a subnet", "10.12.0.1", "add subnet", ""),
    row("gateway6: fd00:2::1", "gateway6: \"fd00:2::\"", "fd00:2:: is no host of fd00:2::/64", "\"fd00:2::\"", "router", "fd00:2::/64"),
    row("gateway: 10.11.0.1", "gateway: router", "\"router\" is not an IPv4 address", "router", "10.10.0.1", ""),
    row("mtu: 1400", "mtu: 1279", "IPv6 does not work with an MTU of 1279", "1279", "1280", "\"fd00:1::/64\""),
    // Addressing.
    row("mode: bridge", "addressing: dhcp, mode: bridge", "labrig gives no addresses on a vswitch of mode bridge", "dhcp", "static", "bridge"),
    row("mode: nat", "mode: nat, addressing: dhcp", "dhcp is for IPv4", "dhcp", "add subnet", ""),
    row("addressing: dhcp", "addressing: auto", "\"auto\" is not known here", "auto", "static", ""),
    // Impairments.
    row("1Gbit/s", "1000", "1000 has no unit: write 1000Mbit/s, say", "1000", "100Mbit/s", ""),
    row("1Gbit/s", "1G", "unknown unit \"G\"", "1G", "100Mbit/s", ""),
    row("1Gbit/s", "100MB/s", "unknown unit \"MB/s\"", "100MB/s", "100Mbit/s", ""),
    row("1Gbit/s", "1.5Gbit/s", "is not a quantity", "1.5Gbit/s", "100Mbit/s", ""),
    row("8kbit/s", "7kbit/s", "a bandwidth of 7kbit/s cannot be had", "7kbit/s", "from 8kbit/s to 400Gbit/s", ""),
    row("delay: 2ms, ", "", "a jitter needs a delay", "1ms", "delay: 2ms", ""),
    row("delay: 2ms", "delay: 500us", "a jitter of 1ms is more than the delay of 500µs", "1ms", "at most the delay", ""),
    row("delay: 2ms", "delay: 2", "2 has no unit: write 2s, say", "2", "2ms", ""),
    row("delay: 2ms", "delay: 61s", "is too long", "61s", "at most 60s", ""),
    row("loss: 0.1%", "loss: 0.1", "0.1 has no unit: write 0.1%, say", "0.1", "0.1%", ""),
    row("loss: 0.1%", "loss: 101%", "\"101%\" is too large", "101%", "0.1%", ""),
    row("loss: 0.1%", "loss: 0.00001%", "is not a quantity", "0.00001%", "0.1%", ""),
    row("optional: true", "optional: yes", "true or false is wanted here", "yes", "true", ""),
    row("inbound: {bandwidth: 8kbit/s}", "inbound: 8kbit/s", "a map is wanted here", "8kbit/s", "bandwidth", ""),
    row("inbound: {bandwidth", "inbound: {speed", "unknown key \"speed\"", "speed", "bandwidth", ""),
    // Vnets.
    row("ip6: fd00:1::11", "ip6: 10.10.0.9", "\"10.10.0.9\" is not an IPv6 address", "10.10.0.9", "fd00:1::10", ""),
    row("ip6: fd00:1::11", "ip6: fd00:4::11", "fd00:4::11 is outside the vswitch's subnet", "fd00:4::11", "fd00:1::2 to", "\"fd00:1::/64\""),
    row("ip6: fd00:1::11", "ip6: fd00:1::1", "fd00:1::1 is the lab host's own address", "fd00:1::1", "fd00:1::2", "\"fd00:1::/64\""),
    row("ip6: fd00:1::11", "ip6: \"fd00:1::\"", "fd00:1:: is the subnet's own address", "\"fd00:1::\"", "fd00:1::2", "\"fd00:1::/64\""),
    row("ip6: fd00:1::11", "ip6: fd00:1::12", "address fd00:1::12 is given twice", "fd00:1::12", "change one", "fd00:1::12"),
    row("{vswitch: lan,", "{vswitch: lan, ip: 10.11.0.1,", "10.11.0.1 is the vswitch's gateway", "10.11.0.1", "10.11.0.2 to 10.11.0.254", "10.11.0.0/24"),
    row("{vswitch: six,", "{vswitch: six, ip: 10.9.0.1,", "10.9.0.1 is on vswitch \"six\", which has no subnet", "10.9.0.1", "give the vswitch a subnet", "six"),
    row("{vswitch: ovs}", "{vswitch: ovs, ip6: fd00:9::1}", "fd00:9::1 is on vswitch \"ovs\", which has no subnet6", "fd00:9::1", "give the vswitch a subnet6", "ovs"),
    row("model: vmxnet3", "model: ne2000", "\"ne2000\" is not known here", "ne2000", "virtio", ""),
    row("model: vmxnet3", "model: vmxnet3, queues: 2", "a vnet of model vmxnet3 has one queue", "2", "virtio", "vmxnet3"),
    row("model: vmxnet3", "model: e1000e", "image \"deb\" has no driver for e1000e", "e1000e", "virtio or vmxnet3", "deb"),
    row("{vswitch: ovs}", "{vswitch: ovs, model: vmxnet3}", "image \"micro\" has no driver for vmxnet3", "vmxnet3", "use virtio", "micro"),
    row("queues: 2", "queues: 4", "4 queues are more than 2 CPUs", "4", "at most as many", ""),
    row("queues: 2", "queues: 0", "0 is not a whole number from 1 to 256", "0", "1 to 256", ""),
    // Whether labrig reaches it.
    row("[{vswitch: far}, {vswitch: six, ip6: fd00:3::12}, {vswitch: ovs}, {vswitch: own, ip6: fd00:1::12}]", "[{vswitch: six}, {vswitch: ovs}]", "no vnet of it has an IPv4 address", "b", "vswitch with a subnet", ""),
    row("[{vswitch: far}, ", "[{vswitch: wire}, {vswitch: far}, ", "labrig cannot reach a domain at a vnet of mode macvtap", "wire", "put a vnet on another vswitch", "wire"),
];

fn load(text: &str) -> Result<(), Notes> {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("t.yaml");
    std::fs::write(&file, text).unwrap();
    input::load_topology(&file, &Options::default()).map(|_| ())
}

#[test]
fn every_mistake_is_said_about_the_text_that_makes_it() {
    if let Err(notes) = load(GOOD) {
        panic!("{notes}");
    }
    let mut wrong = Vec::new();
    for row in ROWS {
        assert!(GOOD.contains(row.old), "{:?} is not there", row.old);
        let text = GOOD.replacen(row.old, row.new, 1);
        let notes = load(&text).err().unwrap_or_default();
        let shown = |place: &Place| text[place.start..place.end].to_owned();
        let is_it = |note: &labrig::diag::Note| {
            let others: Vec<_> = note
                .labels
                .iter()
                .map(|label| shown(&label.place))
                .collect();
            let expected: Vec<_> = Some(row.other)
                .filter(|other| !other.is_empty())
                .into_iter()
                .collect();
            note.message.contains(row.message)
                && note.place.as_ref().map(shown).as_deref() == Some(row.at)
                && note.hint.as_deref().unwrap_or("").contains(row.hint)
                && others == expected
        };
        if notes.0.len() != 1 || !notes.0.iter().any(is_it) {
            wrong.push(format!("{:?} -> {:?}: {notes:#?}", row.old, row.new));
        }
    }
    let count = wrong.len();
    assert!(wrong.is_empty(), "{}\n{count} are wrong", wrong.join("\n"));
}

#[test]
fn a_group_cannot_share_an_ipv6_address() {
    let text = GOOD.replace("  b:\n", "  b:\n    count: 2\n");
    let notes = load(&text).unwrap_err().to_string();
    assert!(
        notes.contains("fd00:1::12 cannot be given to 2 domains"),
        "{notes}"
    );
}
