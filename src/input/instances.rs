//! Checks of database instances: that their configurations render, say what their keys say, and
//! that no two on one machine take the same.

use std::collections::BTreeMap;
use std::net::Ipv4Addr;

use super::read::{Doc, Spot};
use super::templates::Checker;
use super::topology::{FileSpec, InstanceSpec};
use crate::databases::{
    Claim, Clash, Contradiction, Origin, Resource, claims, clashes, contradictions, server,
};
use crate::diag::{Note, Place};
use crate::model::{Domain, DomainKind, Name};
use crate::render::{InstanceConfig, Templates};

/// Instances by machine, as far as several domains share one; checked at the end.
#[derive(Default)]
pub(super) struct Machines<'s> {
    shared: BTreeMap<Machine, Claims<'s>>,
}

/// A machine that several domains may be.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Machine {
    /// The lab host.
    Host,
    /// A machine that is there already.
    External(Ipv4Addr),
}

/// What takes something on one machine.
#[derive(Default)]
struct Claims<'s> {
    owners: Vec<Owner<'s>>,
    claims: Vec<Claim>,
}

/// An instance or a file of a domain.
#[derive(Clone, Copy)]
enum Owner<'s> {
    Instance {
        /// What people know the domain by: its key in the file.
        group: &'s Name,
        spec: &'s InstanceSpec,
    },
    File(&'s FileSpec),
}

impl<'s> Machines<'s> {
    /// Checks the instances of a domain, with the configurations that were rendered. What it shares
    /// with other domains is kept for [`Machines::finish`].
    pub fn add(
        &mut self,
        doc: &Doc,
        domain: &'s Domain,
        instances: impl Iterator<Item = (&'s InstanceSpec, Option<InstanceConfig>)>,
        files: &'s [FileSpec],
        templates: &Templates,
    ) {
        let mut own = Claims::default();
        let machine = match &domain.kind {
            DomainKind::Host => Some(Machine::Host),
            DomainKind::External(endpoint) => Some(Machine::External(endpoint.address)),
            DomainKind::Vm(_) | DomainKind::Container(_) => None,
        };
        let all = match machine {
            Some(machine) => self.shared.entry(machine).or_default(),
            None => &mut own,
        };
        for (spec, config) in instances {
            let settings = config
                .map(|config| server(spec.instance.engine).read(&config.text))
                .unwrap_or_default();
            for found in contradictions(&spec.instance, &settings) {
                doc.push(contradiction(doc, spec, &found, templates));
            }
            let owner = all.owners.len();
            let group = &domain.group;
            all.owners.push(Owner::Instance { group, spec });
            all.claims.extend(claims(owner, &spec.instance, &settings));
        }
        for file in files {
            let owner = all.owners.len();
            all.owners.push(Owner::File(file));
            all.claims.push(Claim {
                owner,
                origin: Origin::File,
                resource: Resource::File(file.to.value.clone()),
            });
        }
        own.check(doc);
    }

    /// Checks the machines that domains share.
    pub fn finish(self, doc: &Doc) {
        for all in self.shared.into_values() {
            all.check(doc);
        }
    }
}

impl<'s> Claims<'s> {
    fn check(&self, doc: &Doc) {
        // What two have in common only because neither says anything is one mistake.
        let mut by_default: BTreeMap<(usize, usize), Vec<(&str, &Claim)>> = BTreeMap::new();
        for clash in clashes(&self.claims) {
            let (first, second) = (&self.claims[clash.first], &self.claims[clash.second]);
            match (self.key_by_default(first), self.key_by_default(second)) {
                (Some(word), Some(other)) if word == other => {
                    let pair = by_default.entry((first.owner, second.owner)).or_default();
                    pair.push((word, second));
                }
                _ => doc.push(self.note(doc, clash)),
            }
        }
        for ((first, second), shared) in by_default {
            doc.push(self.default_note(doc, (first, second), &shared));
        }
    }

    /// The key that makes a claim, if nothing is written for it.
    fn key_by_default(&self, claim: &Claim) -> Option<&'static str> {
        match (&claim.origin, &self.owners[claim.owner]) {
            (Origin::Key(key), Owner::Instance { spec, .. }) => {
                (!spec.spots.keys.contains_key(key)).then(|| key.word())
            }
            _ => None,
        }
    }

