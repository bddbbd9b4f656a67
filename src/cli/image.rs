//! `labrig image …`: the images that labs are made from.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;

use comfy_table::{CellAlignment, Table};
use jiff::Timestamp;
use serde::Serialize;

use super::error::{Failure, Kind, Result};
use super::lab::Record;
use super::state::State;
use super::up::{parse_set, with_runtime};
use super::{Global, output};
use crate::backend::images::{Collected, Store, StoredContent, linked};
use crate::engine;
use crate::input::{self, Options};
use crate::model::{Bytes, Digest, Image, ImageRecipe, ImageSource, Name, Topology};
use crate::plan::{Action, ActionKind, Plan};
use crate::ports::ImageStore;

/// Verbs of `image`.
#[derive(Debug, clap::Subcommand)]
pub(super) enum ImageVerb {
    /// List the images in the store, and the labs that use them
    Ls,
    /// Build, download or import images of a topology, without bringing anything up
    Build(BuildArgs),
    /// Take files into the store, and say what to write into a topology
    Import(ImportArgs),
    /// Read every file in the store, and say which is not what it was
    Verify,
    /// Remove the images that no lab uses
    Gc(GcArgs),
}

/// Arguments of `image build`.
#[derive(Debug, clap::Args)]
pub(super) struct BuildArgs {
    /// Topology file
    topology: PathBuf,
    /// Image of the topology [default: all that its domains use]
    image: Option<Name>,
    /// Gives a variable of the topology another value; may be given several times
    #[arg(long, value_parser = parse_set, value_name = "NAME=VALUE")]
    set: Vec<(String, serde_json::Value)>,
}

/// Arguments of `image import`.
#[derive(Debug, clap::Args)]
pub(super) struct ImportArgs {
    /// Disk, qcow2 or raw
    #[arg(required_unless_present = "kernel")]
    disk: Option<PathBuf>,
    /// Kernel to boot directly
    #[arg(long, value_name = "FILE")]
    kernel: Option<PathBuf>,
    /// Initial RAM disk of the kernel
    #[arg(long, value_name = "FILE", requires = "kernel")]
    initrd: Option<PathBuf>,
}

/// Arguments of `image gc`.
#[derive(Debug, clap::Args)]
pub(super) struct GcArgs {
    /// Only say what would be removed
    #[arg(long)]
    dry_run: bool,
}

/// An image as `image ls` shows it.
#[derive(Serialize)]
struct Listed {
    /// Digest of the content.
    digest: Digest,
    /// What it is found by.
    keys: BTreeSet<Digest>,
    /// Names that labs have for it.
    names: BTreeSet<Name>,
    /// Labs that use it.
    labs: BTreeSet<Name>,
    size_bytes: u64,
    made: Option<Timestamp>,
    /// What it was made from, for people.
    from: String,
    damage: Option<String>,
}

pub(super) fn run(global: &Global, verb: &ImageVerb) -> Result<ExitCode> {
    let state = State::of(global.state_dir.as_deref())?;
    match verb {
        ImageVerb::Ls => ls(global, &state),
        ImageVerb::Build(args) => build(global, &state, args),
        ImageVerb::Import(args) => import(global, &state, args),
        ImageVerb::Verify => verify(global, &state),
        ImageVerb::Gc(args) => gc(global, &state, args),
    }
}

fn ls(global: &Global, state: &State) -> Result<ExitCode> {
    let labs = Labs::read(state)?;
    let contents = Store::open(state.images()).contents(false)?;
    let listed: Vec<_> = contents.into_iter().map(|c| labs.list(c)).collect();
    if global.json {
        output::print_json(&listed)?;
    } else if listed.is_empty() {
        output::print(format!("no image in {}", state.images().display()))?;
    } else {
        output::print(draw(&listed))?;
    }
    Ok(ExitCode::SUCCESS)
}

/// What labs say about images.
struct Labs {
    /// Contents they link, by lab.
    links: BTreeMap<Name, BTreeSet<Digest>>,
    /// Names they have for images, by key.
    names: BTreeMap<Digest, BTreeSet<Name>>,
}

impl Labs {
    fn read(state: &State) -> Result<Self> {
        let (mut links, mut names) = (BTreeMap::new(), BTreeMap::<_, BTreeSet<_>>::new());
        for lab in state.lab_names()? {
            let paths = state.lab(&lab);
            // A lab that another labrig made, or that is being made, still holds its images.
            if let Ok(Some(record)) = Record::read(&paths) {
                for (name, image) in record.topology.images {
                    names.entry(image.key).or_default().insert(name);
                }
            }
            links.insert(lab, linked(&paths.images())?);
        }
        Ok(Self { links, names })
    }

    fn linked(&self) -> BTreeSet<Digest> {
        self.links.values().flatten().copied().collect()
    }

