//! A topology file as written: every value with its place, defaults filled, nothing bound yet.
//! One file a section: its table of keys, what is read, and how.
//!
//! What is wrong is noted and left out here, so that later checks still see the rest.

mod disks;
mod domains;
mod guest;
mod host;
mod images;
mod impairments;
mod instances;
mod machine;
mod settings;
mod split;
mod vnets;
mod vswitches;

use std::path::PathBuf;
use std::time::Duration;

pub(super) use disks::DiskSpec;
pub(super) use domains::{COUNT_MAX, DomainSpec, GroupSpec};
pub(super) use guest::FileSpec;
pub(super) use host::HostSpec;
pub(super) use images::{
    BuildContentSpec, BuildFileSpec, BuildSpec, Ground, ImageSourceSpec, ImageSpec, PathSpec,
};
pub(super) use instances::InstanceSpec;
pub(super) use machine::MachineSpec;
pub(super) use settings::SettingsSpec;
pub(super) use split::{Amount, PinSpec, SplitSpec};
pub(super) use vnets::VnetSpec;
pub(super) use vswitches::VswitchSpec;

use super::Options;
use super::expressions::Expressions;
use super::read::{At, Doc, Fields, Written};
use super::shape::{Form, Key, NAME, Shape};
use super::tree::Node;
use super::vars::Vars;
use crate::model::{Bytes, Name, Seconds};

/// The only version of the topology language.
const VERSION: u64 = 1;

/// Sections whose expressions are filled in domain by domain; variables hold none.
const RENDERED_LATER: [&str; 4] = ["vars", "defaults", "groups", "domains"];

/// A topology file.
pub(super) const TOPOLOGY: Shape = Shape::merged(
    "A lab: what it is made of.",
    &[
        Key::required(
            "version",
            Form::Whole {
                least: 1,
                most: u64::MAX,
            },
            "1",
            "Version of this language.",
        ),
        Key::required("name", NAME, "quickstart", "Name of the lab."),
        Key::new(
            "include",
            Form::List(&Form::Text),
            "[common.yaml]",
            "Topology files that this one is laid over, in order, relative to this file.",
        ),
        Key::new(
            "vars",
            Form::Keyed(&Form::Any),
            "{users: 100}",
            "Variables: values, or {env: NAME} for a secret of the environment. `--set NAME=VALUE` gives one another value.",
        ),
        Key::new(
            "host",
            Form::Map(&host::HOST),
            "{threads: 256, memory: 256GiB}",
            "The host that splits divide; measured when left out.",
        ),
        Key::new(
            "images",
            Form::Named(&Form::Map(&images::IMAGE)),
            "{micro: {build: {micro: {}}}}",
            "Images by name.",
        ),
        Key::new(
            "vswitches",
            Form::Named(&Form::Map(&vswitches::VSWITCH)),
            "{data: {subnet: 10.10.0.0/24}}",
            "Virtual switches by name.",
        ),
        Key::required(
            "domains",
            Form::Named(&Form::Map(&domains::DOMAIN)),
            "{db: {image: …, split: {cpus: 1, memory: 512MiB}, vnets: [{vswitch: data}]}}",
            "Machines by name.",
        ),
        Key::new(
            "defaults",
            Form::Map(&domains::GROUP),
            "{image: micro}",
            "Keys of every domain that does not say otherwise.",
        ),
        Key::new(
            "groups",
            Form::Named(&Form::Map(&domains::GROUP)),
            "{web: {image: micro}}",
            "Keys of the domains that name the group.",
        ),
    ],
);

pub(super) struct TopologySpec {
    pub name: Option<Written<Name>>,
    pub vars: Vars,
    pub host: HostSpec,
    pub images: Vec<ImageSpec>,
    pub vswitches: Vec<VswitchSpec>,
    pub domains: Vec<GroupSpec>,
}

