//! From a topology as written to a topology: counts expanded, names bound, addresses fixed.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use super::Options;
use super::addresses::{self, Port};
use super::images::{self, Found};
use super::machines::{check_machines, host_vnets};
use super::names;
use super::read::{Doc, Spot, Written};
use super::suggest;
use super::topology::{
    COUNT_MAX, DiskSpec, DomainSpec, GroupSpec, ImageSourceSpec, KindWord, TopologySpec, VnetSpec,
    VswitchSpec, endpoint,
};
use crate::diag::Note;
use crate::model::{
    Bytes, Disk, Domain, DomainKind, Guest, GuestFile, Lab, Name, Topology, Vnet, Vswitch,
};

/// What one domain is made of before addresses are known.
pub(super) struct Seat<'s> {
    pub name: Name,
    index: u32,
    pub spec: &'s DomainSpec,
    group: &'s GroupSpec,
    /// Which vnet of the group it is, and its vswitch.
    pub ports: Vec<(&'s VnetSpec, &'s VswitchSpec)>,
}

/// Resolves a topology. What is wrong is noted, and then the result is a draft that only serves
/// to find more: it lacks whatever could not be resolved.
pub(super) fn resolve(doc: &Doc, spec: &TopologySpec, options: &Options) -> Option<Topology> {
    let lab = options
        .name
        .clone()
        .or_else(|| spec.name.as_ref().map(|name| name.value.clone()))?;
    let images = find_images(doc, spec, options);
    let vswitches: HashMap<&str, &VswitchSpec> = spec
        .vswitches
        .iter()
        .map(|v| (v.name.value.as_str(), v))
        .collect();
    check_subnets(doc, &spec.vswitches);

    let seats = expand(doc, spec, &vswitches);
    check_machines(doc, &seats);
    let ports: Vec<Port<'_>> = seats
        .iter()
        .filter(|seat| seat.spec.kind.value.is_made())
        .flat_map(|seat| {
            seat.ports
                .iter()
                .enumerate()
                .map(|(index, (vnet, vswitch))| Port {
                    domain: &seat.name,
                    index,
                    vswitch,
                    ip: vnet.ip.as_ref(),
                    mac: vnet.mac.as_ref(),
                })
        })
        .collect();
    let mut assigned = addresses::assign(doc, &lab, &ports).into_iter();

    let domains = seats
        .iter()
        .filter_map(|seat| {
            let guest = || {
                Box::new(Guest {
                    libvirt_name: names::libvirt_name(&lab, &seat.name),
                    uuid: names::uuid(&lab, names::Kind::Domain, &seat.name),
                    // Its absence is noted, so the stand-in goes no further than this draft.
                    image: seat
                        .spec
                        .image
                        .as_ref()
                        .unwrap_or(&seat.group.name)
                        .value
                        .clone(),
                    disks: resolve_disks(doc, spec, seat.spec, &images),
                })
            };
            let kind = match seat.spec.kind.value {
                KindWord::Vm => DomainKind::Vm(guest()),
                KindWord::Container => DomainKind::Container(guest()),
                KindWord::Host => DomainKind::Host,
                KindWord::External => {
                    DomainKind::External(endpoint(doc, seat.spec.external.as_ref()?))
                }
            };
            let vnets = match kind {
                DomainKind::Host => host_vnets(doc, seat),
                _ => {
                    let vnets = seat.ports.iter().zip(assigned.by_ref());
                    vnets
                        .map(|((_, vswitch), (mac, ip))| Vnet {
                            vswitch: vswitch.name.value.clone(),
                            mac,
                            ip,
                        })
                        .collect()
                }
            };
            let has_split = !matches!(kind, DomainKind::External(_));
            Some(Domain {
                name: seat.name.clone(),
                group: seat.group.name.value.clone(),
                index: seat.index,
                kind,
                split: has_split.then(|| seat.spec.split.clone()),
                vnets,
                files: seat.spec.files.iter().map(guest_file).collect(),
                boot_timeout: seat.spec.boot_timeout,
            })
        })
        .collect();

    let used: BTreeSet<&Name> = spec
        .domains
        .iter()
        .flat_map(|group| &group.members)
        .filter_map(|d| d.image.as_ref())
        .map(|image| &image.value)
        .collect();
    Some(Topology {
        vars: spec.vars.values.clone(),
        secrets: spec.vars.sources.clone(),
        images: images
            .into_iter()
            .filter(|(name, _)| used.contains(name))
            .filter_map(|(name, found)| Some((name.clone(), found.image?)))
            .collect(),
        vswitches: spec
            .vswitches
            .iter()
            .filter_map(|v| resolve_vswitch(&lab, v))
            .collect(),
        domains,
        lab: Lab { name: lab },
    })
}

