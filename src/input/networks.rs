//! Vswitches from what is written to what is decided, and what cannot be about them and the vnets
//! on them.

use ipnet::IpNet;

use super::addresses;
use super::names;
use super::read::{Doc, Spot, Written};
use super::topology::{VnetSpec, VswitchSpec};
use crate::model::{Addressing, Image, ImageSource, Name, VnetModel, Vswitch, VswitchMode};

/// Least frame payload on a network with IPv6 (RFC 8200, section 5).
const MTU6_LEAST: u32 = 1280;
const MTU: u32 = 1500;

/// A key that only some modes have.
struct ModeKey<'a> {
    name: &'static str,
    spot: Option<&'a Spot>,
    modes: &'static [VswitchMode],
    /// Whether these modes need it.
    is_needed: bool,
    example: &'static str,
}

/// Decides a vswitch; none when it is a draft that cannot be one.
pub(super) fn resolve(lab: &Name, spec: &VswitchSpec) -> Option<(Name, Vswitch)> {
    let name = &spec.name.value;
    let mode = spec.mode();
    let (subnet, subnet6) = (value(&spec.subnet), value(&spec.subnet6));
    let device = match mode {
        VswitchMode::Isolated | VswitchMode::Nat | VswitchMode::Routed => {
            subnet.map(IpNet::from).or(subnet6.map(IpNet::from))?;
            names::bridge(lab, name)
        }
        VswitchMode::Bridge | VswitchMode::Openvswitch => spec.bridge.as_ref()?.value.clone(),
        VswitchMode::Macvtap => spec.port.as_ref()?.value.clone(),
    };
    let is_own = mode.is_own();
    let vswitch = Vswitch {
        mode,
        device,
        vlan: value(&spec.vlan),
        gateway: match subnet.filter(|_| is_own) {
            Some(subnet) => Some(addresses::gateway(subnet)),
            None => value(&spec.gateway),
        },
        gateway6: match subnet6.filter(|_| is_own) {
            Some(subnet) => Some(addresses::gateway6(subnet)),
            None => value(&spec.gateway6),
        },
        subnet,
        subnet6,
        addressing: value(&spec.addressing).unwrap_or_default(),
        mtu: value(&spec.mtu).unwrap_or(MTU),
        impairment: spec.impairment,
        network: names::libvirt_name(lab, name),
        uuid: names::uuid(lab, names::Kind::Network, name),
    };
    Some((name.clone(), vswitch))
}

fn value<T: Clone>(written: &Option<Written<T>>) -> Option<T> {
    written.as_ref().map(|written| written.value.clone())
}

/// Notes what does not go together in or among vswitches.
pub(super) fn check(doc: &Doc, vswitches: &[VswitchSpec]) {
    for spec in vswitches.iter().filter(|spec| !spec.is_broken) {
        check_keys(doc, spec);
        check_gateways(doc, spec);
        check_mtu(doc, spec);
    }
    let own = vswitches.iter();
    let subnets = own.clone().filter_map(|v| Some((subnet(&v.subnet)?, v)));
    check_overlaps(doc, subnets.collect());
    let subnets = own.filter_map(|v| Some((subnet(&v.subnet6)?, v)));
    check_overlaps(doc, subnets.collect());
}

fn subnet<N: Copy + Into<IpNet>>(written: &Option<Written<N>>) -> Option<(IpNet, &Spot)> {
    let written = written.as_ref()?;
    Some((written.value.into(), &written.spot))
}

fn spot<T>(written: &Option<Written<T>>) -> Option<&Spot> {
    written.as_ref().map(|written| &written.spot)
}

