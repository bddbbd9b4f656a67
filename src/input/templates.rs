//! Checks that templates render, before anything is created.

use std::collections::{HashMap, HashSet};
use std::path::Path;

use tera::Context;

use super::instances::{self, Machines};
use super::read::{Doc, Spot, Written};
use super::suggest;
use crate::diag::{Note, Place};
use crate::model::{Name, Secrets, Topology};
use crate::render::{Scope, TemplateError, TemplatePlace, Templates, context::RESERVED};

use super::topology::{DomainSpec, GroupSpec, TopologySpec};

/// Names of template files that are offered as "did you mean".
const LISTED: usize = 1000;

/// Turns template errors into notes, each only once.
pub(super) struct Checker<'a> {
    pub doc: &'a Doc,
    pub templates: &'a Templates,
    /// Whether the topology is sound: with a draft, values may be missing through no fault of a
    /// template.
    pub sound: bool,
    /// Factors, which templates see beside [`RESERVED`].
    pub factors: Vec<String>,
    /// Whether a template goes into an image, where no domain is known.
    pub in_image: bool,
    seen: HashSet<(String, String)>,
}

impl<'a> Checker<'a> {
    pub fn new(doc: &'a Doc, templates: &'a Templates, sound: bool, factors: Vec<String>) -> Self {
        Self {
            doc,
            templates,
            sound,
            factors,
            in_image: false,
            seen: HashSet::new(),
        }
    }

    /// Renders a template file; a failure is noted at `template`.
    pub fn file(
        &mut self,
        template: &Written<String>,
        vars: &serde_json::Map<String, serde_json::Value>,
        context: &Context,
    ) -> Option<String> {
        let result = self.templates.render_with(&template.value, vars, context);
        self.take(&template.spot, result)
    }

    /// Renders a text; a failure is noted at it.
    pub fn text(&mut self, text: &Written<String>, context: &Context) -> Option<String> {
        let result = self
            .templates
            .render_text("this text", &text.value, context);
        self.take(&text.spot, result)
    }

    /// What was rendered; a failure is noted at `spot`.
    pub fn take<T>(&mut self, spot: &Spot, result: Result<T, TemplateError>) -> Option<T> {
        match result {
            Ok(rendered) => Some(rendered),
            Err(TemplateError::Tera { always: false, .. }) if !self.sound => None,
            Err(error) => {
                if self.seen.insert((spot.path.clone(), error.to_string())) {
                    self.doc.push(self.note(spot, &error));
                }
                None
            }
        }
    }

    fn note(&self, spot: &Spot, error: &TemplateError) -> Note {
        let doc = self.doc;
        match error {
            TemplateError::NoDirectory { .. } => doc
                .error(spot, error.to_string())
                .hint("make a directory \"templates\" beside this file or one level up"),
            TemplateError::Outside { .. } => doc
                .error(spot, error.to_string())
                .hint("as in mariadb/instance.cnf.tera"),
            TemplateError::Missing { name, directory } => {
                let known = template_names(directory);
                let hint =
                    suggest::advice(name, "templates there", known.iter().map(String::as_str));
                doc.error(spot, error.to_string()).hint(hint)
            }
            TemplateError::TooMuch { .. } => doc
                .error(spot, error.to_string())
                .hint("let its loops end sooner"),
            TemplateError::Read { source, .. } => doc
                .error(spot, format!("{error}: {source}"))
                .hint("check the file"),
            TemplateError::Undefined {
                template,
                names,
                place,
            } => {
                let mut message = match names.as_slice() {
                    [name] => format!("undefined template variable {name:?}"),
                    _ => format!("undefined template variables {}", names.join(", ")),
                };
                if template.starts_with("vars.") {
                    message.push_str(&format!(" in {template}"));
                }
                let known = RESERVED
                    .iter()
                    .copied()
                    .chain(self.factors.iter().map(String::as_str));
                let first = names.first().map_or("", String::as_str);
                let hint = if self.factors.iter().any(|factor| factor == first) {
                    "factors have levels in trial steps only: setup runs once".to_owned()
                } else if self.in_image {
                    "an image is built before any domain: templates see lab and vars here"
                        .to_owned()
                } else if RESERVED.contains(&first) {
                    format!("{first:?} is there in template files only")
                } else if place.as_ref().is_some_and(|place| self.follows_dash(place)) {
                    "- subtracts: a name that holds it needs brackets, as in domains[\"a-b\"]"
                        .to_owned()
                } else {
                    suggest::advice(first, "templates see", known)
                };
                self.at_template(spot, message, place.as_ref()).hint(hint)
            }
            TemplateError::Tera { message, place, .. } => {
                let (message, hint) = split_fields(message);
                let note = self.at_template(spot, message.to_owned(), place.as_ref());
                Note { hint, ..note }
            }
        }
    }