    fn note(&self, doc: &Doc, clash: Clash) -> Note {
        let (mut first, mut second) = (&self.claims[clash.first], &self.claims[clash.second]);
        // The place is that of what is written, where one of them is.
        if !self.is_written(second) && self.is_written(first) {
            std::mem::swap(&mut first, &mut second);
        }
        let (what, value) = (self.word(second), taken(second));
        let (other_what, other_value) = (self.word(first), taken(first));
        let (this, other) = self.people(second.owner, first.owner);
        let is_port = matches!(second.resource, Resource::Port(..));
        let subject = match second.origin {
            Origin::File => format!("file {value}"),
            _ => format!("{what} {value} of {this}"),
        };
        let object = match first.origin {
            Origin::File => "a file".to_owned(),
            _ => format!("the {other_what} of {other}"),
        };
        let message = match (value == other_value, what == other_what) {
            (true, true) => format!("{this} has the same {what} as {other}: {value}"),
            (true, false) => format!("{subject} is {object}"),
            (false, _) if value.len() > other_value.len() => format!("{subject} is below {object}"),
            (false, _) => format!("{subject} is above {object}"),
        };
        let same_place = self.spot(first) == self.spot(second);
        let hint = match (&second.origin, &first.origin) {
            _ if same_place && is_port => {
                "each domain needs its own, as in \"{{ 3305 + index }}\"".to_owned()
            }
            _ if same_place => "each domain needs its own, as in /srv/{{ name }}".to_owned(),
            (Origin::Absent(option), _) | (_, Origin::Absent(option)) => {
                format!("set {option} in the settings of one of them, or switch it off")
            }
            (Origin::File, _) | (_, Origin::File) => {
                "write the file elsewhere: what is there belongs to the server".to_owned()
            }
            _ if is_port => "give one of them another port".to_owned(),
            _ if value == other_value => "give one of them another path".to_owned(),
            _ => "put them beside each other".to_owned(),
        };
        let note = doc.error(self.spot(second), message).hint(hint);
        match same_place {
            true => note,
            false => note.label(
                Some(doc.place(self.spot(first))),
                format!("{other_what} {other_value}"),
            ),
        }
    }

    fn default_note(
        &self,
        doc: &Doc,
        (first, second): (usize, usize),
        shared: &[(&str, &Claim)],
    ) -> Note {
        let (this, other) = self.people(second, first);
        let list: Vec<_> = shared
            .iter()
            .map(|(word, claim)| format!("{word} {}", taken(claim)))
            .collect();
        let keys: Vec<_> = shared.iter().map(|(word, _)| *word).collect();
        let message = format!(
            "{this} and {other} share what they have by default: {}",
            list.join(", ")
        );
        let (Owner::Instance { spec, .. }, Owner::Instance { spec: other, .. }) =
            (self.owners[second], self.owners[first])
        else {
            return Note::error("", message);
        };
        let note = doc.error(&spec.spots.name, message);
        let keys = keys.join(", ");
        match spec.spots.name == other.spots.name {
            true => note.hint(format!(
                "set {keys} with {{{{ index }}}} or {{{{ name }}}} in it"
            )),
            false => note
                .hint(format!("set {keys} of one of them"))
                .label(Some(doc.place(&other.spots.name)), "the other one"),
        }
    }