fn check_keys(doc: &Doc, spec: &VswitchSpec) {
    use VswitchMode as M;
    const EXISTING: &[VswitchMode] = &[M::Bridge, M::Macvtap, M::Openvswitch];
    let key = |name, spot, modes, is_needed, example| ModeKey {
        name,
        spot,
        modes,
        is_needed,
        example,
    };
    let keys = [
        key(
            "bridge",
            spot(&spec.bridge),
            &[M::Bridge, M::Openvswitch][..],
            true,
            "br0",
        ),
        key("port", spot(&spec.port), &[M::Macvtap], true, "eth1"),
        key("vlan", spot(&spec.vlan), &[M::Openvswitch], false, "42"),
        key("gateway", spot(&spec.gateway), EXISTING, false, "10.10.0.1"),
        key(
            "gateway6",
            spot(&spec.gateway6),
            EXISTING,
            false,
            "fd00:1::1",
        ),
    ];
    let mode = spec.mode();
    let mode_place = || spec.mode.as_ref().map(|mode| doc.place(&mode.spot));
    for key in keys {
        let belongs = key.modes.contains(&mode);
        if let Some(spot) = key.spot.filter(|_| !belongs) {
            let words: Vec<_> = key.modes.iter().map(|mode| mode.word()).collect();
            let message = format!("{:?} has no meaning with mode {}", key.name, mode.word());
            let note = doc.error(spot, message);
            let hint = match key.name {
                "gateway" | "gateway6" => {
                    "leave it out: the lab host is the gateway there".to_owned()
                }
                _ => format!("it goes with mode {}", words.join(" or ")),
            };
            doc.push(note.hint(hint).label(mode_place(), "the mode"));
        } else if key.spot.is_none() && belongs && key.is_needed {
            let name = spec.name.value.as_str();
            let message = format!(
                "vswitch {name:?} of mode {} needs {:?}",
                mode.word(),
                key.name
            );
            let note = doc.error(&spec.name.spot, message);
            let hint = format!("add it, as in {}: {}", key.name, key.example);
            doc.push(note.hint(hint).label(mode_place(), "the mode"));
        }
    }
    if mode.is_own() && spec.subnet.is_none() && spec.subnet6.is_none() {
        let name = spec.name.value.as_str();
        let message = format!("vswitch {name:?} has no subnet");
        let note = doc.error(&spec.name.spot, message);
        doc.push(note.hint("add one, as in subnet: 10.10.0.0/24"));
    }
    if let Some(addressing) = spec
        .addressing
        .as_ref()
        .filter(|addressing| addressing.value == Addressing::Dhcp)
    {
        let (why, hint, place) = if !mode.is_own() {
            (
                format!(
                    "labrig gives no addresses on a vswitch of mode {}",
                    mode.word()
                ),
                "use static: guests have the addresses that the topology says",
                mode_place(),
            )
        } else if spec.subnet.is_none() {
            (
                "dhcp is for IPv4, and this vswitch has no IPv4 subnet".to_owned(),
                "add subnet, or leave addressing out",
                None,
            )
        } else {
            return;
        };
        let note = doc.error(&addressing.spot, why).hint(hint);
        doc.push(note.label(place, "the mode"));
    }
}

fn check_gateways(doc: &Doc, spec: &VswitchSpec) {
    let v4 = spec.gateway.as_ref().map(|g| (g.value.into(), &g.spot));
    let v6 = spec.gateway6.as_ref().map(|g| (g.value.into(), &g.spot));
    for (gateway, subnet, key) in [
        (v4, subnet(&spec.subnet), "subnet"),
        (v6, subnet(&spec.subnet6), "subnet6"),
    ] {
        let Some((gateway, spot)): Option<(std::net::IpAddr, &Spot)> = gateway else {
            continue;
        };
        match subnet {
            None => {
                let note = doc.error(spot, format!("a gateway needs a {key}"));
                doc.push(note.hint(format!("add {key}, or leave the gateway out")));
            }
            Some((net, place)) if !net.contains(&gateway) || gateway == net.network() => {
                let note = doc.error(spot, format!("{gateway} is no host of {net}"));
                let note = note.hint("give the router's address on this network");
                doc.push(note.label(Some(doc.place(place)), "the subnet"));
            }
            Some(_) => {}
        }
    }
}

fn check_mtu(doc: &Doc, spec: &VswitchSpec) {
    let (Some(mtu), Some(subnet6)) = (&spec.mtu, &spec.subnet6) else {
        return;
    };
    if mtu.value < MTU6_LEAST {
        let note = doc.error(
            &mtu.spot,
            format!("IPv6 does not work with an MTU of {}", mtu.value),
        );
        let note = note.hint(format!("at least {MTU6_LEAST}"));
        doc.push(note.label(Some(doc.place(&subnet6.spot)), "the IPv6 subnet"));
    }
}