impl TopologySpec {
    /// Reads a topology, and fills in its expressions.
    pub fn read(doc: &Doc, root: &mut Node, options: &Options) -> Option<Self> {
        let vars = Vars::read(
            doc,
            At::top(doc, root).section("vars").as_ref(),
            &options.set,
        );
        let mut expressions = Expressions::new(doc, &vars);
        let name = read_name(doc, root, &expressions);
        let lab = options
            .name
            .as_ref()
            .or(name.as_ref().map(|name| &name.value));
        if let Some(lab) = lab {
            expressions.set_lab(lab);
        }
        expressions.render_sections(root, &TOPOLOGY, &RENDERED_LATER);

        let top = At::top(doc, root);
        let fields = top.fields(&TOPOLOGY)?;
        version(&fields, VERSION)?;
        let (defaults, groups) = (fields.get("defaults"), fields.get("groups"));
        let sources = domains::Sources::new(doc, &expressions, defaults.as_ref(), groups.as_ref());
        let spec = Self {
            name,
            host: fields
                .get("host")
                .map(|at| host::host(&at))
                .unwrap_or_default(),
            images: named(
                fields.get("images"),
                "micro: {build: {micro: {}}}",
                images::image,
            ),
            vswitches: named(
                fields.get("vswitches"),
                "data: {subnet: 10.10.0.0/24}",
                vswitches::vswitch,
            ),
            domains: named(
                fields.get("domains"),
                "db: {image: …, split: {cpus: 1, memory: 512MiB}, vnets: [{vswitch: data}]}",
                |name, at| sources.group(name, at),
            ),
            vars: Vars::default(),
        };
        sources.warn_of_idle_groups();
        Some(Self { vars, ..spec })
    }
}

/// The lab's name, which expressions elsewhere may hold.
fn read_name(doc: &Doc, root: &Node, expressions: &Expressions<'_>) -> Option<Written<Name>> {
    let at = At::top(doc, root).section("name")?;
    let mut node = at.node().clone();
    expressions.render(&mut node, &NAME, at.path(), None);
    at.of(&node).parse("quickstart")
}

/// Checks the `version` key. With another version, nothing else of the file can be judged.
pub(super) fn version(fields: &Fields<'_>, known: u64) -> Option<()> {
    let at = fields.get("version")?;
    let version = at.whole()?;
    if version != known {
        at.error(
            format!("version {version} of this language is not known"),
            format!("this labrig reads version {known}"),
        );
        return None;
    }
    Some(())
}

fn named<T>(
    at: Option<At<'_>>,
    example: &str,
    read: impl Fn(Written<Name>, &At<'_>) -> Option<T>,
) -> Vec<T> {
    let entries = at.map(|at| at.named(example)).unwrap_or_default();
    entries
        .into_iter()
        .filter_map(|(name, at)| read(name, &at))
        .collect()
}

/// A list's items, when there are not too many.
fn items<'a>(at: &At<'a>, example: &str, most: usize) -> Vec<At<'a>> {
    let items = at.items(example);
    if items.len() > most {
        at.error(
            format!("{} entries are too many", items.len()),
            format!("at most {most} go here"),
        );
        return Vec::new();
    }
    items
}

/// A file on this machine, relative to the file that names it.
fn file_path(at: &At<'_>) -> Option<Written<PathBuf>> {
    let text = at.text("images/db.qcow2")?;
    if text.value.contains('\0') {
        at.error(
            "a path cannot hold a NUL character",
            "as in images/db.qcow2",
        );
        return None;
    }
    Some(Written {
        value: text.value.into(),
        spot: text.spot,
    })
}

/// A text of some characters only, that starts with a letter or digit: it goes into command lines.
pub(super) fn word(at: &At<'_>, example: &str, allowed: impl Fn(char) -> bool) -> Option<String> {
    let text = at.text(example)?.value;
    let wrong = text
        .chars()
        .find(|c| !allowed(*c))
        .or_else(|| text.chars().next().filter(|c| !c.is_ascii_alphanumeric()));
    if let Some(c) = wrong {
        at.error(
            format!("{c:?} is not allowed here"),
            format!("as in {example}"),
        );
        return None;
    }
    Some(text.to_owned())
}

fn size(at: &At<'_>, least: Bytes, example: &str) -> Option<Written<Bytes>> {
    let size: Written<Bytes> = at.parse(example)?;
    if size.value < least {
        at.error(
            format!("{} is too small", size.value),
            format!("at least {least}"),
        );
        return None;
    }
    // A file of a size that a signed 64-bit offset cannot reach is refused everywhere.
    if size.value.0 > i64::MAX as u64 {
        at.error(
            format!("{} is too large", size.value),
            format!("as in {example}"),
        );
        return None;
    }
    Some(size)
}

/// A time span above zero.
pub(super) fn time_span(at: &At<'_>, example: &str) -> Option<Written<Seconds>> {
    let span: Written<Seconds> = at.parse(example)?;
    let day = Duration::from_secs(24 * 3600);
    if span.value.0.is_zero() || span.value.0 > 30 * day {
        at.error(
            "a time from above zero to 30 days is wanted here",
            format!("as in {example}"),
        );
        return None;
    }
    Some(span)
}