    /// How people are told of two owners; domains are named when they are not one.
    fn people(&self, this: usize, other: usize) -> (String, String) {
        let is_one = this == other;
        let (this, other) = (self.owners[this], self.owners[other]);
        let name = |owner: Owner<'_>, with_domain: bool| match owner {
            Owner::Instance { group, spec } if with_domain => {
                format!("instance {} of {group}", spec.instance.name)
            }
            Owner::Instance { spec, .. } => format!("instance {}", spec.instance.name),
            Owner::File(_) => "a file".to_owned(),
        };
        if let (Owner::Instance { group, spec: a }, Owner::Instance { spec: b, .. }) = (this, other)
            && !is_one
            && a.spots.name == b.spots.name
        {
            let name = &a.instance.name;
            return (
                format!("instance {name} of one {group}"),
                "that of another".to_owned(),
            );
        }
        let differ = match (this, other) {
            (Owner::Instance { group: a, .. }, Owner::Instance { group: b, .. }) => a != b,
            _ => false,
        };
        (name(this, differ), name(other, differ))
    }

    fn word(&self, claim: &Claim) -> String {
        match &claim.origin {
            Origin::Key(key) => key.word().to_owned(),
            Origin::Option(option) | Origin::Absent(option) => option.clone(),
            Origin::File => "path".to_owned(),
        }
    }

    fn is_written(&self, claim: &Claim) -> bool {
        match (&claim.origin, &self.owners[claim.owner]) {
            (Origin::Key(key), Owner::Instance { spec, .. }) => spec.spots.keys.contains_key(key),
            (origin, _) => !matches!(origin, Origin::Absent(_)),
        }
    }

    fn spot(&self, claim: &Claim) -> &'s Spot {
        match self.owners[claim.owner] {
            Owner::File(file) => &file.to.spot,
            Owner::Instance { spec, .. } => match &claim.origin {
                Origin::Key(key) => spec.spots.keys.get(key).unwrap_or(&spec.spots.name),
                Origin::Option(option) => setting_spot(spec, option),
                Origin::Absent(_) | Origin::File => &spec.spots.name,
            },
        }
    }
}

fn taken(claim: &Claim) -> String {
    match &claim.resource {
        Resource::Port(port, _) => port.to_string(),
        Resource::File(path) | Resource::Directory(path) => path.clone(),
    }
}

/// Where an option is said: among the settings, else in the template.
fn setting_spot<'s>(spec: &'s InstanceSpec, option: &str) -> &'s Spot {
    let is_it = |name: &&String| name.to_lowercase().replace('-', "_") == option;
    let name = spec.spots.settings.keys().find(is_it);
    name.and_then(|name| spec.spots.settings.get(name))
        .or(spec.spots.template.as_ref())
        .unwrap_or(&spec.spots.name)
}

/// A note about an option that says something else than a key.
fn contradiction(
    doc: &Doc,
    spec: &InstanceSpec,
    found: &Contradiction,
    templates: &Templates,
) -> Note {
    let (key, option, value) = (found.key.word(), &found.setting.name, &found.setting.value);
    let name = &spec.instance.name;
    let spot = setting_spot(spec, option);
    let section = match found.setting.section.as_str() {
        "" => String::new(),
        section => format!(" under [{section}]"),
    };
    let message = format!(
        "{option} is {value}{section}, but the {key} of instance {name} is {}",
        found.said
    );
    let in_settings = spec.spots.settings.values().any(|s| s == spot);
    let hint = match in_settings {
        true => format!("say it once: as {key} of the instance, beside its settings"),
        false => format!("write {{{{ instance.{key} }}}} there"),
    };
    let note = doc.error(spot, message).hint(hint);
    let said = spec.spots.keys.get(&found.key);
    let (said, label) = match said {
        Some(said) => (said, format!("the {key}")),
        None => (&spec.spots.name, format!("has the usual {key}")),
    };
    let line = (!in_settings)
        .then(|| in_template(spec, found, templates))
        .flatten();
    match line {
        Some(place) => note
            .at(place)
            .label(Some(doc.place(said)), label)
            .label(Some(doc.place(spot)), "rendered for this"),
        None => note.label(Some(doc.place(said)), label),
    }
}

/// The line of the template that says an option with a value of its own.
fn in_template(spec: &InstanceSpec, found: &Contradiction, templates: &Templates) -> Option<Place> {
    let files = templates.files();
    let file = files.get(spec.instance.template.as_ref()?)?;
    let server = server(spec.instance.engine);
    let mut start = 0;
    for (number, line) in file.content.split_inclusive('\n').enumerate() {
        let is_it = server.read(line).iter().any(|setting| {
            (&setting.name, &setting.value) == (&found.setting.name, &found.setting.value)
        });
        if is_it {
            let text = line.trim_end();
            let indent = text.len() - text.trim_start().len();
            return Some(Place {
                file: file.path.clone(),
                line: number + 1,
                column: indent + 1,
                start: start + indent,
                end: start + text.len(),
            });
        }
        start += line.len();
    }
    None
}