    fn follows_dash(&self, place: &TemplatePlace) -> bool {
        let files = self.templates.files();
        let before = files
            .get(&place.template)
            .and_then(|file| file.content.get(..place.start));
        before.is_some_and(|before| before.ends_with('-'))
    }

    /// A note at the template's own line, when it is in a file, with the place that names it.
    fn at_template(&self, spot: &Spot, message: String, place: Option<&TemplatePlace>) -> Note {
        let note = self.doc.error(spot, message);
        let files = self.templates.files();
        let Some((place, file)) = place.and_then(|p| Some((p, files.get(&p.template)?))) else {
            return note;
        };
        let place = in_file(&file.path, &file.content, place);
        note.at(place)
            .label(Some(self.doc.place(spot)), "rendered for this")
    }
}

/// Takes advice out of Tera's message about a missing field, which ends in the fields there are.
pub(super) fn split_fields(message: &str) -> (&str, Option<String>) {
    let Some((message, fields)) = message.split_once(". Available fields: ") else {
        return (message, None);
    };
    let name = message.split('`').nth(1).unwrap_or_default();
    let dashed = fields
        .split(", ")
        .find(|f| f.starts_with(name) && f[name.len()..].starts_with('-'));
    let hint = match dashed {
        Some(field) => format!("- subtracts: write [\"{field}\"], with quotes and brackets"),
        None => suggest::advice(name, "fields there", fields.split(", ")),
    };
    (message, Some(hint))
}

/// The place in a template file. Tera gives some places without bytes.
fn in_file(path: &Path, content: &str, place: &TemplatePlace) -> Place {
    let (mut start, mut end) = (place.start.min(content.len()), place.end.min(content.len()));
    if end <= start {
        let line_start: usize = content
            .split_inclusive('\n')
            .take(place.line - 1)
            .map(str::len)
            .sum();
        let line = content[line_start..].lines().next().unwrap_or_default();
        let offset = line
            .char_indices()
            .nth(place.column - 1)
            .map_or(line.len(), |(at, _)| at);
        start = line_start + offset;
        let word = |c: char| c.is_alphanumeric() || c == '_';
        end = start
            + line[offset..]
                .find(|c| !word(c))
                .unwrap_or(line.len() - offset)
                .max(1);
        end = end.min(content.len());
    }
    Place {
        file: path.to_owned(),
        line: place.line,
        column: place.column,
        start,
        end,
    }
}

fn template_names(directory: &Path) -> Vec<String> {
    walkdir::WalkDir::new(directory)
        .sort_by_file_name()
        .into_iter()
        .filter_map(Result::ok)
        .filter(|entry| entry.file_type().is_file())
        .filter_map(|entry| {
            Some(
                entry
                    .path()
                    .strip_prefix(directory)
                    .ok()?
                    .to_str()?
                    .to_owned(),
            )
        })
        .take(LISTED)
        .collect()
}

/// Renders all files and configurations of all domains, and checks what the configurations say.
pub(super) fn check_topology(
    doc: &Doc,
    spec: &TopologySpec,
    topology: &Topology,
    secrets: &Secrets,
    templates: &Templates,
) {
    let mut checker = Checker::new(doc, templates, !doc.has_errors(), Vec::new());
    let renders = |m: &DomainSpec| !(m.files.is_empty() && m.instances.is_empty());
    let groups = &spec.domains;
    if !groups.iter().any(|group| group.members.iter().any(renders)) {
        return;
    }
    let scope = Scope::with_secrets(topology, secrets);
    let groups: HashMap<&Name, &GroupSpec> = groups.iter().map(|g| (&g.name.value, g)).collect();
    let mut failed: HashSet<&Spot> = HashSet::new();
    let mut machines = Machines::default();
    for domain in &topology.domains {
        let group = groups.get(&domain.group);
        let Some(member) = group.and_then(|group| group.member(domain.index)) else {
            continue;
        };
        if !renders(member) {
            continue;
        }
        let context = scope.context(Some(domain), &[]);
        for file in &member.files {
            let spot = &file.template.spot;
            // One note a file is enough: the other domains of the group fail alike.
            if !failed.contains(spot)
                && checker.file(&file.template, &file.vars, &context).is_none()
            {
                failed.insert(spot);
            }
        }
        // Several domains may be the lab host: there, a file may meet another domain's instance.
        if member.instances.is_empty() && domain.guest().is_some() {
            continue;
        }
        let configs = member.instances.iter().map(|instance| {
            let spot = &instance.spots.name;
            let config = match failed.contains(spot) {
                true => None,
                false => instances::render(&mut checker, instance, &context),
            };
            if config.is_none() {
                failed.insert(spot);
            }
            (instance, config)
        });
        machines.add(doc, domain, configs, &member.files, templates);
    }
    machines.finish(doc);
}
