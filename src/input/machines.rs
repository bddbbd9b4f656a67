//! Machines that labrig does not make: the lab host and external ones, checked against each other.

use std::collections::HashMap;
use std::net::{IpAddr, Ipv4Addr};

use super::addresses;
use super::read::{Doc, Spot};
use super::resolve::Seat;
use super::topology::{KindWord, VnetSpec, VswitchSpec};
use crate::diag::Note;
use crate::model::{Impairment, MacAddr, Name, Vnet, VnetModel};

/// The lab host's own addresses on the vswitches that a host domain names.
pub(super) fn host_vnets(doc: &Doc, seat: &Seat<'_>) -> Vec<Vnet> {
    let ports = seat.ports.iter();
    ports
        .filter_map(|(vnet, vswitch)| host_vnet(doc, vnet, vswitch))
        .collect()
}

fn host_vnet(doc: &Doc, vnet: &VnetSpec, vswitch: &VswitchSpec) -> Option<Vnet> {
    let name = vswitch.name.value.as_str();
    if !vswitch.mode().is_own() {
        let message = format!("labrig gives the lab host no address on vswitch {name:?}");
        let note = doc.error(&vnet.vswitch.spot, message);
        let hint = "name a vswitch of mode isolated, nat or routed";
        let place = Some(doc.place(&vswitch.name.spot));
        doc.push(note.hint(hint).label(place, "the vswitch"));
        return None;
    }
    let ip = vswitch.subnet.as_ref().map(|s| addresses::gateway(s.value));
    let ip6 = vswitch
        .subnet6
        .as_ref()
        .map(|s| addresses::gateway6(s.value));
    let fixed = vnet.ip.as_ref().map(|w| (&w.spot, IpAddr::from(w.value)));
    let fixed6 = vnet.ip6.as_ref().map(|w| (&w.spot, IpAddr::from(w.value)));
    for ((spot, wanted), own) in fixed
        .zip(ip.map(IpAddr::from))
        .into_iter()
        .chain(fixed6.zip(ip6.map(IpAddr::from)))
    {
        if wanted != own {
            let message = format!("the lab host's address on vswitch {name:?} is {own}");
            let note = doc.error(spot, message).hint("leave it out");
            doc.push(note.label(Some(doc.place(&vswitch.name.spot)), "the vswitch"));
        }
    }
    let port_only = [
        ("MAC address", vnet.mac.as_ref().map(|w| &w.spot)),
        ("model", vnet.model.as_ref().map(|w| &w.spot)),
        ("queues", vnet.queues.as_ref().map(|w| &w.spot)),
    ];
    for (what, spot) in port_only {
        if let Some(spot) = spot {
            let message = format!("a host has no port of its own, so no {what}");
            doc.push(doc.error(spot, message).hint("leave it out"));
        }
    }
    if vnet.inbound != Impairment::default() || vnet.outbound != Impairment::default() {
        let message = "a host has no port of its own whose frames could be held up";
        let hint = "give the vswitch or the guests' vnets the bandwidth or delay";
        doc.push(doc.error(&vnet.vswitch.spot, message).hint(hint));
    }
    Some(Vnet {
        vswitch: vswitch.name.value.clone(),
        // That of the bridge, which is the kernel's to choose.
        mac: MacAddr::derived([0; 5]),
        ip,
        ip6,
        model: VnetModel::default(),
        queues: 1,
        device: String::new(),
        inbound: Impairment::default(),
        outbound: Impairment::default(),
    })
}

/// Notes external machines that are one and the same, and kinds that cannot be brought up.
pub(super) fn check_machines(doc: &Doc, seats: &[Seat<'_>]) {
    let mut taken: HashMap<(Ipv4Addr, u16), (&Name, &Spot)> = HashMap::new();
    let mut written = HashMap::new();
    for seat in seats {
        if seat.spec.kind.value == KindWord::Container {
            let spot = &seat.spec.kind.spot;
            let note = Note::warning(&spot.path, "containers cannot be brought up yet");
            doc.push(
                note.at(doc.place(spot))
                    .hint("make it a vm to bring this lab up"),
            );
        }
        if seat.spec.kind.value == KindWord::Host {
            check_host_files(doc, seat, &mut written);
        }
        let Some(external) = &seat.spec.external else {
            continue;
        };
        let address = (external.address.value, external.port);
        if let Some((first, spot)) = taken.insert(address, (&seat.name, &external.address.spot)) {
            let message = format!("{} and {first} would be the same machine", seat.name);
            let note = doc.error(&external.address.spot, message);
            let note = note.hint("give each its own address; {{ index }} tells them apart");
            doc.push(note.label(Some(doc.place(spot)), "the other one"));
        }
    }
}

/// Notes files that several host domains would write: they are one machine.
fn check_host_files<'s>(
    doc: &Doc,
    seat: &'s Seat<'_>,
    written: &mut HashMap<&'s str, (&'s Name, &'s Spot)>,
) {
    for file in &seat.spec.files {
        let (path, spot) = (file.to.value.as_str(), &file.to.spot);
        match written.insert(path, (&seat.name, spot)) {
            // Twice in one domain is noted elsewhere.
            Some((first, before)) if *first != seat.name => {
                let message = format!("{first} and {} would both write {path}", seat.name);
                let note = doc.error(spot, message);
                let note =
                    note.hint("they are one machine: {{ index }} in the path tells them apart");
                doc.push(note.label(Some(doc.place(before)), "the other one"));
            }
            _ => {}
        }
    }
}
