//! Whether a host's network can hold a topology's vswitches.

use std::borrow::Cow;
use std::collections::BTreeSet;

use ipnet::IpNet;

use crate::diag::Note;
use crate::model::{
    DeviceKind, Impairment, Name, NetworkFacts, Observed, Topology, Vswitch, VswitchMode,
};

/// Whether the answer depends on more than every host has that labs run on at all.
pub fn needs_network_facts(topology: &Topology, is_private: bool) -> bool {
    let mut vswitches = topology.vswitches.values();
    !is_private
        || vswitches.any(|vswitch| !vswitch.mode.is_own() || !vswitch.impairment.is_none())
        || vnet_impairments(topology).any(|(_, impairment)| !impairment.is_none())
}

/// Notes about what the host's network lacks for the topology, or has in its way.
pub fn check_network(topology: &Topology, observed: &Observed, facts: &NetworkFacts) -> Vec<Note> {
    let mut notes = Vec::new();
    for (name, vswitch) in &topology.vswitches {
        if vswitch.mode.is_own() {
            check_routes(name, vswitch, observed, facts, &mut notes);
        } else {
            check_device(name, vswitch, facts, &mut notes);
        }
        let path = format!("vswitches.{name}");
        notes.extend(check_impairment(&path, &vswitch.impairment, false, facts));
    }
    let mut seen = BTreeSet::new();
    for ((path, is_outbound), impairment) in vnet_impairments(topology) {
        // One note does for all domains of a group.
        if seen.insert(path.clone()) {
            notes.extend(check_impairment(&path, impairment, is_outbound, facts));
        }
    }
    notes
}

/// The topology without those optional impairments that the host cannot do.
pub fn without_optional<'a>(topology: &'a Topology, facts: &NetworkFacts) -> Cow<'a, Topology> {
    let is_lacking = |impairment: &Impairment, is_outbound| {
        impairment.optional && !lacking(impairment, is_outbound, facts).is_empty()
    };
    let vswitches = topology.vswitches.values();
    let of_vswitches = vswitches.map(|vswitch| (&vswitch.impairment, false));
    let of_vnets =
        vnet_impairments(topology).map(|((_, is_outbound), impairment)| (impairment, is_outbound));
    if !of_vswitches
        .chain(of_vnets)
        .any(|(impairment, is_outbound)| is_lacking(impairment, is_outbound))
    {
        return Cow::Borrowed(topology);
    }
    let mut topology = topology.clone();
    let settle = |impairment: &mut Impairment, is_outbound| {
        if is_lacking(impairment, is_outbound) {
            *impairment = reduced(impairment, is_outbound, facts);
        }
    };
    for vswitch in topology.vswitches.values_mut() {
        settle(&mut vswitch.impairment, false);
    }
    for vnet in topology.domains.iter_mut().flat_map(|d| &mut d.vnets) {
        settle(&mut vnet.inbound, false);
        settle(&mut vnet.outbound, true);
    }
    Cow::Owned(topology)
}

/// Every vnet's impairments with their paths, and whether they are for frames from the domain.
fn vnet_impairments(topology: &Topology) -> impl Iterator<Item = ((String, bool), &Impairment)> {
    topology.domains.iter().flat_map(|domain| {
        let vnets = domain.vnets.iter().enumerate();
        vnets.flat_map(move |(i, vnet)| {
            let path = format!("domains.{}.vnets[{i}]", domain.group);
            [
                ((format!("{path}.inbound"), false), &vnet.inbound),
                ((format!("{path}.outbound"), true), &vnet.outbound),
            ]
        })
    })
}

/// What an impairment needs and the host lacks: the part, and why.
fn lacking(
    impairment: &Impairment,
    is_outbound: bool,
    facts: &NetworkFacts,
) -> Vec<(&'static str, String)> {
    let needed = [
        ("tbf", impairment.bandwidth.is_some()),
        ("netem", impairment.needs_netem()),
        ("redirect", is_outbound && !impairment.is_none()),
    ];
    let mut lacking: Vec<_> = needed
        .into_iter()
        .filter(|(_, is_needed)| *is_needed)
        .filter_map(|(part, _)| Some((part, facts.lacks.get(part)?.clone())))
        .collect();
    if !facts.may_impair && !impairment.is_none() {
        lacking.push(("root's rights", "only root may set them".to_owned()));
    }
    lacking
}

fn reduced(impairment: &Impairment, is_outbound: bool, facts: &NetworkFacts) -> Impairment {
    let lacking = lacking(impairment, is_outbound, facts);
    let lacks = |part| lacking.iter().any(|(lacking, _)| *lacking == part);
    let mut left = *impairment;
    if lacks("redirect") || lacks("root's rights") {
        return Impairment::default();
    }
    if lacks("tbf") {
        left.bandwidth = None;
    }
    if lacks("netem") {
        (left.delay, left.jitter, left.loss) = (None, None, None);
    }
    left
}

