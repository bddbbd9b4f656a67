//! Kinds of domains as written, and which keys fit which kind.

use super::super::read::At;
use super::super::shape::Word;
use super::super::tree::{Kind, Mapping, Node};

/// A kind of domain.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in super::super) enum KindWord {
    Vm,
    Container,
    Host,
    External,
}

impl Word for KindWord {
    const WORDS: &'static [(&'static str, Self)] = &[
        ("vm", Self::Vm),
        ("container", Self::Container),
        ("host", Self::Host),
        ("external", Self::External),
    ];
}

/// What labrig makes a machine of.
const MADE: [&str; 3] = ["image", "disks", "machine"];
/// What goes into a machine with its seed.
const SETTINGS: [&str; 6] = [
    "sysctl", "limits", "packages", "services", "users", "ssh_keys",
];
/// What needs firmware of its own.
const FIRMWARE: [&str; 2] = ["firmware", "tpm"];

impl KindWord {
    /// Whether labrig makes such a machine.
    pub fn is_made(self) -> bool {
        matches!(self, Self::Vm | Self::Container)
    }

    /// Why a key does not fit a domain of this kind, and what to do; none when it does.
    fn unfit(self, key: &str) -> Option<(&'static str, &'static str)> {
        match self {
            Self::Vm | Self::Container | Self::Host if key == "external" => Some((
                "only an external machine is reached so",
                "add kind: external, or leave it out",
            )),
            Self::Host | Self::External if MADE.contains(&key) => Some((
                "labrig does not make this machine",
                "leave it out, or add kind: vm",
            )),
            Self::Host | Self::External if SETTINGS.contains(&key) => Some((
                "labrig changes no settings of a machine that it does not make",
                "leave it out; files and the steps of a playbook do reach it",
            )),
            Self::External if matches!(key, "split" | "vnets") => Some((
                "an external machine is no part of the lab host",
                "leave it out",
            )),
            _ => None,
        }
    }
}

/// A domain's keys without those of its groups and the defaults that do not fit its kind; that its
/// own do not fit is noted.
///
/// None when all of them fit.
pub(super) fn fitting(at: &At<'_>, own: &Node, kind: KindWord) -> Option<Node> {
    let has_own = |key: &str| match &own.kind {
        Kind::Map(own) => own.get(key).is_some_and(|entry| !entry.value.is_null()),
        _ => false,
    };
    let Kind::Map(map) = &at.node().kind else {
        return None;
    };
    if kind == KindWord::Container
        && let Some(machine) = at.section("machine")
    {
        for key in FIRMWARE {
            if let Some(at) = machine.section(key).filter(|_| has_own("machine")) {
                at.error(
                    format!("{key:?} does not fit kind container: it runs on the host's kernel"),
                    "leave it out, or make it a vm",
                );
            }
        }
    }
    if map
        .entries()
        .iter()
        .all(|entry| kind.unfit(&entry.key).is_none())
    {
        return None;
    }
    let mut kept = Mapping::default();
    for entry in map.entries() {
        let Some((why, advice)) = kind.unfit(&entry.key) else {
            kept.set(entry.clone());
            continue;
        };
        if has_own(&entry.key)
            && let Some(at) = at.section(&entry.key)
        {
            at.error(
                format!("{:?} does not fit kind {}: {why}", entry.key, kind.word()),
                advice,
            );
        }
    }
    Some(Node {
        span: at.node().span,
        kind: Kind::Map(kept),
    })
}

impl KindWord {
    /// Its word.
    pub fn word(self) -> &'static str {
        let found = Self::WORDS.iter().find(|(_, kind)| *kind == self);
        found.map_or("", |(word, _)| word)
    }
}