    fn list(&self, content: StoredContent) -> Listed {
        let names = content.keys.iter().filter_map(|key| self.names.get(key));
        let users = self.links.iter();
        Listed {
            names: names.flatten().cloned().collect(),
            labs: users
                .filter(|(_, digests)| digests.contains(&content.digest))
                .map(|(lab, _)| lab.clone())
                .collect(),
            from: from(&content),
            digest: content.digest,
            keys: content.keys,
            size_bytes: content.size.0,
            made: content.made,
            damage: content.damage,
        }
    }
}

impl Listed {
    fn row(&self) -> [String; 6] {
        let all = |names: &BTreeSet<Name>| match names.len() {
            0 => "-".to_owned(),
            _ => names.iter().map(Name::as_str).collect::<Vec<_>>().join(" "),
        };
        let age = self.made.map_or_else(
            || "-".to_owned(),
            |made| age(Timestamp::now().duration_since(made).as_secs()),
        );
        let from = match &self.damage {
            Some(damage) => format!("DAMAGED: {damage}"),
            None => self.from.clone(),
        };
        [
            self.digest.short(12),
            all(&self.names),
            mib(Bytes(self.size_bytes)),
            all(&self.labs),
            age,
            from,
        ]
    }
}

fn from(content: &StoredContent) -> String {
    let mut text = match &content.recipe {
        None => "files".to_owned(),
        Some(recipe) => recipe_text(recipe),
    };
    if !content.is_current {
        text.push_str(", by another labrig");
    }
    text
}

fn recipe_text(recipe: &ImageRecipe) -> String {
    let more = |count: usize, what: &str| match count {
        0 => String::new(),
        1 => format!(" + 1 {what}"),
        _ => format!(" + {count} {what}s"),
    };
    match recipe {
        ImageRecipe::Micro { suite, .. } => format!("micro {suite}"),
        ImageRecipe::Debian {
            suite, packages, ..
        } => suite.clone() + &more(packages.len(), "package"),
        ImageRecipe::Layer { base, packages, .. } => {
            let base = match &base.source {
                ImageSource::Build(recipe) => recipe_text(recipe),
                ImageSource::Path { .. } | ImageSource::Url { .. } => "files".to_owned(),
            };
            format!("layer on {base}") + &more(packages.len(), "package")
        }
    }
}

fn mib(size: Bytes) -> String {
    format!("{} MiB", size.0.div_ceil(1 << 20))
}

/// As in `3d`, `4h`, `5m`: the largest unit.
fn age(seconds: i64) -> String {
    match (seconds / 86_400, seconds / 3_600, seconds / 60) {
        (0, 0, minutes) => format!("{}m", minutes.max(0)),
        (0, hours, _) => format!("{hours}h"),
        (days, ..) => format!("{days}d"),
    }
}