fn guest_file(spec: &super::topology::FileSpec) -> GuestFile {
    GuestFile {
        template: spec.template.value.clone(),
        to: spec.to.value.clone(),
        mode: spec.mode,
        vars: spec.vars.clone(),
    }
}

fn resolve_vswitch(lab: &Name, spec: &VswitchSpec) -> Option<(Name, Vswitch)> {
    let subnet = spec.subnet.as_ref()?.value;
    let name = &spec.name.value;
    let vswitch = Vswitch {
        mode: spec.mode,
        subnet,
        gateway: addresses::gateway(subnet),
        mtu: spec.mtu,
        bridge: names::bridge(lab, name),
        network: names::libvirt_name(lab, name),
        uuid: names::uuid(lab, names::Kind::Network, name),
    };
    Some((name.clone(), vswitch))
}

fn find_images<'s>(
    doc: &Doc,
    spec: &'s TopologySpec,
    options: &Options,
) -> BTreeMap<&'s Name, Found> {
    let declared: HashSet<&Name> = spec.images.iter().map(|image| &image.name.value).collect();
    let mut users: HashSet<&Name> = HashSet::new();
    for domain in spec.domains.iter().flat_map(|group| &group.members) {
        let Some(image) = &domain.image else { continue };
        users.insert(&image.value);
        if !declared.contains(&image.value) {
            let known = spec.images.iter().map(|i| i.name.value.as_str());
            let hint = suggest::advice(&image.value, "images in this file", known);
            doc.push(
                doc.error(
                    &image.spot,
                    format!("unknown image {:?}", image.value.as_str()),
                )
                .hint(hint),
            );
        }
    }
    let mut found = BTreeMap::new();
    for image in &spec.images {
        let name = &image.name.value;
        let used = users.contains(name);
        if !used {
            let spot = &image.name.spot;
            let note = Note::warning(
                &spot.path,
                format!("no domain uses image {:?}", name.as_str()),
            );
            doc.push(
                note.at(doc.place(spot))
                    .hint("leave it out, or give it to a domain"),
            );
        }
        found.insert(name, images::find(doc, image, used, &options.image_keys));
    }
    found
}

/// Notes subnets that overlap. After sorting, one that overlaps any earlier one overlaps the
/// earlier one that reaches farthest.
fn check_subnets(doc: &Doc, vswitches: &[VswitchSpec]) {
    let mut subnets: Vec<_> = vswitches
        .iter()
        .filter_map(|v| v.subnet.as_ref().map(|s| (s, &v.name.value)))
        .collect();
    subnets.sort_by_key(|(subnet, _)| (subnet.value.network(), subnet.value.prefix_len()));
    let mut farthest: Option<(&Written<ipnet::Ipv4Net>, &Name)> = None;
    for (subnet, name) in subnets {
        if let Some((before, other)) =
            farthest.filter(|(b, _)| b.value.broadcast() >= subnet.value.network())
        {
            let (late, early, early_name) = match before.spot.span.start < subnet.spot.span.start {
                true => (subnet, before, other),
                false => (before, subnet, name),
            };
            let message = format!(
                "subnet {} overlaps {} of vswitch {:?}",
                late.value,
                early.value,
                early_name.as_str()
            );
            let note = doc
                .error(&late.spot, message)
                .hint("give each vswitch a subnet of its own");
            doc.push(note.label(Some(doc.place(&early.spot)), "the other subnet"));
        }
        if farthest.is_none_or(|(b, _)| subnet.value.broadcast() > b.value.broadcast()) {
            farthest = Some((subnet, name));
        }
    }
}

