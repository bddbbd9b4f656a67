//! `labrig plan`: the dry run of `up`.

use std::path::PathBuf;
use std::process::ExitCode;

use crate::backend::host_shape;
use crate::model::Topology;
use crate::plan::Shares;
use crate::report::shares_text;

use super::bring_up::BringUp;
use super::error::Result;
use super::state::State;
use super::up::LabArgs;
use super::{Global, output};
use crate::report::plan_text;

/// Arguments of `plan`.
#[derive(Debug, clap::Args)]
pub(super) struct PlanArgs {
    /// Topology file
    topology: PathBuf,
    /// Show who has which CPUs and how much memory of the host instead
    #[arg(long)]
    split: bool,
    /// Exit with 1 when there is something to do
    #[arg(long)]
    exit_code: bool,
    #[command(flatten)]
    lab: LabArgs,
}

pub(super) fn run(global: &Global, args: &PlanArgs) -> Result<ExitCode> {
    let loaded = args.lab.load(&args.topology)?;
    if args.split {
        return show_shares(global, &loaded.value);
    }
    let state = State::of(global.state_dir.as_deref())?;
    let planned = BringUp {
        state: &state,
        loaded: &loaded,
        host: args.lab.host.clone(),
        is_dry: true,
    }
    .plan()?;
    output::print_notes(&planned.warnings);
    if global.json {
        output::print_json(&planned.plan)?;
    } else {
        output::print(plan_text(&planned.plan))?;
    }
    Ok(match args.exit_code && !planned.plan.is_empty() {
        true => ExitCode::FAILURE,
        false => ExitCode::SUCCESS,
    })
}

/// Shows the budget: who has what of the host.
fn show_shares(global: &Global, topology: &Topology) -> Result<ExitCode> {
    let shape = match &topology.host.described {
        Some(described) => described.clone(),
        None => host_shape::shape()?,
    };
    let shares = Shares::of(topology, &shape);
    if global.json {
        output::print_json(&shares)?;
    } else {
        output::print(shares_text(&shares, output::width()))?;
    }
    Ok(ExitCode::SUCCESS)
}