fn draw(listed: &[Listed]) -> String {
    let mut table = Table::new();
    table.load_style(comfy_table::presets::NOTHING);
    table.set_header(["CONTENT", "NAME", "SIZE", "USED BY", "AGE", "MADE FROM"]);
    for image in listed {
        table.add_row(image.row());
    }
    for column in [2, 4] {
        if let Some(column) = table.column_mut(column) {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
    // The last column is padded to the widest row.
    let lines: Vec<_> = table.lines().map(|l| l.trim_end().to_owned()).collect();
    lines.join("\n")
}

fn build(global: &Global, state: &State, args: &BuildArgs) -> Result<ExitCode> {
    let options = Options {
        set: args.set.iter().cloned().collect(),
        ..Options::default()
    };
    let loaded = input::load_topology(&args.topology, &options)?;
    output::print_notes(&loaded.warnings);
    let topology = loaded.value;
    let wanted = wanted(&topology, args.image.as_ref())?;
    let actions = wanted.iter().map(|(name, image)| Action {
        kind: ActionKind::EnsureImage {
            name: (*name).clone(),
            image: (*image).clone(),
            // It is for no lab.
            link: PathBuf::new(),
        },
        reason: "it was asked for".to_owned(),
        after: Vec::new(),
        domain: None,
    });
    let plan = Plan {
        actions: actions.collect(),
    };
    let store: Arc<dyn ImageStore> = Arc::new(Store::open(state.images()));
    let left = "nothing half made is left; what was downloaded is gone on with";
    let made = with_runtime(global, left, async |bus, cancel| {
        Ok(engine::provide(&store, &plan, bus, cancel).await?)
    })?;
    for ((name, _), (image, files)) in wanted.iter().zip(&made) {
        if global.json {
            let line = serde_json::json!({"image": name, "key": image.key, "digest": files.digest});
            output::print_json_line(&line)?;
        } else {
            output::print(format!("image {name} is there: {}", files.digest.short(12)))?;
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// The images that are asked for, with their names in the topology.
fn wanted<'a>(topology: &'a Topology, image: Option<&Name>) -> Result<Vec<(&'a Name, &'a Image)>> {
    let Some(asked) = image else {
        return Ok(topology.images.iter().collect());
    };
    if let Some(found) = topology.images.get_key_value(asked) {
        return Ok(vec![found]);
    }
    let names: Vec<_> = topology.images.keys().map(Name::as_str).collect();
    Err(
        Failure::usage(format!("find image {asked} in the topology"))
            .hint(format!("its domains use {}", names.join(", "))),
    )
}

fn import(global: &Global, state: &State, args: &ImportArgs) -> Result<ExitCode> {
    let part = |path: &Option<PathBuf>| -> Result<Option<(PathBuf, Digest)>> {
        let Some(path) = path else { return Ok(None) };
        let path = std::path::absolute(path)?;
        let digest = Digest::of_reader(fs_err::File::open(&path)?)?;
        Ok(Some((path, digest)))
    };
    let (disk, kernel, initrd) = (part(&args.disk)?, part(&args.kernel)?, part(&args.initrd)?);
    let digest = |part: &Option<(PathBuf, Digest)>| part.as_ref().map(|(_, digest)| *digest);
    let path = |part: &Option<(PathBuf, Digest)>| part.as_ref().map(|(path, _)| path.clone());
    let image = Image {
        key: Image::path_key(digest(&disk), digest(&kernel), digest(&initrd)),
        source: ImageSource::Path {
            disk: path(&disk),
            kernel: path(&kernel),
            initrd: path(&initrd),
        },
        cloud_init: false,
    };
    let files = Store::open(state.images()).ensure(&image, &|_| {})?;
    // A topology's digest is that of the first of its files.
    let sha256 = digest(&disk).or(digest(&kernel)).unwrap_or(image.key);
    if global.json {
        output::print_json(&serde_json::json!({
            "key": image.key,
            "digest": files.digest,
            "sha256": sha256,
        }))?;
        return Ok(ExitCode::SUCCESS);
    }
    let keys = [("path", &disk), ("kernel", &kernel), ("initrd", &initrd)];
    let keys: String = keys
        .into_iter()
        .filter_map(|(key, part)| {
            let (path, _) = part.as_ref()?;
            Some(format!("{key}: {}, ", yaml_text(path)))
        })
        .collect();
    let name = disk.as_ref().or(kernel.as_ref()).map(|(path, _)| path);
    output::print(format!(
        "the image is in the store. In a topology:\n\nimages:\n  {}: {{{keys}sha256: \"{sha256}\"}}",
        image_name(name)
    ))?;
    Ok(ExitCode::SUCCESS)
}

/// A name for an image made of this file.
fn image_name(path: Option<&PathBuf>) -> String {
    let stem = path.and_then(|path| path.file_stem()?.to_str());
    let name = stem.and_then(|stem| stem.to_lowercase().parse::<Name>().ok());
    name.map_or_else(|| "image".to_owned(), |name| name.to_string())
}

/// A path as a YAML text; JSON's form is one.
fn yaml_text(path: &Path) -> String {
    serde_json::Value::from(path.to_string_lossy()).to_string()
}

fn verify(global: &Global, state: &State) -> Result<ExitCode> {
    let contents = Store::open(state.images()).contents(true)?;
    let damaged: Vec<_> = contents
        .iter()
        .filter_map(|content| Some((content.digest, content.damage.as_ref()?)))
        .collect();
    if global.json {
        let damaged: Vec<_> = damaged
            .iter()
            .map(|(digest, damage)| serde_json::json!({"digest": digest, "damage": damage}))
            .collect();
        let report = serde_json::json!({"images": contents.len(), "damaged": damaged});
        output::print_json(&report)?;
    } else {
        for (digest, damage) in &damaged {
            output::print(format!("{digest} is DAMAGED: {damage}"))?;
        }
        let good = contents.len() - damaged.len();
        output::print(format!("{good} of {} images are good", contents.len()))?;
    }
    Ok(if damaged.is_empty() {
        ExitCode::SUCCESS
    } else {
        Kind::Host.exit_code()
    })
}

fn gc(global: &Global, state: &State, args: &GcArgs) -> Result<ExitCode> {
    let collected = Store::open(state.images())
        .collect(|| Labs::read(state).map(|labs| labs.linked()), args.dry_run)?;
    let freed = Bytes(collected.iter().map(|item| item.size.0).sum());
    if global.json {
        let removed: Vec<_> = collected.iter().map(item_json).collect();
        output::print_json(&serde_json::json!({
            "dry_run": args.dry_run,
            "removed": removed,
            "freed_bytes": freed.0,
        }))?;
        return Ok(ExitCode::SUCCESS);
    }
    for item in &collected {
        output::print(format!("{:>10}  {}", mib(item.size), item.name))?;
    }
    let (count, done) = (
        collected.len(),
        if args.dry_run { "would be" } else { "are" },
    );
    output::print(format!("{count} removed: {} {done} free", mib(freed)))?;
    Ok(ExitCode::SUCCESS)
}

fn item_json(item: &Collected) -> serde_json::Value {
    serde_json::json!({"name": item.name, "size_bytes": item.size.0})
}
