//! Domains as written: counts, groups and defaults laid together, expressions filled in.

use std::borrow::Cow;
use std::cell::RefCell;
use std::collections::BTreeSet;
use std::time::Duration;

use super::super::expressions::{Expressions, Member, has_expression};
use super::super::merge::merge;
use super::super::read::{At, Doc, Written};
use super::super::shape::{Form, Key, NAME, Shape, TIME, words};
use super::super::suggest;
use super::super::tree::{Kind, Node};
use super::disks::{DISK, DiskSpec, disk};
use super::external::{EXTERNAL, ExternalSpec, external};
use super::guest::{FILE, FileSpec, file};
use super::images::package;
use super::instances::{INSTANCE, InstanceSpec, instances};
use super::kinds::{KindWord, fitting};
use super::machine::{MACHINE, MachineSpec, machine};
use super::settings::{self, SettingsSpec};
use super::split::{SPLIT, SplitSpec, split};
use super::vnets::{VNET, VnetSpec, vnet};
use super::{items, time_span};
use crate::diag::Note;
use crate::model::{Name, Seconds};

/// Disks and vnets that a domain may have: its PCI slots hold them all, and the seed disk.
const DEVICES_MAX: usize = 12;

/// Files that labrig renders into one domain.
const FILES_MAX: usize = 1000;

/// Domains that one key may stand for, and that a lab may have.
pub(in super::super) const COUNT_MAX: u64 = 10_000;

/// Values of keys that some kinds need, as notes show them.
const IMAGE: &str = "micro";
const SPLIT_EXAMPLE: &str = "{cpus: 1, memory: 512MiB}";
const VNETS: &str = "[{vswitch: data}]";

/// What a domain is. The first key is the one that stands with domains only.
pub(super) const DOMAIN: Shape = Shape::merged(
    "A machine of the lab, or several that are alike.",
    &[
        Key::new(
            "groups",
            Form::List(&NAME),
            "[web]",
            "Groups whose keys it takes; later ones win over earlier ones, its own over all.",
        ),
        Key::new(
            "count",
            Form::Whole {
                least: 1,
                most: COUNT_MAX,
            },
            "4",
            "How many there are: a count of 4 makes NAME1 … NAME4.",
        ),
        Key::new(
            "kind",
            Form::Words(words::<KindWord>),
            "host",
            "vm; host: the lab host itself; external: a machine that is there already; or container.",
        ),
        Key::new("image", NAME, IMAGE, "Its image; needed by a vm."),
        Key::new(
            "split",
            Form::Map(&SPLIT),
            SPLIT_EXAMPLE,
            "Its share of the host; needed by all but an external machine.",
        ),
        Key::new(
            "machine",
            Form::Map(&MACHINE),
            "{firmware: uefi}",
            "The machine it finds itself in.",
        ),
        Key::new(
            "disks",
            Form::List(&Form::Map(&DISK)),
            "[{name: data, size: 1GiB}]",
            "Its disks.",
        ),
        Key::new(
            "vnets",
            Form::List(&Form::Map(&VNET)),
            VNETS,
            "Its ports; labrig reaches it at the first. A host has the lab host's own address there.",
        ),
        Key::new(
            "external",
            Form::Map(&EXTERNAL),
            "{address: 192.0.2.10, key: id_ed25519, host_key: ssh-ed25519 AAAA…}",
            "How an external machine is reached.",
        ),
        Key::new(
            "files",
            Form::List(&Form::Map(&FILE)),
            "[{template: a.tera, to: /etc/a}]",
            "Files rendered into it.",
        ),
        Key::new(
            "databases",
            Form::Named(&Form::Map(&INSTANCE)),
            "{main: {engine: mariadb}}",
            "Database servers on it, by name.",
        ),
        settings::SYSCTL,
        settings::LIMITS,
        settings::PACKAGES,
        settings::SERVICES,
        settings::USERS,
        settings::SSH_KEYS,
        Key::new(
            "boot_timeout",
            TIME,
            "3m",
            "Longest time for each step of its boot; 5m when left out.",
        ),
    ],
);

/// What `defaults` and groups are: all of a domain but the groups that it takes its keys from.
pub(super) const GROUP: Shape = Shape::merged("Keys of several domains.", but_first(DOMAIN.keys));

