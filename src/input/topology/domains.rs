//! Domains as written: counts, groups and defaults laid together, expressions filled in.

use std::time::Duration;

use super::super::expressions::{Expressions, Member, has_expression};
use super::super::merge::merge;
use super::super::read::{At, Doc, Written};
use super::super::shape::{Form, Key, NAME, Shape, TIME, words};
use super::super::suggest;
use super::super::tree::{Kind, Mapping, Node};
use super::disks::{DISK, DiskSpec, disk};
use super::external::{EXTERNAL, ExternalSpec, external};
use super::guest::{FILE, FileSpec, file};
use super::kinds::{KindWord, fitting};
use super::split::{SPLIT, split};
use super::vnets::{VNET, VnetSpec, vnet};
use super::{items, time_span};
use crate::model::{Name, Seconds, Split};

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

/// What a domain is.
pub(super) const DOMAIN: Shape = Shape::merged(
    "A machine of the lab, or several that are alike.",
    &[
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
            "groups",
            Form::List(&NAME),
            "[web]",
            "Groups whose keys it takes; later ones win over earlier ones, its own over all.",
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
            "boot_timeout",
            TIME,
            "3m",
            "Longest time for each step of its boot; 5m when left out.",
        ),
    ],
);

/// Keys that stand for a domain's own in `defaults` and `groups`: all but those that make no sense there.
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
    pub split: Split,
    pub disks: Vec<DiskSpec>,
    pub vnets: Vec<VnetSpec>,
    pub files: Vec<FileSpec>,
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
    groups: Option<&'a Mapping>,
}

impl<'a> Sources<'a> {
    /// Takes `defaults` and `groups` of the topology.
    pub fn new(
        doc: &'a Doc,
        expressions: &'a Expressions<'a>,
        defaults: Option<&At<'a>>,
        groups: Option<&At<'a>>,
    ) -> Self {
        let defaults = defaults.filter(|at| at.mapping("image: micro").is_some());
        Self {
            doc,
            expressions,
            defaults: defaults.map(At::node),
            groups: groups.and_then(|at| at.mapping("web: {image: micro}")),
        }
    }

    /// Reads an entry of `domains`.
    pub fn group(&self, name: Written<Name>, at: &At<'_>) -> Option<GroupSpec> {
        at.mapping("image: …, split: {cpus: 1, memory: 512MiB}, vnets: [{vswitch: data}]")?;
        let node = self.merged(at);
        let count = self.count(at, &node);
        if !has_expression(&node) {
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
            let mut node = node.clone();
            let member = Member {
                group: &name.value,
                index,
                count,
            };
            self.expressions.render(&mut node, at.path(), Some(&member));
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

    /// Its own keys over those of its groups over the defaults.
    fn merged(&self, at: &At<'_>) -> Node {
        let own = at.node();
        let mut base = self.defaults.cloned();
        let named = at.section("groups");
        for group in named.map(|at| at.items("web")).unwrap_or_default() {
            let Some(name) = group.parse::<Name>("web") else {
                continue;
            };
            match self.groups.and_then(|groups| groups.get(&name.value)) {
                Some(found) if matches!(found.value.kind, Kind::Map(_)) => {
                    base = Some(match base {
                        Some(base) => merge(&base, found.value.clone()),
                        None => found.value.clone(),
                    });
                }
                Some(_) => {}
                None => {
                    let known = self.groups.map(Mapping::entries).unwrap_or_default();
                    let known = known.iter().map(|entry| entry.key.as_str());
                    group.error(
                        format!("unknown group {:?}", name.value.as_str()),
                        suggest::advice(&name.value, "groups in this file", known),
                    );
                }
            }
        }
        match base {
            Some(base) => merge(&base, own.clone()),
            None => own.clone(),
        }
    }

    fn count(&self, at: &At<'_>, node: &Node) -> u32 {
        let Kind::Map(keys) = &node.kind else {
            return 1;
        };
        let Some(entry) = keys.get("count") else {
            return 1;
        };
        let mut only = Mapping::default();
        only.set(entry.clone());
        let mut only = Node {
            span: node.span,
            kind: Kind::Map(only),
        };
        self.expressions.render(&mut only, at.path(), None);
        let fields = at.of(&only).keys(&["count"]);
        let count = fields.and_then(|fields| fields.get("count")?.integer(1, COUNT_MAX));
        count.map_or(1, |n| n as u32)
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
        split: split(&fields),
        disks: list("disks", "{name: data, size: 1GiB}", DEVICES_MAX)
            .iter()
            .filter_map(disk)
            .collect(),
        vnets: vnets.unwrap_or_default().iter().filter_map(vnet).collect(),
        files: list("files", "{template: a.tera, to: /etc/a}", FILES_MAX)
            .iter()
            .filter_map(file)
            .collect(),
        boot_timeout: fields
            .get("boot_timeout")
            .and_then(|at| time_span(&at, "3m"))
            .map_or(Seconds(Duration::from_secs(300)), |w| w.value),
    })
}
