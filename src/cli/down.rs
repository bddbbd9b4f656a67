//! `labrig down`: nothing of a lab is left.

use std::process::ExitCode;

use super::error::{Failure, Kind, Result};
use super::lab::{HostKind, Record, embedded_host, no_such_lab};
use super::state::State;
use super::{Global, output};
use crate::backend;
use crate::backend::images::Store;
use crate::backend::libvirt::{Connection, Libvirt};
use crate::backend::traffic::Place;
use crate::model::{Lab, LabPaths, Name, Observed};
use crate::plan::{self, ActionKind};
use crate::ports::Hypervisor;

/// Arguments of `down`.
#[derive(Debug, clap::Args)]
pub(super) struct DownArgs {
    /// Name of the lab
    lab: Name,
    /// Where it runs, for a lab whose record was lost
    #[arg(long, value_parser = HostKind::parse, value_name = "HOST")]
    host: Option<HostKind>,
}

pub(super) fn run(global: &Global, args: &DownArgs) -> Result<ExitCode> {
    let state = State::of(global.state_dir.as_deref())?;
    let paths = state.lab(&args.lab);
    // A lab whose directory was removed by hand may still run.
    let is_there =
        paths.root().exists() || paths.ram().exists() || embedded_host(&state, &paths).is_stray();
    if !is_there && args.host.is_none() {
        return Err(no_such_lab(&state, &args.lab));
    }
    let lock = state.lock(&args.lab, "down")?;
    take_down(&state, &args.lab, args.host.as_ref())?;
    drop(lock);
    Store::open(state.images()).sweep()?;
    if global.json {
        output::print_json(&serde_json::json!({ "lab": args.lab, "left": [] }))?;
    } else {
        output::print(format!("lab {} is down, nothing of it is left", args.lab))?;
    }
    Ok(ExitCode::SUCCESS)
}

/// Removes all of a lab, by what is there and not by any file of today. The caller holds its lock.
pub(super) fn take_down(state: &State, name: &Name, host: Option<&HostKind>) -> Result<()> {
    let paths = state.lab(name);
    embedded_host(state, &paths).end()?;
    let recorded = Record::host_of(&paths);
    match host.or(recorded.as_ref()) {
        Some(HostKind::System(uri)) => clear_shared_host(uri, name, &paths)?,
        Some(HostKind::Embedded) => {}
        // The record comes first of all: without one nothing was made, a damaged one hides where.
        None if !paths.record().exists() => {}
        None => {
            let record = paths.record();
            let message = format!(
                "find out where lab {name} runs: {} is damaged",
                record.display()
            );
            return Err(Failure::new(Kind::Host, anyhow::Error::msg(message))
                .hint("say it with --host: embedded, or the URI"));
        }
    }
    backend::ram::remove_directory(&paths.ram())?;
    backend::remove_tree(paths.root())?;
    Ok(())
}

/// Removes everything that carries the lab's tag from a libvirtd that others use as well.
fn clear_shared_host(uri: &str, name: &Name, paths: &LabPaths) -> Result<()> {
    let libvirt = Libvirt::new(
        Connection::open(uri)?,
        Lab { name: name.clone() },
        paths.clone(),
        Place::Here,
    );
    for action in plan::removal(&libvirt.observe()?).actions {
        match &action.kind {
            ActionKind::StopDomain { name } => libvirt.stop_domain(name)?,
            ActionKind::RemoveDomain { name } => libvirt.remove_domain(name)?,
            ActionKind::RemoveNetwork { name } => libvirt.remove_network(name)?,
            ActionKind::RemoveFile { path } => libvirt.remove_file(path)?,
            other => debug_assert!(false, "a removal holds removals only, not {other:?}"),
        }
    }
    let left = libvirt.observe()?;
    if left == Observed::default() {
        return Ok(());
    }
    let names: Vec<_> = left
        .domains
        .keys()
        .chain(left.networks.keys())
        .cloned()
        .collect();
    Err(Failure::new(
        Kind::Host,
        anyhow::anyhow!("remove all of lab {name}: {} is left", names.join(", ")),
    ))
}
