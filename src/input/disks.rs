//! A domain's disks: bound to its image, and checked against each other and against its files.

use std::collections::{BTreeMap, HashMap};
use std::path::PathBuf;

use super::images::Found;
use super::read::{Doc, Spot, Written};
use super::topology::{DiskSpec, DomainSpec, GroupSpec, ImageSourceSpec, ImageSpec};
use crate::diag::Note;
use crate::model::{Bytes, Disk, DiskSource, Filesystem, Image, ImageSource, Name};

/// The disks of a domain: the root overlay first when the image has a disk.
pub(super) fn resolve(
    doc: &Doc,
    domain: &DomainSpec,
    declared: &HashMap<&str, &ImageSpec>,
    images: &BTreeMap<&Name, Found>,
) -> Vec<Disk> {
    let image = domain.image.as_ref();
    let found = image.and_then(|image| images.get(&image.value));
    check_names(doc, &domain.disks);
    check_mounts(doc, domain);
    let (root, data): (Vec<_>, Vec<_>) = domain.disks.iter().partition(|disk| disk.is_root());
    let has_disk = found.is_none_or(|found| found.has_disk);
    if let (Some(found), Some(image)) = (found, image) {
        let declared = declared.get(image.value.as_str()).copied();
        if let Some(root) = root.first() {
            check_root(doc, declared, root, found, image);
        }
        if let Some(made) = &found.image {
            for disk in &data {
                check_filesystem(doc, disk, domain, made, image);
            }
        }
    }
    let overlay = match root.first() {
        Some(root) => Some(root.disk.clone()),
        // "root" is a name.
        None => "root".parse().ok().map(|name| Disk::made(name, None)),
    };
    let data = data.into_iter().map(|spec| at_home(doc, spec));
    overlay
        .filter(|_| has_disk)
        .into_iter()
        .chain(data)
        .collect()
}

/// A disk whose file is found from where the topology says.
fn at_home(doc: &Doc, spec: &DiskSpec) -> Disk {
    let mut disk = spec.disk.clone();
    if let (DiskSource::File { path, .. }, Some(written)) = (&mut disk.source, &spec.path) {
        let beside = doc.beside(written);
        // libvirt knows no directory that a path could be relative to.
        *path = std::path::absolute(&beside).unwrap_or(beside);
    }
    disk
}

fn check_names(doc: &Doc, disks: &[DiskSpec]) {
    let mut taken: HashMap<&str, &Spot> = HashMap::new();
    for disk in disks {
        if let Some(first) = taken.insert(&disk.name.value, &disk.name.spot) {
            let message = format!("two disks are called {:?}", disk.name.value.as_str());
            let note = doc
                .error(&disk.name.spot, message)
                .hint("rename one of them");
            doc.push(note.label(Some(doc.place(first)), "the other one"));
        }
    }
}

/// Notes mount points that are taken twice or hide something.
fn check_mounts(doc: &Doc, domain: &DomainSpec) {
    let mounts: Vec<&Written<String>> = domain
        .disks
        .iter()
        .filter_map(|disk| disk.mount.as_ref())
        .collect();
    for (i, mount) in mounts.iter().enumerate() {
        if let Some(first) = mounts[..i].iter().find(|first| first.value == mount.value) {
            let message = format!("two disks are mounted on {}", mount.value);
            let note = doc
                .error(&mount.spot, message)
                .hint("give each a directory of its own");
            doc.push(note.label(Some(doc.place(&first.spot)), "the other one"));
        }
        for outer in &mounts {
            if is_below(&mount.value, &outer.value) {
                let message = format!("{} is inside {}, another disk", mount.value, outer.value);
                let note = Note::warning(&mount.spot.path, message).at(doc.place(&mount.spot));
                let note = note.hint("it is mounted after it; if that is not meant, move one");
                doc.push(note.label(Some(doc.place(&outer.spot)), "the outer one"));
            }
        }
        for file in &domain.files {
            if is_below(&file.to.value, &mount.value) {
                let message = format!("{} would be hidden by the disk", file.to.value);
                let note = doc.error(&file.to.spot, message);
                let note = note.hint(
                    "files are there before disks are mounted: write it elsewhere, or in a playbook's setup",
                );
                doc.push(note.label(Some(doc.place(&mount.spot)), "the disk's mount point"));
            }
        }
    }
}

fn is_below(path: &str, directory: &str) -> bool {
    path.strip_prefix(directory)
        .is_some_and(|rest| rest.starts_with('/'))
}

/// Notes filesystems that the image has no program for, where that is known.
fn check_filesystem(
    doc: &Doc,
    disk: &DiskSpec,
    domain: &DomainSpec,
    image: &Image,
    written: &Written<Name>,
) {
    let more = &domain.settings.packages;
    let (Some(filesystem), ImageSource::Build(recipe)) = (&disk.filesystem, &image.source) else {
        return;
    };
    let (what, hint) = match filesystem.value {
        Filesystem::Ext4 => return,
        Filesystem::Xfs if recipe.is_micro() => (
            "a micro image has no mkfs.xfs",
            "take ext4, or a Debian image with the package xfsprogs",
        ),
        Filesystem::Xfs
            if recipe.has_package("xfsprogs") || more.iter().any(|p| p == "xfsprogs") =>
        {
            return;
        }
        Filesystem::Xfs => (
            "the image has no mkfs.xfs",
            "add xfsprogs to the image's packages, or take ext4",
        ),
    };
    let note = doc.error(&filesystem.spot, what).hint(hint);
    doc.push(note.label(Some(doc.place(&written.spot)), "the image"));
}

fn check_root(
    doc: &Doc,
    declared: Option<&ImageSpec>,
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
    let place = declared.map(|image| match &image.source {
        Some(ImageSourceSpec::Build(build)) => match &build.size {
            Some(size) => doc.place(&size.spot),
            None => doc.place(&image.name.spot),
        },
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

/// Notes volumes and files that several disks are.
pub(super) fn check_sharing(doc: &Doc, groups: &[GroupSpec]) {
    let mut taken: HashMap<PathBuf, &Written<PathBuf>> = HashMap::new();
    let members = groups
        .iter()
        .flat_map(|group| group.members.iter().map(move |domain| (group, domain)));
    for (group, domain) in members {
        for path in domain.disks.iter().filter_map(|disk| disk.path.as_ref()) {
            let first = taken.insert(doc.beside(path), path);
            let is_shared = first.is_some_and(|first| first.spot == path.spot);
            if group.is_uniform() || is_shared {
                let message = format!(
                    "{} cannot be the disk of {} domains",
                    path.value.display(),
                    group.count
                );
                let note = doc.error(&path.spot, message);
                doc.push(note.hint("give each one of its own, as in /dev/vg0/{{ name }}"));
            } else if let Some(first) = first {
                let message = format!("{} would be two disks", path.value.display());
                let note = doc
                    .error(&path.spot, message)
                    .hint("a disk belongs to one domain: name another one");
                doc.push(note.label(Some(doc.place(&first.spot)), "the other one"));
            }
        }
    }
}
