//! From a playbook as written to a playbook: roles and steps bound to the domains of its topology.

use std::collections::{BTreeMap, HashMap};
use std::path::Path;

use super::files::{self, InputFile};
use super::playbook_spec::{FactorSpec, PlaybookSpec, RoleSpec};
use super::playbook_steps::{ActionSpec, StepSpec};
use super::read::{At, Doc, Spot, Written};
use super::suggest;
use super::templates::Checker;
use super::tree::Node;
use super::{Draft, Language, Loaded, LoadedPlaybook, Options, SourceMap};
use crate::adapters;
use crate::diag::{Note, Notes};
use crate::model::{
    Domain, Factor, Level, Name, Playbook, Secrets, Step, StepAction, Topology, WaitFor,
};
use crate::render::{Scope, Templates};

/// Loads a playbook and its topology.
pub(super) fn load(file: &Path, options: &Options) -> Result<LoadedPlaybook, Notes> {
    let doc = Doc::new(file);
    let (read, draft, mut notes) = read(&doc, options);
    let playbook_notes = doc.into_notes().sorted();
    match (read, draft) {
        (Some(read), Some(draft)) if !notes.has_errors() && !playbook_notes.has_errors() => {
            let playbook = Loaded {
                value: read.playbook,
                warnings: playbook_notes,
                source: SourceMap::new(vec![file.to_owned()], read.root),
                inputs: read.inputs,
                templates: read.templates,
                secrets: Secrets::default(),
            };
            Ok(LoadedPlaybook {
                playbook,
                topology: super::finish(Some(draft), notes)?,
            })
        }
        _ => {
            notes.0.extend(playbook_notes.0);
            Err(notes.sorted())
        }
    }
}

struct ReadPlaybook {
    playbook: Playbook,
    root: Node,
    inputs: Vec<InputFile>,
    templates: Templates,
}

fn read(doc: &Doc, options: &Options) -> (Option<ReadPlaybook>, Option<Draft>, Notes) {
    let nothing = || (None, None, Notes::default());
    let Some((input, root)) = files::read_tree(doc, &doc.file, 0) else {
        return nothing();
    };
    if let Some(key) = super::foreign_key(&root, Language::Playbook) {
        let message = format!("a playbook is wanted, this is a topology: it has {key:?}");
        super::wrong_language(doc, &root, key, message, "`labrig up` takes a topology");
        return nothing();
    }
    let Some(spec) = PlaybookSpec::read(doc, &At::top(doc, &root)) else {
        return nothing();
    };
    check_adapters(doc, &spec);
    let home = doc.file.parent().unwrap_or(Path::new(""));
    let mut copied = BTreeMap::new();
    for step in spec.setup.iter().chain(&spec.trial) {
        if let Some(ActionSpec::Copy { from, .. }) = &step.action {
            read_copy(doc, home, from, &mut copied);
        }
    }
    let (draft, notes) = match &spec.topology {
        None => (None, Notes::default()),
        Some(written) => {
            let path = files::beside(home, Path::new(&written.value));
            if path.is_file() {
                super::draft_topology(&path, options)
            } else {
                let message = format!("topology {} is not there", path.display());
                let note = doc.error(&written.spot, message);
                doc.push(note.hint("the path is relative to the playbook"));
                (None, Notes::default())
            }
        }
    };
    let Some(draft) = draft else {
        return (None, None, notes);
    };
    let templates = Templates::beside(&doc.file);
    let sound = !notes.has_errors();
    let playbook = bind(doc, &spec, &draft.topology, &templates, sound);
    let mut inputs = vec![input];
    inputs.extend(super::template_inputs(&templates));
    inputs.extend(copied.into_values());
    let read = playbook.map(|playbook| ReadPlaybook {
        playbook,
        root,
        inputs,
        templates,
    });
    (read, Some(draft), notes)
}

fn check_adapters(doc: &Doc, spec: &PlaybookSpec) {
    for step in &spec.trial {
        let Some(ActionSpec::Load { adapter, .. }) = &step.action else {
            continue;
        };
        if !adapters::NAMES.contains(&adapter.value.as_str()) {
            let hint = suggest::advice(&adapter.value, "adapters", adapters::NAMES.iter().copied());
            let message = format!("unknown adapter {:?}", adapter.value);
            doc.push(doc.error(&adapter.spot, message).hint(hint));
        }
    }
}

fn read_copy(
    doc: &Doc,
    home: &Path,
    from: &Written<String>,
    copied: &mut BTreeMap<String, InputFile>,
) {
    if Path::new(&from.value).is_absolute() {
        let note = doc.error(
            &from.spot,
            "an absolute path cannot be kept with the experiment",
        );
        doc.push(note.hint("put the file beside the playbook, and name it relative to it"));
        return;
    }
    let path = home.join(&from.value);
    match files::read(&path) {
        Ok(content) => {
            copied.insert(from.value.clone(), InputFile { path, content });
        }
        Err(e) => {
            let note = doc.error(
                &from.spot,
                format!("{} cannot be read: {e}", path.display()),
            );
            doc.push(note.hint("the path is relative to the playbook"));
        }
    }
}

