//! From a topology as written to a topology: counts expanded, names bound, addresses fixed.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use tera::Context;

use super::Options;
use super::addresses::{self, Port};
use super::disks;
use super::files::InputFile;
use super::guest_settings;
use super::images::{Finder, Found};
use super::machines::{check_machines, host_vnets};
use super::names;
use super::networks;
use super::read::{Doc, Spot};
use super::shares::{self, Claim, ClaimKind};
use super::suggest;
use super::templates::Checker;
use super::topology::{
    COUNT_MAX, DomainSpec, GroupSpec, ImageSpec, KindWord, TopologySpec, VnetSpec, VswitchSpec,
    endpoint,
};
use crate::diag::Note;
use crate::model::{
    Bytes, Domain, DomainKind, Guest, GuestFile, Image, ImageSource, Lab, Name, Topology, Vnet,
};
use crate::render::Templates;

/// Memory with which our micro images boot for sure: with 80 MiB the kernel panics while it unpacks
/// them.
const MICRO_LEAST: Bytes = Bytes::mib(128);

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
///
/// Gives the files that images copy as well.
pub(super) fn resolve(
    doc: &Doc,
    spec: &TopologySpec,
    options: &Options,
    templates: &Templates,
) -> Option<(Topology, Vec<InputFile>)> {
    let lab = options
        .name
        .clone()
        .or_else(|| spec.name.as_ref().map(|name| name.value.clone()))
        // Its absence is noted, so the stand-in goes no further than this draft.
        .or_else(|| "lab".parse().ok())?;
    let lab = Lab { name: lab };
    let (images, copied) = find_images(doc, &lab, spec, options, templates);
    let lab = lab.name;
    let declared: HashMap<&str, &ImageSpec> = spec
        .images
        .iter()
        .map(|image| (image.name.value.as_str(), image))
        .collect();
    let vswitches: HashMap<&str, &VswitchSpec> = spec
        .vswitches
        .iter()
        .map(|v| (v.name.value.as_str(), v))
        .collect();
    networks::check(doc, &spec.vswitches);

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
                    ip6: vnet.ip6.as_ref(),
                    mac: vnet.mac.as_ref(),
                })
        })
        .collect();
    let mut assigned = addresses::assign(doc, &lab, &ports).into_iter();

    // An external machine is no part of the lab host, so it claims nothing of it.
    let claims: Vec<_> = seats
        .iter()
        .filter(|seat| seat.spec.kind.value != KindWord::External)
        .map(|seat| Claim {
            name: &seat.name,
            group: &seat.group.name,
            kind: match seat.spec.kind.value {
                KindWord::Container => ClaimKind::Container,
                KindWord::Host => ClaimKind::Host,
                KindWord::Vm | KindWord::External => ClaimKind::Vm,
            },
            split: &seat.spec.split,
            machine: &seat.spec.machine,
        })
        .collect();
    let (host, shares) = shares::divide(doc, &spec.host, options.host.as_ref(), &claims);
    let mut shares = shares.into_iter();
    let shares: Vec<_> = seats
        .iter()
        .map(|seat| match seat.spec.kind.value {
            KindWord::External => None,
            _ => shares.next(),
        })
        .collect();
    for (seat, share) in seats.iter().zip(&shares) {
        let Some((split, _)) = share else { continue };
        // With a vnet that is on no vswitch, nothing can be said of the others' places.
        if seat.ports.len() == seat.spec.vnets.len() {
            let image = seat.spec.image.as_ref();
            let guest = networks::GuestSide {
                image: image
                    .and_then(|name| Some((name, images.get(&name.value)?.image.as_ref()?))),
                vcpus: split.vcpus,
            };
            check_memory(
                doc,
                seat.spec,
                guest.image.map(|(_, image)| image),
                split.memory,
            );
            networks::check_vnets(doc, &seat.group.name.spot, &seat.ports, &guest);
        }
    }

    let domains = seats
        .iter()
        .zip(shares)
        .filter_map(|(seat, share)| {
            let (split, machine) = share.unzip();
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
                    machine: machine.clone().unwrap_or_default(),
                    disks: disks::resolve(doc, seat.spec, &declared, &images),
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
                        .enumerate()
                        .map(|(i, ((spec, vswitch), assigned))| Vnet {
                            vswitch: vswitch.name.value.clone(),
                            mac: assigned.mac,
                            ip: assigned.ip,
                            ip6: assigned.ip6,
                            model: spec.model.as_ref().map(|w| w.value).unwrap_or_default(),
                            queues: spec.queues.as_ref().map_or(1, |w| w.value),
                            device: names::port(&lab, &seat.name, i),
                            inbound: spec.inbound,
                            outbound: spec.outbound,
                        })
                        .collect()
                }
            };
            Some(Domain {
                name: seat.name.clone(),
                group: seat.group.name.value.clone(),
                index: seat.index,
                kind,
                split,
                vnets,
                files: seat.spec.files.iter().map(guest_file).collect(),
                instances: seat
                    .spec
                    .instances
                    .iter()
                    .map(|spec| spec.instance.clone())
                    .collect(),
                settings: seat.spec.settings.settings.clone(),
                boot_timeout: seat.spec.boot_timeout,
            })
        })
        .collect();

    disks::check_sharing(doc, &spec.domains);

    let used: BTreeSet<&Name> = spec
        .domains
        .iter()
        .flat_map(|group| &group.members)
        .filter_map(|d| d.image.as_ref())
        .map(|image| &image.value)
        .collect();
    let mut topology = Topology {
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
            .filter_map(|v| networks::resolve(&lab, v))
            .collect(),
        domains,
        host,
        lab: Lab { name: lab },
    };
    let groups = spec.domains.iter();
    let groups: HashMap<&Name, &GroupSpec> =
        groups.map(|group| (&group.name.value, group)).collect();
    guest_settings::settle(doc, &mut topology, |domain| {
        let member = groups.get(&domain.group)?.member(domain.index)?;
        Some(&member.settings)
    });
    Some((topology, copied))
}