/// Expands counts, and binds vnets to vswitches.
fn expand<'s>(
    doc: &Doc,
    spec: &'s TopologySpec,
    vswitches: &HashMap<&str, &'s VswitchSpec>,
) -> Vec<Seat<'s>> {
    let mut seats = Vec::new();
    let mut taken: HashMap<Name, &Spot> = HashMap::new();
    for group in &spec.domains {
        if seats.len() as u64 + u64::from(group.count) > COUNT_MAX {
            let message = format!("more than {COUNT_MAX} domains in one lab");
            doc.push(doc.error(&group.name.spot, message).hint("lower a count"));
            break;
        }
        check_fixed(doc, group);
        for member in &group.members {
            check_files(doc, member);
        }
        // One note a vnet is enough: the other domains of the group fail alike.
        let mut failed = HashSet::new();
        for index in 1..=group.count {
            let Some(member) = group.member(index) else {
                break;
            };
            let Some(name) = seat_name(doc, group, index) else {
                break;
            };
            if let Some(first) = taken.get(&name) {
                let message = format!("two domains would be called {:?}", name.as_str());
                let note = doc.error(&group.name.spot, message);
                let note = note.hint("a count of N makes NAME1 … NAMEN: rename one of the two");
                doc.push(note.label(Some(doc.place(first)), "the other one"));
                break;
            }
            taken.insert(name.clone(), &group.name.spot);
            let mut ports: Vec<(&VnetSpec, &VswitchSpec)> = Vec::new();
            for (position, vnet) in member.vnets.iter().enumerate() {
                if failed.contains(&position) {
                    continue;
                }
                match bind(doc, spec, (vnet, group, index), vswitches) {
                    Some(vswitch) => {
                        if let Some((first, _)) = ports
                            .iter()
                            .find(|(_, v)| v.name.value == vswitch.name.value)
                        {
                            let name = vswitch.name.value.as_str();
                            let message = format!("a second vnet on vswitch {name:?}");
                            let note = doc.error(&vnet.vswitch.spot, message);
                            let note =
                                note.hint("a domain has one vnet on each vswitch: remove one");
                            doc.push(note.label(Some(doc.place(&first.vswitch.spot)), "the first"));
                            failed.insert(position);
                        } else {
                            ports.push((vnet, vswitch));
                        }
                    }
                    None => {
                        failed.insert(position);
                    }
                }
            }
            seats.push(Seat {
                name,
                index,
                spec: member,
                group,
                ports,
            });
        }
    }
    seats
}

fn seat_name(doc: &Doc, group: &GroupSpec, index: u32) -> Option<Name> {
    if group.count == 1 {
        return Some(group.name.value.clone());
    }
    match format!("{}{index}", group.name.value).parse() {
        Ok(name) => Some(name),
        Err(e) => {
            let e: crate::model::ParseNameError = e;
            doc.push(
                doc.error(&group.name.spot, e.to_string())
                    .hint("the number counts as well: shorten the name"),
            );
            None
        }
    }
}

fn bind<'s>(
    doc: &Doc,
    spec: &TopologySpec,
    (vnet, group, index): (&VnetSpec, &GroupSpec, u32),
    vswitches: &HashMap<&str, &'s VswitchSpec>,
) -> Option<&'s VswitchSpec> {
    let written = &vnet.vswitch;
    let name = &written.value;
    let found = vswitches.get(name.as_str()).copied();
    if found.is_none() {
        let known = spec.vswitches.iter().map(|v| v.name.value.as_str());
        let message = match group.count {
            1 => format!("unknown vswitch {name:?}"),
            _ => format!("unknown vswitch {name:?} (for index {index})"),
        };
        let hint = suggest::advice(name, "vswitches in this file", known);
        doc.push(doc.error(&written.spot, message).hint(hint));
    }
    found
}