const fn but_first(keys: &'static [Key]) -> &'static [Key] {
    match keys {
        [_, rest @ ..] => rest,
        [] => keys,
    }
}

/// The form of a domain.
const DOMAIN_FORM: Form = Form::Map(&DOMAIN);

/// An entry of `domains`: one domain, or several that are counted.
pub(in super::super) struct GroupSpec {
    /// The key; all its domains share it.
    pub name: Written<Name>,
    pub count: u32,
    /// One that all of them are like, or one for each.
    pub members: Vec<DomainSpec>,
}

pub(in super::super) struct DomainSpec {
    pub kind: Written<KindWord>,
    pub external: Option<ExternalSpec>,
    pub image: Option<Written<Name>>,
    pub split: SplitSpec,
    pub machine: MachineSpec,
    pub disks: Vec<DiskSpec>,
    pub vnets: Vec<VnetSpec>,
    pub files: Vec<FileSpec>,
    pub instances: Vec<InstanceSpec>,
    pub settings: SettingsSpec,
    pub boot_timeout: Seconds,
}

impl GroupSpec {
    /// The `index`-th domain, from 1.
    pub fn member(&self, index: u32) -> Option<&DomainSpec> {
        self.members.get(index as usize - 1).or(self.members.last())
    }

    /// Whether all its domains are one as the other.
    pub fn is_uniform(&self) -> bool {
        self.members.len() == 1 && self.count > 1
    }
}

/// What domains take their keys from, beside their own.
pub(in super::super) struct Sources<'a> {
    doc: &'a Doc,
    expressions: &'a Expressions<'a>,
    defaults: Option<&'a Node>,
    groups: Vec<(Written<Name>, At<'a>)>,
    /// Groups that some domain names.
    used: RefCell<BTreeSet<Name>>,
}

impl<'a> Sources<'a> {
    /// Takes `defaults` and `groups` of the topology. Their keys are checked here, for those that no
    /// domain takes; their values are where domains take them.
    pub fn new(
        doc: &'a Doc,
        expressions: &'a Expressions<'a>,
        defaults: Option<&At<'a>>,
        groups: Option<&At<'a>>,
    ) -> Self {
        let groups = groups.map(|at| at.named("web: {image: micro}"));
        let groups = groups.unwrap_or_default();
        for (_, group) in &groups {
            group.part(&GROUP);
        }
        Self {
            doc,
            expressions,
            defaults: defaults
                .filter(|at| at.part(&GROUP).is_some())
                .map(At::node),
            groups,
            used: RefCell::default(),
        }
    }

    /// Reads an entry of `domains`.
    pub fn group(&self, name: Written<Name>, at: &At<'_>) -> Option<GroupSpec> {
        at.mapping("image: …, split: {cpus: 1, memory: 512MiB}, vnets: [{vswitch: data}]")?;
        let node = self.merged(at);
        let count = at.of(&node).section("count");
        let count = count.and_then(|at| at.integer(1, COUNT_MAX));
        let count = count.map_or(1, |n| n as u32);
        if !has_expression(&node, &DOMAIN_FORM) {
            let member = domain(&at.of(&node), at.node());
            return Some(GroupSpec {
                name,
                count,
                members: member.into_iter().collect(),
            });
        }
        let mut members = Vec::new();
        for index in 1..=count {
            let before = self.doc.count();
            let mut node = Node::clone(&node);
            let member = Member {
                group: &name.value,
                index,
                count,
            };
            self.expressions
                .render(&mut node, &DOMAIN_FORM, at.path(), Some(&member));
            members.extend(domain(&at.of(&node), at.node()));
            // What is wrong with one is wrong with the others, in other words.
            if self.doc.count() > before {
                break;
            }
        }
        Some(GroupSpec {
            name,
            count,
            members,
        })
    }

    /// Its own keys over those of its groups over the defaults. What tells how many there are, and
    /// what they take, is filled in.
    fn merged<'n>(&self, at: &At<'n>) -> Cow<'n, Node> {
        let is_alone = self.defaults.is_none() && at.section("groups").is_none();
        if is_alone && !has_expression(at.node(), &DOMAIN_FORM) {
            return Cow::Borrowed(at.node());
        }
        let mut own = at.node().clone();
        self.fill_in("groups", &mut own, at);
        let names = at.of(&own).section("groups");
        let names = names.map(|at| at.items("web")).unwrap_or_default();
        let groups = names.iter().filter_map(|name| self.named(name));
        let bases = self.defaults.into_iter().chain(groups);
        let base = bases.cloned().reduce(merge);
        let mut node = match base {
            Some(base) => merge(base, own),
            None => own,
        };
        self.fill_in("count", &mut node, at);
        Cow::Owned(node)
    }

    fn fill_in(&self, key: &str, node: &mut Node, at: &At<'_>) {
        if let Kind::Map(map) = &mut node.kind
            && let Some(entry) = map.get_mut(key)
        {
            let path = format!("{}.{key}", at.path());
            let form = DOMAIN_FORM.under(key);
            self.expressions.render(&mut entry.value, form, &path, None);
        }
    }

    /// The group that is named; that there is none is noted.
    fn named(&self, at: &At<'_>) -> Option<&'a Node> {
        let name = at.parse::<Name>("web")?.value;
        let found = self.groups.iter().find(|(group, _)| group.value == name);
        if found.is_none() {
            let known = self.groups.iter().map(|(group, _)| group.value.as_str());
            at.error(
                format!("unknown group {:?}", name.as_str()),
                suggest::advice(&name, "groups in this file", known),
            );
        }
        self.used.borrow_mut().insert(name);
        found.filter(|(_, at)| at.is_map()).map(|(_, at)| at.node())
    }

    /// Warns of groups that no domain names.
    pub fn warn_of_idle_groups(&self) {
        let used = self.used.borrow();
        for (group, _) in self.groups.iter().filter(|(g, _)| !used.contains(&g.value)) {
            let message = format!("no domain is in group {:?}", group.value.as_str());
            let note = Note::warning(&group.spot.path, message).at(self.doc.place(&group.spot));
            self.doc
                .push(note.hint("leave it out, or name it under a domain's groups"));
        }
    }
}

