//! `labrig plan`: the dry run of `up`.

use std::path::PathBuf;
use std::process::ExitCode;

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
    /// Exit with 1 when there is something to do
    #[arg(long)]
    exit_code: bool,
    #[command(flatten)]
    lab: LabArgs,
}

pub(super) fn run(global: &Global, args: &PlanArgs) -> Result<ExitCode> {
    let loaded = args.lab.load(&args.topology)?;
    let state = State::of(global.state_dir.as_deref())?;
    let planned = BringUp {
        state: &state,
        loaded: &loaded,
        host: args.lab.host.clone(),
    }
    .plan()?;
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
