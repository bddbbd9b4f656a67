//! Machines that labrig does not make: the lab host and external ones, checked against each other.

use std::collections::HashMap;
use std::net::Ipv4Addr;

use super::addresses;
use super::read::{Doc, Spot};
use super::resolve::Seat;
use super::topology::KindWord;
use crate::diag::Note;
use crate::model::{MacAddr, Name, Vnet};

/// The lab host's own addresses on the vswitches that a host domain names.
pub(super) fn host_vnets(doc: &Doc, seat: &Seat<'_>) -> Vec<Vnet> {
    let mut vnets = Vec::new();
    for (vnet, vswitch) in &seat.ports {
        let Some(subnet) = &vswitch.subnet else {
            continue;
        };
        let ip = addresses::gateway(subnet.value);
        let name = vswitch.name.value.as_str();
        if let Some(wrong) = vnet.ip.as_ref().filter(|wanted| wanted.value != ip) {
            let message = format!("the lab host's address on vswitch {name:?} is {ip}");
            let note = doc.error(&wrong.spot, message).hint("leave ip out");
            doc.push(note.label(Some(doc.place(&subnet.spot)), "the subnet"));
        }
        if let Some(mac) = &vnet.mac {
            let message = "a host has no port of its own, so no MAC address";
            doc.push(doc.error(&mac.spot, message).hint("leave mac out"));
        }
        vnets.push(Vnet {
            vswitch: vswitch.name.value.clone(),
            // That of the bridge, which is the kernel's to choose.
            mac: MacAddr::derived([0; 5]),
            ip,
        });
    }
    vnets
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