/// Reads a domain. `own` is what its own entry says, of all that stands here.
fn domain(at: &At<'_>, own: &Node) -> Option<DomainSpec> {
    let kind = match at.section("kind") {
        Some(at) => Written {
            value: at.word()?,
            spot: at.spot(),
        },
        None => Written {
            value: KindWord::Vm,
            spot: at.spot(),
        },
    };
    let fitted = fitting(at, own, kind.value);
    let at = &at.of(fitted.as_ref().unwrap_or(at.node()));
    let fields = at.fields(&DOMAIN)?;
    let needed: &[(&str, &str)] = match kind.value {
        KindWord::Vm | KindWord::Container => {
            &[("image", IMAGE), ("split", SPLIT_EXAMPLE), ("vnets", VNETS)]
        }
        KindWord::Host => &[("split", SPLIT_EXAMPLE)],
        KindWord::External => &[(
            "external",
            "{address: 192.0.2.10, key: id_ed25519, host_key: ssh-ed25519 AAAA…}",
        )],
    };
    for (key, example) in needed {
        fields.need(key, example);
    }
    let list = |key: &str, example: &str, most: usize| {
        fields
            .get(key)
            .map(|at| items(&at, example, most))
            .unwrap_or_default()
    };
    let vnets = fields.get("vnets").map(|at| {
        let items = items(&at, "{vswitch: data}", DEVICES_MAX);
        if items.is_empty() && at.is_list() && kind.value.is_made() {
            at.error(
                "a domain without a vnet cannot be reached",
                "add one, as in [{vswitch: data}]",
            );
        }
        items
    });
    Some(DomainSpec {
        external: fields.get("external").and_then(|at| external(&at)),
        kind,
        image: fields.get("image").and_then(|at| at.parse("micro")),
        split: split(&fields).unwrap_or_default(),
        machine: machine(&fields),
        disks: list("disks", "{name: data, size: 1GiB}", DEVICES_MAX)
            .iter()
            .filter_map(disk)
            .collect(),
        vnets: vnets.unwrap_or_default().iter().filter_map(vnet).collect(),
        files: list("files", "{template: a.tera, to: /etc/a}", FILES_MAX)
            .iter()
            .filter_map(file)
            .collect(),
        instances: instances(&fields),
        settings: settings::settings(&fields, package),
        boot_timeout: fields
            .get("boot_timeout")
            .and_then(|at| time_span(&at, "3m"))
            .map_or(Seconds(Duration::from_secs(300)), |w| w.value),
    })
}