/// Warns of guests that have too little memory to boot.
fn check_memory(doc: &Doc, spec: &DomainSpec, image: Option<&Image>, memory: Bytes) {
    let is_micro = image.is_some_and(
        |image| matches!(&image.source, ImageSource::Build(recipe) if recipe.is_micro()),
    );
    if let Some(written) = spec
        .split
        .memory
        .as_ref()
        .filter(|_| is_micro && memory < MICRO_LEAST)
    {
        let message = format!("a micro image does not boot with {memory}");
        let note = Note::warning(&written.spot.path, message).at(doc.place(&written.spot));
        doc.push(note.hint(format!("it needs about {MICRO_LEAST}")));
    }
}

fn guest_file(spec: &super::topology::FileSpec) -> GuestFile {
    GuestFile {
        template: spec.template.value.clone(),
        to: spec.to.value.clone(),
        mode: spec.mode,
        vars: spec.vars.clone(),
    }
}

/// Looks at all images; gives them, and the files that they copy.
fn find_images<'s>(
    doc: &Doc,
    lab: &Lab,
    spec: &'s TopologySpec,
    options: &Options,
    templates: &Templates,
) -> (BTreeMap<&'s Name, Found>, Vec<InputFile>) {
    let declared: HashSet<&Name> = spec.images.iter().map(|image| &image.name.value).collect();
    let mut users: BTreeSet<&Name> = spec.images.iter().filter_map(ImageSpec::base).collect();
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
    for image in &spec.images {
        let name = &image.name.value;
        if !users.contains(name) {
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
    }
    // What goes into an image is kept with it: no secrets.
    let mut context = Context::new();
    context.insert("lab", lab);
    context.insert("vars", &spec.vars.values);
    let mut checker = Checker::new(doc, templates, true, Vec::new());
    checker.in_image = true;
    Finder::new(
        doc,
        &spec.images,
        &users,
        &options.image_keys,
        &context,
        checker,
    )
    .find_all(&spec.images)
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
        let ip6 = vnet.ip6.as_ref().map(|w| (&w.spot, w.value.to_string()));
        let mac = vnet.mac.as_ref().map(|w| (&w.spot, w.value.to_string()));
        for address in ip.into_iter().chain(ip6).chain(mac) {
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
