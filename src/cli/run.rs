//! `labrig run`, `resume` and `rerun`: experiments on labs.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;

use jiff::Timestamp;

use super::bring_up::BringUp;
use super::error::{Failure, Kind, Result};
use super::lab::OpenLab;
use super::lock::{self, Inputs};
use super::state::State;
use super::up::{LabArgs, with_runtime};
use super::{Global, output};
use crate::analyse::{self, Overall};
use crate::archive::{DerivedFrom, Lock, Manifest, RunDir};
use crate::backend::images::Store;
use crate::backend::{SystemClock, host, host_shape};
use crate::design;
use crate::engine::{self, Bus, Cancel, Experiment, TemplateRenderer, World};
use crate::input::{self, LoadedPlaybook, Options};
use crate::model::{Acceleration, Event, EventLevel, HostFacts, Name, Trial};
use crate::render::Templates;
use crate::report::{ResultTable, comparison_text, differences_text};

/// Directory on the guests for what lasts until they are started anew.
const GUEST_DIRECTORY: &str = "/run/labrig";

/// Arguments of `run`.
#[derive(Debug, clap::Args)]
pub(super) struct RunArgs {
    /// Playbook file; or the directory of a run that is not finished, which is then resumed
    playbook: PathBuf,
    #[command(flatten)]
    lab: LabArgs,
    /// Where runs are filed
    #[arg(long, default_value = "runs", value_name = "DIR")]
    runs: PathBuf,
}

/// Arguments of `resume`.
#[derive(Debug, clap::Args)]
pub(super) struct ResumeArgs {
    /// Directory of the run, as `labrig runs` lists it
    run: PathBuf,
    #[command(flatten)]
    lab: LabArgs,
}

/// Arguments of `rerun`.
#[derive(Debug, clap::Args)]
pub(super) struct RerunArgs {
    /// Directory of the run to repeat, as `labrig runs` lists it
    run: PathBuf,
    #[command(flatten)]
    lab: LabArgs,
    /// Where runs are filed
    #[arg(long, default_value = "runs", value_name = "DIR")]
    runs: PathBuf,
}

/// Where a new run comes from and goes to.
struct NewRun<'a> {
    root: &'a Path,
    derived_from: Option<DerivedFrom>,
    trials: Vec<Trial>,
}

pub(super) fn run(global: &Global, args: &RunArgs) -> Result<ExitCode> {
    if args.playbook.is_dir() {
        return resume_run(global, &args.playbook, &args.lab);
    }
    let loaded = load(&args.playbook, &args.lab.options()?)?;
    let trials = design::trials(&loaded.playbook.value);
    check_runs(&args.runs)?;
    let new = NewRun {
        root: &args.runs,
        derived_from: None,
        trials,
    };
    let (archive, code) = on_lab(global, &loaded, &args.lab, |facts, store, _| {
        create(&loaded, new, facts, store)
    })?;
    show_results(global, &archive)?;
    Ok(code)
}

pub(super) fn resume(global: &Global, args: &ResumeArgs) -> Result<ExitCode> {
    resume_run(global, &args.run, &args.lab)
}

fn resume_run(global: &Global, directory: &Path, lab: &LabArgs) -> Result<ExitCode> {
    let archive = RunDir::open(directory)?;
    let loaded = load_archived(&archive, lab)?;
    // Damage shows before anything is made.
    archive.results()?;
    archive.journals()?;
    // So does another labrig that writes the run; the lock is taken for good when the lab is up.
    drop(archive.writer(&writer_name(), Arc::new(SystemClock))?);
    let (archive, code) = on_lab(global, &loaded, lab, |facts, store, bus| {
        let inputs = Inputs::of(&loaded)?;
        let now = lock::lock(&loaded, &inputs, archive.trials(), facts, store)?;
        tell_differences(bus, archive.lock(), &now);
        Ok(archive)
    })?;
    show_results(global, &archive)?;
    Ok(code)
}