/// What `on` and roles can name.
struct Known<'t> {
    domains: HashMap<&'t str, &'t Domain>,
    groups: HashMap<&'t str, Vec<&'t Domain>>,
    roles: BTreeMap<&'t str, Vec<&'t Domain>>,
}

fn bind(
    doc: &Doc,
    spec: &PlaybookSpec,
    topology: &Topology,
    templates: &Templates,
    sound: bool,
) -> Option<Playbook> {
    let mut known = Known {
        domains: topology
            .domains
            .iter()
            .map(|d| (d.name.as_str(), d))
            .collect(),
        groups: HashMap::new(),
        roles: BTreeMap::new(),
    };
    for domain in &topology.domains {
        known.groups.entry(&domain.group).or_default().push(domain);
    }
    for role in &spec.roles {
        bind_role(doc, role, &mut known);
    }
    let factors = spec
        .factors
        .iter()
        .map(|f| f.name.value.to_string())
        .collect();
    let mut checker = Checker::new(doc, templates, sound, factors);
    let scope = Scope::new(topology);
    let first: Vec<&Domain> = topology.domains.iter().take(1).collect();
    let mut used = vec![false; spec.factors.len()];
    let mut steps = |written: &[StepSpec], factors: &[FactorSpec]| -> Vec<Step> {
        written
            .iter()
            .filter_map(|step| {
                let on = targets(doc, step, &known);
                // Texts of a step whose domains are unknown are looked at all the same.
                let shown = if on.is_empty() { &first[..] } else { &on[..] };
                check_step(&mut checker, &scope, step, shown, factors, &mut used);
                resolve_step(step, &on)
            })
            .collect()
    };
    let setup = steps(&spec.setup, &[]);
    let trial = steps(&spec.trial, &spec.factors);
    if !doc.has_errors() && sound {
        warn_of_idle_factors(doc, &spec.factors, &used);
    }
    Some(Playbook {
        name: spec.name.as_ref()?.value.clone(),
        roles: spec
            .roles
            .iter()
            .map(|role| {
                let members = known.roles.get(role.name.value.as_str());
                let names = members
                    .into_iter()
                    .flatten()
                    .map(|d| d.name.clone())
                    .collect();
                (role.name.value.clone(), names)
            })
            .collect(),
        factors: spec
            .factors
            .iter()
            .map(|f| Factor {
                name: f.name.value.clone(),
                levels: f.levels.clone(),
            })
            .collect(),
        design: spec.design.clone(),
        setup,
        trial,
        metrics: spec.metrics.clone(),
        margin: spec.margin,
    })
}

fn bind_role<'t>(doc: &Doc, role: &'t RoleSpec, known: &mut Known<'t>) {
    let mut members: Vec<&Domain> = Vec::new();
    let mut seen: HashMap<&str, &Spot> = HashMap::new();
    for written in &role.members {
        let name = written.value.as_str();
        let found = match (known.domains.get(name), known.groups.get(name)) {
            (Some(domain), _) => vec![*domain],
            (None, Some(group)) => group.clone(),
            (None, None) => {
                doc.push(unknown(
                    doc,
                    written,
                    known,
                    "domain",
                    "domains of the topology",
                ));
                continue;
            }
        };
        for domain in found {
            if let Some(first) = seen.insert(&domain.name, &written.spot) {
                let message = format!("domain {:?} is in this role twice", domain.name.as_str());
                let note = doc.error(&written.spot, message).hint("name it once");
                doc.push(note.label(Some(doc.place(first)), "first here"));
                break;
            }
            members.push(domain);
        }
    }
    let name = role.name.value.as_str();
    let alike = known.domains.contains_key(name) || known.groups.contains_key(name);
    let itself = members
        .iter()
        .any(|d| *d.name == *name || *d.group == *name);
    if alike && !itself && !members.is_empty() {
        let message = format!("role {name:?} is called like a domain that is not in it");
        let note = doc.error(&role.name.spot, message);
        doc.push(note.hint("rename the role, so that it is clear which is meant"));
    }
    known.roles.insert(name, members);
}

fn unknown(doc: &Doc, written: &Written<String>, known: &Known<'_>, what: &str, all: &str) -> Note {
    let mut names: Vec<&str> = known
        .domains
        .keys()
        .chain(known.groups.keys())
        .copied()
        .collect();
    if what != "domain" {
        names.extend(known.roles.keys());
    }
    names.sort_unstable();
    names.dedup();
    let hint = suggest::advice(&written.value, all, names);
    doc.error(&written.spot, format!("unknown {what} {:?}", written.value))
        .hint(hint)
}