/// Notes addresses that several domains of one group would share.
fn check_fixed(doc: &Doc, group: &GroupSpec) {
    let mut given: HashMap<(&Spot, String), u32> = HashMap::new();
    let each = if group.is_uniform() { group.count } else { 1 };
    for vnet in group.members.iter().flat_map(|member| &member.vnets) {
        let ip = vnet.ip.as_ref().map(|w| (&w.spot, w.value.to_string()));
        let mac = vnet.mac.as_ref().map(|w| (&w.spot, w.value.to_string()));
        for address in ip.into_iter().chain(mac) {
            *given.entry(address).or_default() += each;
        }
    }
    for ((spot, value), domains) in given.into_iter().filter(|(_, domains)| *domains > 1) {
        let message = format!("{value} cannot be given to {domains} domains");
        let hint = "leave it out: each gets one of its own; or let {{ index }} tell them apart";
        doc.push(doc.error(spot, message).hint(hint));
    }
}

fn check_files(doc: &Doc, group: &DomainSpec) {
    let mut taken: HashMap<&str, &Spot> = HashMap::new();
    for file in &group.files {
        if let Some(first) = taken.insert(&file.to.value, &file.to.spot) {
            let note = doc.error(&file.to.spot, format!("{} is written twice", file.to.value));
            doc.push(
                note.hint("keep one of them")
                    .label(Some(doc.place(first)), "first here"),
            );
        }
    }
}

/// The disks of a group's domains: the root overlay first when the image has a disk.
fn resolve_disks(
    doc: &Doc,
    spec: &TopologySpec,
    group: &DomainSpec,
    images: &BTreeMap<&Name, Found>,
) -> Vec<Disk> {
    let mut taken: HashMap<&str, &Spot> = HashMap::new();
    for disk in &group.disks {
        if let Some(first) = taken.insert(&disk.name.value, &disk.name.spot) {
            let message = format!("two disks are called {:?}", disk.name.value.as_str());
            let note = doc
                .error(&disk.name.spot, message)
                .hint("rename one of them");
            doc.push(note.label(Some(doc.place(first)), "the other one"));
        }
    }
    let (root, data): (Vec<_>, Vec<_>) = group
        .disks
        .iter()
        .partition(|d| d.name.value.as_str() == "root");
    let image = group
        .image
        .as_ref()
        .and_then(|image| images.get(&image.value));
    let has_disk = image.is_none_or(|found| found.has_disk);
    if let (Some(root), Some(found), Some(image)) = (root.first(), image, &group.image) {
        check_root(doc, spec, root, found, image);
    }
    let size = |disk: &DiskSpec| disk.size.as_ref().map(|size| size.value);
    // "root" is a name, and so is every name that was read as one.
    let root_name = "root".parse::<Name>().ok();
    let overlay = root_name.filter(|_| has_disk).map(|name| Disk {
        name,
        size: root.first().and_then(|disk| size(disk)),
    });
    let data = data.into_iter().map(|disk| Disk {
        name: disk.name.value.clone(),
        size: size(disk),
    });
    overlay.into_iter().chain(data).collect()
}

fn check_root(
    doc: &Doc,
    spec: &TopologySpec,
    root: &DiskSpec,
    found: &Found,
    image: &Written<Name>,
) {
    if !found.has_disk {
        let message = format!(
            "image {:?} has no disk, so there can be no root disk",
            image.value.as_str()
        );
        let note = doc
            .error(&root.name.spot, message)
            .hint("give the disk another name, or take an image with a disk");
        doc.push(note.label(Some(doc.place(&image.spot)), "the image"));
        return;
    }
    let (Some(size), Some(least)) = (&root.size, found.size) else {
        return;
    };
    if size.value >= least {
        return;
    }
    let message = format!(
        "a root disk of {} is smaller than its image, which has {}",
        size.value,
        exact(least)
    );
    let declared = spec.images.iter().find(|i| i.name.value == image.value);
    let place = declared.map(|image| match &image.source {
        Some(ImageSourceSpec::Build {
            size: Some(size), ..
        }) => doc.place(&size.spot),
        _ => doc.place(&image.name.spot),
    });
    let note = doc
        .error(&size.spot, message)
        .hint("make it larger, or leave size out: it is as large as the image then");
    doc.push(note.label(place, "the image"));
}

fn exact(bytes: Bytes) -> String {
    format!("{bytes} ({} bytes)", bytes.0)
}