pub(super) fn rerun(global: &Global, args: &RerunArgs) -> Result<ExitCode> {
    let first = RunDir::open(&args.run)?;
    let loaded = load_archived(&first, &args.lab)?;
    // Read now what is compared with in the end: an hour later is too late to find it damaged.
    let results = first.results()?;
    check_runs(&args.runs)?;
    let new = NewRun {
        root: &args.runs,
        derived_from: Some(DerivedFrom {
            path: first.path().display().to_string(),
            root: first.lock().root,
        }),
        trials: first.trials().to_vec(),
    };
    let (second, code) = on_lab(global, &loaded, &args.lab, |facts, store, bus| {
        let archive = create(&loaded, new, facts, store)?;
        tell_differences(bus, first.lock(), archive.lock());
        Ok(archive)
    })?;
    let comparison = analyse::compare(&results, &second.results()?, first.playbook());
    if global.json {
        output::print_json_line(&serde_json::json!({
            "event": "result",
            "run": second.path(),
            "derived_from": first.path(),
            "differences": first.lock().diff(second.lock()),
            "comparison": comparison,
        }))?;
    } else {
        show_results(global, &second)?;
        output::print(comparison_text(&comparison, output::width()))?;
    }
    match comparison.overall {
        Overall::Differs { .. } => Ok(ExitCode::FAILURE),
        Overall::Reproduced { .. } | Overall::Inconclusive { .. } => Ok(code),
    }
}

/// Checks that runs can be filed in a directory, before a lab is brought up for one.
fn check_runs(directory: &Path) -> Result<()> {
    let made = fs_err::create_dir_all(directory).and_then(|()| tempfile::tempfile_in(directory));
    made.map(drop).map_err(|e| {
        let message = format!("file runs in {}", directory.display());
        Failure::new(Kind::Input, anyhow::Error::new(e).context(message))
            .hint("say with --runs where they are to go")
    })
}

fn load(file: &Path, options: &Options) -> Result<LoadedPlaybook> {
    let loaded = input::load_playbook(file, options)?;
    output::print_notes(&loaded.playbook.warnings);
    output::print_notes(&loaded.topology.warnings);
    Ok(loaded)
}

/// A leaf that every lock has.
fn leaf<'a>(archive: &'a RunDir, name: &str) -> Result<&'a str> {
    let value = archive.lock().leaves.get(name);
    value.map(String::as_str).ok_or_else(|| {
        let message = format!("use {}: its lock has no {name}", archive.path().display());
        Failure::new(Kind::Input, anyhow::Error::msg(message))
    })
}

/// The playbook's file in an archive.
fn playbook_file(archive: &RunDir) -> Result<PathBuf> {
    Ok(archive
        .inputs_path()
        .join(leaf(archive, lock::PLAYBOOK_FILE)?))
}

/// Loads the playbook that an archive holds, after its inputs were checked against its lock.
fn load_archived(archive: &RunDir, lab: &LabArgs) -> Result<LoadedPlaybook> {
    if !lab.topology.set.is_empty() {
        return Err(
            Failure::usage("set a variable: those of a run are as they were")
                .hint("leave --set out, or run the playbook anew with it"),
        );
    }
    archive.inputs()?;
    if leaf(archive, lock::TRIALS)? != lock::trials_digest(archive.trials())?.to_string() {
        let message = format!(
            "use {}: the trials of its plan are not what its lock says they were",
            archive.path().display()
        );
        return Err(Failure::new(Kind::Input, anyhow::Error::msg(message))
            .hint("something else than labrig changed it: restore it from a copy"));
    }
    let playbook = playbook_file(archive)?;
    let name = match &lab.topology.name {
        Some(name) => name.clone(),
        None => leaf(archive, lock::LAB)?
            .parse()
            .map_err(|e| Failure::new(Kind::Input, anyhow::Error::new(e)))?,
    };
    let image_keys = image_keys(archive);
    load(
        &playbook,
        &Options {
            name: Some(name),
            host: Some(host_shape::shape()?),
            image_keys,
            set: archive
                .topology()
                .vars
                .iter()
                .map(|(name, value)| (name.clone(), value.clone()))
                .collect(),
        },
    )
}

/// Keys of images whose files the archive does not keep, by where the archived topology would look
/// for them.
fn image_keys(archive: &RunDir) -> BTreeMap<PathBuf, crate::model::Digest> {
    let leaves = &archive.lock().leaves;
    let images = archive.topology().images.iter();
    images
        .filter_map(|(name, image)| {
            let file = leaves.get(&lock::image_file(name))?;
            Some((archive.inputs_path().join(file), image.key))
        })
        .collect()
}