/// Renders an instance's configuration; a failure is noted where it comes from.
pub(super) fn render(
    checker: &mut Checker<'_>,
    spec: &InstanceSpec,
    context: &tera::Context,
) -> Option<InstanceConfig> {
    let result = crate::render::instance_config(checker.templates, &spec.instance, context);
    let setting = result.as_ref().err().and_then(|error| match error {
        crate::render::TemplateError::Undefined { template, .. } => Some(template.clone()),
        crate::render::TemplateError::Tera { place, .. } => {
            place.as_ref().map(|place| place.template.clone())
        }
        _ => None,
    });
    let spot = setting
        .as_deref()
        .and_then(|label| label.strip_prefix("settings."))
        .map(|name| name.split('[').next().unwrap_or(name))
        .and_then(|name| spec.spots.settings.get(name))
        .or(spec.spots.template.as_ref())
        .unwrap_or(&spec.spots.name);
    let config = checker.take(spot, result)?;
    for (name, value) in &config.settings {
        let texts = match value {
            serde_json::Value::Array(values) => values.as_slice(),
            value => std::slice::from_ref(value),
        };
        let broken = |value: &serde_json::Value| {
            value
                .as_str()
                .is_some_and(|text| text.chars().any(char::is_control))
        };
        if texts.iter().any(broken) {
            let spot = spec.spots.settings.get(name).unwrap_or(&spec.spots.name);
            let note = checker.doc.error(
                spot,
                "an option's value is one line, this renders to several",
            );
            checker
                .doc
                .push(note.hint("leave line breaks and tabs out"));
            return None;
        }
    }
    Some(config)
}

#[cfg(test)]
mod tests {
    use super::super::files;
    use super::super::resolve::resolve;
    use super::super::templates::check_topology;
    use super::super::topology::TopologySpec;
    use super::super::{Options, read::Doc};
    use super::*;
    use crate::model::Secrets;

    const TOPOLOGY: &str = "\
version: 1
name: lab
images: {micro: {build: {micro: {}}}}
vswitches: {data: {subnet: 10.10.0.0/24}}
defaults: {image: micro, split: {cpus: 1, memory: 160MiB}, vnets: [{vswitch: data}]}
domains:
  primary:
    databases: {main: {engine: mariadb}}
  spare:
    databases: {main: {engine: postgresql, datadir: /var/lib/mysql/pg}}
  many:
    count: 2
    databases: {ldap: {engine: openldap, datadir: \"/srv/{{ name }}\", socket: \"/tmp/{{ name }}\"}}
  own:
    files: [{template: t, to: /srv/many1/x}]
";

    /// The notes when all domains are of one kind.
    fn notes(kind: Option<DomainKind>) -> Vec<String> {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("lab.yaml");
        fs_err::write(&file, TOPOLOGY).unwrap();
        fs_err::create_dir(directory.path().join("templates")).unwrap();
        fs_err::write(directory.path().join("templates/t"), "").unwrap();
        let doc = Doc::new(&file);
        let options = Options::default();
        let (_, mut root) = files::read_tree(&doc, &file, 0).unwrap();
        let spec = TopologySpec::read(&doc, &mut root, &options).unwrap();
        let templates = Templates::beside(&file);
        let (mut topology, _) = resolve(&doc, &spec, &options, &templates).unwrap();
        if let Some(kind) = kind {
            for domain in &mut topology.domains {
                domain.kind = kind.clone();
            }
        }
        check_topology(&doc, &spec, &topology, &Secrets::default(), &templates);
        let notes = doc.into_notes().sorted().0;
        let text = |note: Note| {
            let place = note.place.unwrap();
            format!("{}:{} {}", place.line, place.column, note.message)
        };
        notes.into_iter().map(text).collect()
    }

    #[test]
    fn domains_that_are_one_machine_share_its_ports_and_paths() {
        assert_eq!(notes(None), [""; 0]);
        assert_eq!(
            notes(Some(DomainKind::Host)),
            [
                "10:53 datadir /var/lib/mysql/pg of instance main of spare is below the datadir of instance main of primary",
                "13:17 instance ldap of one many and that of another share what they have by default: port 389, pidfile /run/slapd/ldap.pid",
                "15:31 file /srv/many1/x is below the datadir of instance ldap",
            ]
        );
    }
}
