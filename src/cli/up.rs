//! `labrig up`: a lab is as its file says.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use super::bring_up::BringUp;
use super::error::{Failure, Kind, Result};
use super::lab::HostKind;
use super::progress::Progress;
use super::state::State;
use super::{Global, output, signals};
use crate::backend::{SystemClock, host_shape};
use crate::engine::{Bus, Cancel};
use crate::input::{self, Loaded, Options};
use crate::model::{Name, Topology};

/// What the command line decides beside a topology.
#[derive(Debug, Clone, clap::Args)]
pub(super) struct TopologyChoice {
    /// Name of the lab, instead of the one that the topology or the archive gives
    #[arg(long, value_name = "NAME")]
    pub name: Option<Name>,
    /// Gives a variable of the topology another value; may be given several times
    #[arg(long, value_parser = parse_set, value_name = "NAME=VALUE")]
    pub set: Vec<(String, serde_json::Value)>,
}

/// Arguments of `up` that other verbs share.
#[derive(Debug, Clone, clap::Args)]
pub(super) struct LabArgs {
    #[command(flatten)]
    pub topology: TopologyChoice,
    /// Where it runs: embedded (a libvirtd of its own), qemu:///system, or a qemu+unix URI
    /// [default: where the lab is, else embedded]
    #[arg(long, value_parser = HostKind::parse, value_name = "HOST")]
    pub host: Option<HostKind>,
}

/// Parses `--set`.
pub(super) fn parse_set(text: &str) -> std::result::Result<(String, serde_json::Value), String> {
    match text.split_once('=') {
        Some((name, value)) if !name.is_empty() => Ok((name.to_owned(), input::value_of(value))),
        _ => Err("write a name and its value, as in users=100".to_owned()),
    }
}

impl TopologyChoice {
    /// What the command line decides beside a file, and the host as it is.
    pub(super) fn options(&self) -> Result<Options> {
        Ok(Options {
            name: self.name.clone(),
            set: self.set.iter().cloned().collect(),
            host: Some(host_shape::shape()?),
            ..Options::default()
        })
    }

    /// Loads a topology under the name that was asked for, and shows what should be looked at.
    pub(super) fn load(&self, topology: &Path) -> Result<Loaded<Topology>> {
        let loaded = input::load_topology(topology, &self.options()?)?;
        output::print_notes(&loaded.warnings);
        Ok(loaded)
    }
}

impl LabArgs {
    /// Whether any of them was given.
    pub(super) fn decide_anything(&self) -> bool {
        self.host.is_some() || self.topology.name.is_some() || !self.topology.set.is_empty()
    }

    /// What the command line decides beside a file, and the host as it is.
    pub(super) fn options(&self) -> Result<Options> {
        self.topology.options()
    }

    /// Loads a topology as [`TopologyChoice::load`] does.
    pub(super) fn load(&self, topology: &Path) -> Result<Loaded<Topology>> {
        self.topology.load(topology)
    }
}

/// Arguments of `up`.
#[derive(Debug, clap::Args)]
pub(super) struct UpArgs {
    /// Topology file
    topology: PathBuf,
    #[command(flatten)]
    lab: LabArgs,
}

pub(super) fn run(global: &Global, args: &UpArgs) -> Result<ExitCode> {
    let loaded = args.lab.load(&args.topology)?;
    let state = State::of(global.state_dir.as_deref())?;
    let name = loaded.value.lab.name.clone();
    let bring_up = BringUp {
        state: &state,
        loaded: &loaded,
        host: args.lab.host.clone(),
        is_dry: false,
    };
    // Before the lock, which is the first thing that is made.
    bring_up.plan()?;
    let _lock = state.lock(&name, "up")?;
    host_shape::keep_to(&loaded.value.host.reserve)?;
    let lab = with_runtime(
        global,
        &format!("`labrig down {name}` removes what is there"),
        async |bus, cancel| bring_up.run(bus, cancel).await,
    )?;
    if !global.json {
        let count = lab.record.topology.domains.len();
        output::print(format!(
            "lab {name} is up: {count} {}",
            if count == 1 { "domain" } else { "domains" }
        ))?;
    }
    Ok(ExitCode::SUCCESS)
}

/// Runs something on a runtime, with its events shown and Ctrl-C heard. `left` is what
/// whoever interrupted it is told about what is there.
pub(super) fn with_runtime<T>(
    global: &Global,
    left: &str,
    work: impl AsyncFnOnce(&Bus, &Cancel) -> Result<T>,
) -> Result<T> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .map_err(|e| {
            Failure::new(
                Kind::Host,
                anyhow::Error::new(e).context("start the runtime"),
            )
        })?;
    let bus = Bus::new(std::sync::Arc::new(SystemClock));
    let progress = Progress::of(global, &bus);
    let cancel = Cancel::default();
    let result = runtime.block_on(async {
        signals::watch(cancel.clone(), left.to_owned());
        work(&bus, &cancel).await
    });
    bus.close();
    progress.finish();
    runtime.shutdown_background();
    result.map_err(|failure| failure.leaving(left))
}