/// Notes subnets of one family that overlap. After sorting, one that overlaps any earlier one
/// overlaps the earlier one that reaches farthest.
fn check_overlaps(doc: &Doc, mut subnets: Vec<((IpNet, &Spot), &VswitchSpec)>) {
    subnets.sort_by_key(|((net, _), _)| (net.network(), net.prefix_len()));
    let mut farthest: Option<((IpNet, &Spot), &VswitchSpec)> = None;
    for ((net, spot), spec) in subnets {
        if let Some(((before, before_spot), other)) =
            farthest.filter(|((before, _), _)| before.broadcast() >= net.network())
        {
            let late_is_this = before_spot.span.start < spot.span.start;
            let (late, late_spot, early, early_spot, early_spec) = match late_is_this {
                true => (net, spot, before, before_spot, other),
                false => (before, before_spot, net, spot, spec),
            };
            let name = early_spec.name.value.as_str();
            let message = format!("subnet {late} overlaps {early} of vswitch {name:?}");
            let note = doc
                .error(late_spot, message)
                .hint("give each vswitch a subnet of its own");
            doc.push(note.label(Some(doc.place(early_spot)), "the other subnet"));
        }
        if farthest.is_none_or(|((before, _), _)| net.broadcast() > before.broadcast()) {
            farthest = Some(((net, spot), spec));
        }
    }
}

/// What the domain's end of a vnet depends on.
pub(super) struct GuestSide<'a> {
    pub image: Option<(&'a Written<Name>, &'a Image)>,
    pub vcpus: u32,
}

impl GuestSide<'_> {
    /// Network cards that the image's kernel drives, where labrig builds it: that of Debian's cloud
    /// packages has few drivers, the micro image one.
    fn drives(&self) -> Option<&'static [VnetModel]> {
        match &self.image?.1.source {
            ImageSource::Build(recipe) if recipe.is_micro() => Some(&[VnetModel::Virtio]),
            ImageSource::Build(_) => Some(&[VnetModel::Virtio, VnetModel::Vmxnet3]),
            ImageSource::Path { .. } | ImageSource::Url { .. } => None,
        }
    }
}

/// Notes what a domain's vnets cannot be. `name` is where the domain is written.
pub(super) fn check_vnets(
    doc: &Doc,
    name: &Spot,
    ports: &[(&VnetSpec, &VswitchSpec)],
    guest: &GuestSide<'_>,
) {
    let vcpus = guest.vcpus;
    for (vnet, _) in ports {
        if let (Some(model), Some(drives), Some((image, _))) =
            (&vnet.model, guest.drives(), guest.image)
            && !drives.contains(&model.value)
        {
            let words: Vec<_> = drives.iter().map(|model| model.word()).collect();
            let name = image.value.as_str();
            let message = format!("image {name:?} has no driver for {}", model.value.word());
            let note = doc.error(&model.spot, message);
            let hint = format!("use {}, or an image of your own", words.join(" or "));
            let place = Some(doc.place(&image.spot));
            doc.push(note.hint(hint).label(place, "the image"));
            continue;
        }
        let Some(queues) = vnet.queues.as_ref().filter(|queues| queues.value > 1) else {
            continue;
        };
        if let Some(model) = vnet
            .model
            .as_ref()
            .filter(|model| model.value != VnetModel::Virtio)
        {
            let message = format!("a vnet of model {} has one queue", model.value.word());
            let note = doc.error(&queues.spot, message);
            let note = note.hint("leave queues out, or use model: virtio");
            doc.push(note.label(Some(doc.place(&model.spot)), "the model"));
        } else if queues.value > vcpus {
            let message = format!("{} queues are more than {vcpus} CPUs", queues.value);
            let note = doc.error(&queues.spot, message);
            doc.push(note.hint("a queue is served by a CPU of the domain: at most as many"));
        }
    }
    check_reach(doc, name, ports);
}

/// Notes a domain that labrig could not reach.
fn check_reach(doc: &Doc, name: &Spot, ports: &[(&VnetSpec, &VswitchSpec)]) {
    if ports.is_empty() || ports.iter().any(|(_, vswitch)| vswitch.is_broken) {
        return;
    }
    let Some((vnet, vswitch)) = ports.iter().find(|(_, vswitch)| vswitch.subnet.is_some()) else {
        let note = doc.error(
            name,
            "labrig cannot reach this domain: no vnet of it has an IPv4 address",
        );
        let hint = "give it a vnet on a vswitch with a subnet, or one of its vswitches a subnet";
        doc.push(note.hint(hint));
        return;
    };
    if vswitch.mode() == VswitchMode::Macvtap {
        let message = "labrig cannot reach a domain at a vnet of mode macvtap: \
             a host does not see guests on its own port";
        let note = doc.error(&vnet.vswitch.spot, message);
        let note = note.hint("put a vnet on another vswitch with an IPv4 subnet before it");
        doc.push(note.label(Some(doc.place(&vswitch.name.spot)), "the vswitch"));
    }
}
