//! Checks of guest settings: whether the domain's machine can take them, and the image that has
//! its packages.

use std::collections::BTreeSet;

use super::read::Doc;
use super::topology::SettingsSpec;
use crate::model::{Digest, Domain, DomainKind, Image, ImageRecipe, ImageSource, Name, Topology};
use crate::render::System;

/// Checks the settings of all domains, and gives those with packages of their own an image that has
/// them. `spec_of` is what a domain's file says.
pub(super) fn settle<'s>(
    doc: &Doc,
    topology: &mut Topology,
    spec_of: impl Fn(&Domain) -> Option<&'s SettingsSpec>,
) {
    let mut used: BTreeSet<Name> = BTreeSet::new();
    for domain in &mut topology.domains {
        let Some(spec) = spec_of(domain) else {
            continue;
        };
        let image = domain.guest().map(|guest| guest.image.clone());
        let found = image.as_ref().and_then(|name| topology.images.get(name));
        check(doc, spec, &domain.kind, found);
        let derived = match (&image, found) {
            (Some(name), Some(image)) if !spec.packages.is_empty() => {
                with_packages(name, image, &spec.packages)
            }
            _ => None,
        };
        let name = match derived {
            Some((name, image)) => {
                topology.images.insert(name.clone(), image);
                Some(name)
            }
            None => image,
        };
        if let (DomainKind::Vm(guest) | DomainKind::Container(guest), Some(name)) =
            (&mut domain.kind, name)
        {
            guest.image.clone_from(&name);
            used.insert(name);
        }
    }
    topology.images.retain(|name, _| used.contains(name));
}

/// Notes what a machine of this kind cannot take.
fn check(doc: &Doc, spec: &SettingsSpec, kind: &DomainKind, image: Option<&Image>) {
    let refuse = |key: &str, message: String, hint: &str| {
        if let Some(spot) = spec.spots.get(key) {
            doc.push(doc.error(spot, message).hint(hint));
        }
    };
    if matches!(kind, DomainKind::Host | DomainKind::External(_)) {
        for key in spec.spots.keys().filter(|key| !key.contains('.')) {
            let message = format!("labrig changes no {key} of a machine that it did not make");
            refuse(key, message, "set it there by hand, and leave it out here");
        }
        return;
    }
    let Some(image) = image else { return };
    if image.cloud_init {
        for key in spec.spots.keys().filter(|key| !key.contains('.')) {
            let message = format!("labrig brings no {key} to an image with cloud-init");
            refuse(
                key,
                message,
                "put it into the image, or take one that labrig builds",
            );
        }
        return;
    }
    if System::of(&image.source) == System::Micro {
        for (key, what) in [
            ("services", "no services"),
            ("users", "no users but root"),
            ("packages", "no packages"),
        ] {
            let message = format!("a micro image has {what}");
            refuse(key, message, "leave it out, or take an image with a suite");
        }
        for &limit in spec.settings.limits.keys() {
            if !System::Micro.takes(limit) {
                let message = format!("a micro image cannot set limit {limit}");
                let hint = "leave it out, or take an image with a suite";
                refuse(&format!("limits.{limit}"), message, hint);
            }
        }
    } else if !matches!(image.source, ImageSource::Build(_)) {
        let message = "packages go into images that labrig builds".to_owned();
        let hint = "put them into the image, or take one with a build";
        refuse("packages", message, hint);
    }
}

/// The image with packages more; none when it takes none.
fn with_packages(name: &Name, image: &Image, more: &[String]) -> Option<(Name, Image)> {
    let ImageSource::Build(recipe) = &image.source else {
        return None;
    };
    let mut recipe = recipe.clone();
    if recipe.is_micro() {
        return None;
    }
    let (ImageRecipe::Debian { packages, .. } | ImageRecipe::Layer { packages, .. }) = &mut recipe
    else {
        return None;
    };
    packages.extend_from_slice(more);
    packages.sort_unstable();
    packages.dedup();
    let image = Image::built(recipe);
    Some((derived_name(name, image.key)?, image))
}

/// A name no image of the file has, unless it is the same one.
fn derived_name(name: &Name, key: Digest) -> Option<Name> {
    let digits = &key.to_string()[..8];
    let room = Name::MAX - digits.len() - 1;
    let stem = name.as_str();
    let stem = stem[..stem.len().min(room)].trim_end_matches('-');
    format!("{stem}-{digits}").parse().ok()
}