fn check_impairment(
    path: &str,
    impairment: &Impairment,
    is_outbound: bool,
    facts: &NetworkFacts,
) -> Vec<Note> {
    let note = |(part, said): (&str, String)| {
        let key = match part {
            "tbf" => ".bandwidth",
            "netem" if impairment.delay.is_some() => ".delay",
            "netem" if impairment.jitter.is_some() => ".jitter",
            "netem" => ".loss",
            _ => "",
        };
        let (what, hint) = match part {
            "tbf" => ("the kernel's tbf, for bandwidth", "load the module sch_tbf"),
            "netem" => (
                "the kernel's netem, for delay, jitter and loss",
                "load the module sch_netem, or use a kernel that has it",
            ),
            "redirect" => (
                "the kernel's ifb, cls_u32 and act_mirred, for frames from a domain",
                "load these modules",
            ),
            _ => ("root's rights, for impairments", "run labrig as root"),
        };
        let message = format!("the host lacks {what}: {said}");
        let path = format!("{path}{key}");
        if impairment.optional {
            Note::warning(path, message).hint("it is left out, since it is optional")
        } else {
            let hint = format!("{hint}; `optional: true` leaves out what a host cannot do");
            Note::error(path, message).hint(hint)
        }
    };
    lacking(impairment, is_outbound, facts)
        .into_iter()
        .map(note)
        .collect()
}

/// The device of the host that a vswitch is to be on.
fn check_device(name: &Name, vswitch: &Vswitch, facts: &NetworkFacts, notes: &mut Vec<Note>) {
    let device = &vswitch.device;
    let key = match vswitch.mode {
        VswitchMode::Macvtap => "port",
        _ => "bridge",
    };
    let path = format!("vswitches.{name}.{key}");
    if let Some(lack) = facts
        .openvswitch_lacks
        .as_ref()
        .filter(|_| vswitch.mode == VswitchMode::Openvswitch)
    {
        notes.push(
            Note::error(path, format!("the host has no Open vSwitch: {lack}"))
                .hint("install openvswitch-switch and make the bridge, or use another mode"),
        );
        return;
    }
    let Some(found) = facts.devices.get(device) else {
        let message = format!("the host has no network device {device:?}");
        let there = facts.devices.keys().map(String::as_str);
        let there = there.collect::<Vec<_>>().join(", ");
        let hint = if facts.is_private {
            "an embedded host has a network of its own, without the machine's devices: \
             use --host qemu:///system, or another mode"
                .to_owned()
        } else {
            format!("it has {there}")
        };
        notes.push(Note::error(path, message).hint(hint));
        return;
    };
    let wrong = match (vswitch.mode, found.kind) {
        (VswitchMode::Bridge, DeviceKind::Bridge)
        | (VswitchMode::Openvswitch, DeviceKind::Openvswitch) => None,
        (VswitchMode::Bridge, DeviceKind::Openvswitch) => {
            Some(("is a bridge of Open vSwitch", "use mode: openvswitch"))
        }
        (VswitchMode::Bridge, _) => Some(("is no bridge", "give a bridge that is there")),
        (VswitchMode::Openvswitch, _) => Some((
            "is no bridge of Open vSwitch",
            "ovs-vsctl list-br names those that are",
        )),
        (_, DeviceKind::Loopback) => Some(("is the loopback device", "give a port")),
        _ => None,
    };
    if let Some((wrong, hint)) = wrong {
        notes.push(Note::error(path, format!("{device} {wrong}")).hint(hint));
    } else if let Some(bridge) = found
        .bridge
        .as_ref()
        .filter(|_| vswitch.mode == VswitchMode::Macvtap)
    {
        let message = format!("{device} is a port of bridge {bridge}");
        let hint = format!("use mode: bridge with bridge: {bridge}");
        notes.push(Note::error(path, message).hint(hint));
    } else if vswitch.mtu > found.mtu {
        let message = format!(
            "frames of {} bytes do not pass {device}, whose MTU is {}",
            vswitch.mtu, found.mtu
        );
        let hint = format!("set mtu: {} or less", found.mtu);
        notes.push(Note::error(format!("vswitches.{name}.mtu"), message).hint(hint));
    }
}

/// Networks that the host reaches already, where a vswitch's subnet would hide them.
fn check_routes(
    name: &Name,
    vswitch: &Vswitch,
    observed: &Observed,
    facts: &NetworkFacts,
    notes: &mut Vec<Note>,
) {
    let own: BTreeSet<_> = observed
        .networks
        .values()
        .filter_map(|network| network.bridge.as_deref())
        .chain([vswitch.device.as_str()])
        .collect();
    let subnets = [
        ("subnet", vswitch.subnet.map(IpNet::from)),
        ("subnet6", vswitch.subnet6.map(IpNet::from)),
    ];
    for (key, subnet) in subnets {
        let Some(subnet) = subnet else { continue };
        let taken = facts.routes.iter().find(|(net, device)| {
            !own.contains(device.as_str()) && (subnet.contains(net) || net.contains(&subnet))
        });
        if let Some((net, device)) = taken {
            let message = format!("subnet {subnet} overlaps {net}, which the host has on {device}");
            notes.push(
                Note::error(format!("vswitches.{name}.{key}"), message)
                    .hint("give the vswitch a subnet that is free on this host"),
            );
        }
    }
}