/// The domains a step is done on, each once, in the order they are named.
fn targets<'t>(doc: &Doc, step: &StepSpec, known: &Known<'t>) -> Vec<&'t Domain> {
    let mut on: Vec<&Domain> = Vec::new();
    let mut seen: HashMap<&str, ()> = HashMap::new();
    for written in &step.on {
        let name = written.value.as_str();
        let found = known
            .roles
            .get(name)
            .or_else(|| known.groups.get(name))
            .cloned();
        let found = found.or_else(|| known.domains.get(name).map(|domain| vec![*domain]));
        match found {
            Some(found) => {
                on.extend(
                    found
                        .into_iter()
                        .filter(|d| seen.insert(&d.name, ()).is_none()),
                );
            }
            None => {
                let all = "roles and domains";
                doc.push(unknown(doc, written, known, "role or domain", all));
            }
        }
    }
    on
}

/// Renders all texts of a step as trials will: on its first domain with every level of every
/// factor, on the others with the first levels. Tells which factors change a text.
fn check_step(
    checker: &mut Checker<'_>,
    scope: &Scope,
    step: &StepSpec,
    on: &[&Domain],
    factors: &[FactorSpec],
    used: &mut [bool],
) {
    let Some(action) = &step.action else { return };
    let base: Vec<(Name, Level)> = factors
        .iter()
        .filter_map(|f| Some((f.name.value.clone(), f.levels.first()?.clone())))
        .collect();
    if base.len() < factors.len() {
        return;
    }
    let mut render = |domain: &Domain, levels: &[(Name, Level)]| {
        let context = scope.context(Some(domain), levels);
        match action {
            ActionSpec::Run(text) | ActionSpec::WaitCommand(text) => checker.text(text, &context),
            ActionSpec::Load { run, .. } => checker.text(run, &context),
            ActionSpec::Template { template, vars, .. } => checker.file(template, vars, &context),
            ActionSpec::Copy { .. } | ActionSpec::Service { .. } | ActionSpec::WaitPort(_) => {
                Some(String::new())
            }
        }
    };
    let Some((first, others)) = on.split_first() else {
        return;
    };
    let Some(text) = render(first, &base) else {
        return;
    };
    for (i, factor) in factors.iter().enumerate() {
        for level in &factor.levels[1..] {
            let mut levels = base.clone();
            levels[i].1 = level.clone();
            match render(first, &levels) {
                Some(other) => used[i] |= other != text,
                None => return,
            }
        }
    }
    for domain in others {
        if render(domain, &base).is_none() {
            return;
        }
    }
}

fn warn_of_idle_factors(doc: &Doc, factors: &[FactorSpec], used: &[bool]) {
    for (factor, used) in factors.iter().zip(used) {
        if !used && factor.levels.len() > 1 {
            let spot = &factor.name.spot;
            let message = format!(
                "factor {:?} changes nothing in the trial",
                factor.name.value.as_str()
            );
            let hint = format!("use it in a step, as in {{{{ {} }}}}", factor.name.value);
            doc.push(
                Note::warning(&spot.path, message)
                    .at(doc.place(spot))
                    .hint(hint),
            );
        }
    }
}

fn resolve_step(step: &StepSpec, on: &[&Domain]) -> Option<Step> {
    let (usual, action) = match step.action.as_ref()? {
        ActionSpec::Run(command) => (
            brief(&command.value),
            StepAction::Run {
                command: command.value.clone(),
            },
        ),
        ActionSpec::Template {
            template,
            to,
            mode,
            vars,
        } => {
            let template = template.value.clone();
            let action = StepAction::Template {
                template,
                to: to.clone(),
                mode: *mode,
                vars: vars.clone(),
            };
            (format!("template {to}"), action)
        }
        ActionSpec::Copy { from, to, mode } => {
            let from = from.value.clone();
            (
                format!("copy {to}"),
                StepAction::Copy {
                    from,
                    to: to.clone(),
                    mode: *mode,
                },
            )
        }
        ActionSpec::Service { verb, service } => {
            let action = StepAction::Service {
                verb: *verb,
                service: service.clone(),
            };
            (format!("{verb} {service}"), action)
        }
        ActionSpec::WaitPort(port) => {
            let until = WaitFor::Port(*port);
            (format!("wait for port {port}"), StepAction::Wait { until })
        }
        ActionSpec::WaitCommand(command) => {
            let until = WaitFor::Command(command.value.clone());
            (
                format!("wait for {}", brief(&command.value)),
                StepAction::Wait { until },
            )
        }
        ActionSpec::Load {
            run,
            adapter,
            expect,
        } => {
            let (command, adapter) = (run.value.clone(), adapter.value.clone());
            let name = format!("load {adapter}");
            (
                name,
                StepAction::Load {
                    command,
                    adapter,
                    expect: *expect,
                },
            )
        }
    };
    Some(Step {
        name: step.name.clone().unwrap_or(usual),
        on: on.iter().map(|d| d.name.clone()).collect(),
        action,
        timeout: step.timeout,
    })
}

/// The first words of a command, for people.
fn brief(command: &str) -> String {
    const WIDTH: usize = 40;
    let line = command.split_whitespace().collect::<Vec<_>>().join(" ");
    match line.char_indices().nth(WIDTH) {
        None => line,
        Some((end, _)) => format!("{}…", line[..end].trim_end()),
    }
}