/// Brings the lab up, lets `archive` open or create the run, and runs what is not done of it.
fn on_lab(
    global: &Global,
    loaded: &LoadedPlaybook,
    args: &LabArgs,
    archive: impl FnOnce(&HostFacts, &Store, &Bus) -> Result<RunDir>,
) -> Result<(RunDir, ExitCode)> {
    let state = State::of(global.state_dir.as_deref())?;
    let name = loaded.topology.value.lab.name.clone();
    let bring_up = BringUp {
        state: &state,
        loaded: &loaded.topology,
        host: args.host.clone(),
        is_dry: false,
    };
    bring_up.plan()?;
    let _lock = state.lock(&name, "run")?;
    host_shape::keep_to(&loaded.topology.value.host.reserve)?;
    let left = format!(
        "`labrig run` on the run's directory resumes, `labrig down {name}` removes the lab"
    );
    with_runtime(global, &left, async |bus, cancel| {
        let lab = bring_up.run(bus, cancel).await?;
        let facts = host::facts(
            lab.record.acceleration.unwrap_or(Acceleration::Emulation),
            Some(&lab.hypervisor.connection().version()?),
        )?;
        let store = Store::open(state.images());
        let run = archive(&facts, &store, bus)?;
        let code = experiment(loaded, &lab, &run, bus, cancel).await?;
        Ok((run, code))
    })
}

async fn experiment(
    loaded: &LoadedPlaybook,
    lab: &OpenLab,
    run: &RunDir,
    bus: &Bus,
    cancel: &Cancel,
) -> Result<ExitCode> {
    let clock = Arc::new(SystemClock);
    let writer = Arc::new(run.writer(&writer_name(), clock.clone())?);
    let playbook = run.playbook().clone();
    let topology = &loaded.topology.value;
    // The archive's own inputs: whoever changes theirs meanwhile changes no trial.
    let file = playbook_file(run)?;
    let (templates, home) = (
        Templates::beside(&file),
        file.parent().unwrap_or(Path::new("")),
    );
    let mut targets = BTreeMap::new();
    for domain in &topology.domains {
        targets.insert(domain.name.clone(), lab.target(&domain.name)?);
    }
    let stamp = Timestamp::now().strftime("%Y%m%dT%H%M%SZ").to_string();
    let name = run.path().file_name().unwrap_or_default().to_string_lossy();
    let experiment = Experiment {
        run: name.into_owned(),
        directory: run.path().to_path_buf(),
        setup_directory: run.path().join("setup").join(stamp),
        playbook,
        trials: run.trials().to_vec(),
        targets,
        guest_directory: GUEST_DIRECTORY.to_owned(),
    };
    let world = World {
        remote: lab.remote.clone(),
        attempts: writer,
        clock,
        renderer: Arc::new(TemplateRenderer::new(
            topology.clone(),
            templates,
            home.to_path_buf(),
        )),
    };
    let result = engine::run(&experiment, &world, bus, cancel).await;
    drop(world);
    let indexed = run.index();
    // The run's own trouble first: a full disk is likely to be that of the index as well.
    let summary = result.map_err(|error| {
        Failure::from(error).hint(format!("`labrig run {}` resumes", run.path().display()))
    })?;
    indexed?;
    Ok(if summary.failed.is_empty() {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}

fn create(
    loaded: &LoadedPlaybook,
    new: NewRun<'_>,
    facts: &HostFacts,
    store: &Store,
) -> Result<RunDir> {
    let inputs = Inputs::of(loaded)?;
    let lock = lock::lock(loaded, &inputs, &new.trials, facts, store)?;
    let manifest = Manifest {
        host: nix::unistd::gethostname()
            .ok()
            .and_then(|name| name.into_string().ok()),
        user: std::env::var("USER").ok(),
        derived_from: new.derived_from,
        ..Manifest::new(Timestamp::now())
    };
    let (playbook, topology) = (&loaded.playbook.value, &loaded.topology.value);
    Ok(RunDir::create(
        new.root,
        &manifest,
        &inputs.files,
        &new.trials,
        playbook,
        topology,
        &lock,
    )?)
}

/// Says what differs from the run that is resumed or repeated.
fn tell_differences(bus: &Bus, before: &Lock, now: &Lock) {
    let differences = before.diff(now);
    if !differences.is_empty() {
        let text = differences_text(&differences, output::width());
        bus.send(&Event::Message {
            level: EventLevel::Warning,
            text: format!("this is not all as it was:\n{text}"),
        });
    }
}

fn show_results(global: &Global, archive: &RunDir) -> Result<()> {
    let table = ResultTable::new(&archive.results()?);
    if global.json {
        output::print_json_line(&serde_json::json!({
            "event": "result",
            "run": archive.path(),
            "results": table,
        }))?;
    } else {
        output::print(table.text(output::width()))?;
        output::print(format!("archive: {}", archive.path().display()))?;
    }
    Ok(())
}

/// The journal's name: a run has one writer at a time.
fn writer_name() -> Name {
    "main"
        .parse()
        .unwrap_or_else(|_| unreachable!("a constant that is a name"))
}
