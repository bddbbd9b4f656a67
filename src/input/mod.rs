//! YAML files to checked, resolved topologies and playbooks; the only place that knows YAML.
//!
//! A file goes through three stages: a tree whose nodes know their places, a spec (as written),
//! and the resolved value. Every check adds to one list of notes, so a person sees all that is
//! wrong at once. Nothing is created here.

mod addresses;
mod disks;
mod doc;
mod expressions;
mod files;
mod guest_path;
mod guest_settings;
mod images;
mod include;
mod instances;
mod language;
mod merge;
mod names;
mod networks;
mod placement;
mod playbook;
mod playbook_spec;
mod playbook_steps;
mod read;
mod reference;
mod resolve;
mod scalar;
mod schema;
mod shape;
mod shares;
mod source;
mod suggest;
mod templates;
mod topology;
mod tree;
mod vars;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

pub use files::InputFile;
pub use language::Language;
pub use source::SourceMap;

use crate::diag::Notes;
use crate::model::{Digest, HostShape, Name, Playbook, Secrets, Topology};
use crate::render::Templates;
use read::{At, Doc};
use tree::{Kind, Node};

/// What a caller may decide beside the file.
#[derive(Debug, Clone, Default)]
pub struct Options {
    /// The lab's name, instead of the topology's.
    pub name: Option<Name>,
    /// The host that splits divide where the topology describes none; none: not known, and then
    /// nothing can depend on it.
    pub host: Option<HostShape>,
    /// Keys of images whose files are absent, by the path of the disk (else the kernel) as
    /// resolved: the topology's directory joined with what it says. A rerun knows them from the
    /// archive, which keeps no disks.
    pub image_keys: BTreeMap<PathBuf, Digest>,
    /// Values for the topology's variables, instead of those that it gives them.
    pub set: BTreeMap<String, serde_json::Value>,
}

/// A file that was read, checked and resolved.
pub struct Loaded<T> {
    /// What it says.
    pub value: T,
    /// What should be looked at all the same.
    pub warnings: Notes,
    /// Places of its parts, for later checks.
    pub source: SourceMap,
    /// All files that were read, as they were; the file itself is the first. No disks or kernels.
    pub inputs: Vec<InputFile>,
    /// Its templates, as they were checked.
    pub templates: Templates,
    /// Secrets of the environment that its files hold.
    pub secrets: Secrets,
}

/// A playbook with its topology.
pub struct LoadedPlaybook {
    /// The playbook.
    pub playbook: Loaded<Playbook>,
    /// The topology it names.
    pub topology: Loaded<Topology>,
}

/// Keys that only playbooks have.
const OF_PLAYBOOKS: &[&str] = &["trial", "topology"];

/// Keys that only topologies have.
const OF_TOPOLOGIES: &[&str] = &["domains", "vswitches", "images"];

/// A topology that may lack parts, with the notes that say why.
struct Draft {
    topology: Topology,
    source: SourceMap,
    inputs: Vec<InputFile>,
    templates: Templates,
    secrets: Secrets,
}

/// Loads a topology.
///
/// # Errors
/// All notes about it, when one of them is an error.
pub fn load_topology(file: &Path, options: &Options) -> Result<Loaded<Topology>, Notes> {
    let (draft, notes) = draft_topology(file, options);
    finish(draft, notes)
}

/// Loads a playbook and the topology it names.
///
/// # Errors
/// All notes about both, when one of them is an error.
pub fn load_playbook(file: &Path, options: &Options) -> Result<LoadedPlaybook, Notes> {
    playbook::load(file, options)
}

fn finish(draft: Option<Draft>, notes: Notes) -> Result<Loaded<Topology>, Notes> {
    match draft {
        Some(draft) if !notes.has_errors() => Ok(Loaded {
            value: draft.topology,
            warnings: notes,
            source: draft.source,
            inputs: draft.inputs,
            templates: draft.templates,
            secrets: draft.secrets,
        }),
        _ => Err(notes),
    }
}

fn draft_topology(file: &Path, options: &Options) -> (Option<Draft>, Notes) {
    let doc = Doc::new(file);
    let draft = read_topology(&doc, options);
    let mut notes = doc.into_notes().sorted();
    if let Some(draft) = &draft {
        hide(&draft.secrets, &mut notes);
    }
    (draft, notes)
}

/// Takes secrets out of notes: a template's error may say what it found.
fn hide(secrets: &Secrets, notes: &mut Notes) {
    for note in &mut notes.0 {
        for secret in secrets.reveal().values() {
            for text in [Some(&mut note.message), note.hint.as_mut()] {
                let text = text.filter(|text| text.contains(secret));
                if let Some(text) = text {
                    *text = text.replace(secret, "…");
                }
            }
        }
    }
}

/// The key that tells that a file is of the other language, and none of its own.
fn foreign_key(root: &Node, wanted: Language) -> Option<&'static str> {
    let Kind::Map(map) = &root.kind else {
        return None;
    };
    let has = |key: &&str| map.get(key).is_some();
    let (own, foreign) = match wanted {
        Language::Topology => (OF_TOPOLOGIES, OF_PLAYBOOKS),
        Language::Playbook => (OF_PLAYBOOKS, OF_TOPOLOGIES),
    };
    match own.iter().any(&has) {
        true => None,
        false => foreign.iter().copied().find(&has),
    }
}

fn wrong_language(doc: &Doc, root: &Node, key: &str, message: String, hint: &str) {
    if let Some(at) = At::top(doc, root).section(key) {
        at.key_error(message, hint);
    }
}

fn read_topology(doc: &Doc, options: &Options) -> Option<Draft> {
    let (mut inputs, mut root) = include::read_with_includes(doc)?;
    if let Some(key) = foreign_key(&root, Language::Topology) {
        let message = format!("a topology is wanted, this is a playbook: it has {key:?}");
        wrong_language(doc, &root, key, message, "`labrig run` takes a playbook");
        return None;
    }
    let mut spec = topology::TopologySpec::read(doc, &mut root, options)?;
    let templates = Templates::beside(&doc.file);
    let (topology, copied) = resolve::resolve(doc, &spec, options, &templates)?;
    inputs.extend(copied);
    let secrets = std::mem::take(&mut spec.vars.secrets);
    templates::check_topology(doc, &spec, &topology, &secrets, &templates);
    inputs.extend(template_inputs(&templates));
    Some(Draft {
        topology,
        source: SourceMap::new(doc.files(), root),
        inputs,
        templates,
        secrets,
    })
}

fn template_inputs(templates: &Templates) -> impl Iterator<Item = InputFile> {
    let files = templates.files().into_values();
    files.map(|file| InputFile {
        path: file.path,
        content: file.content.into_bytes(),
    })
}

/// What a text means as a value in a topology, as in `--set users=100`. What is not a number, a
/// truth value or null is a text.
pub fn value_of(text: &str) -> serde_json::Value {
    scalar::value(text)
}

/// Whether a file is a playbook rather than a topology: a playbook has trials.
pub fn is_playbook(file: &Path) -> bool {
    let text = files::read(file)
        .ok()
        .and_then(|bytes| String::from_utf8(bytes).ok());
    // A file that cannot be understood is taken for a topology, whose loader says why, unless its
    // lines look like a playbook.
    let Some(text) = text else { return false };
    match tree::parse(&text, 0).0 {
        Some(root) => foreign_key(&root, Language::Topology).is_some(),
        None => text
            .lines()
            .any(|line| line.starts_with("trial:") || line.starts_with("topology:")),
    }
}
