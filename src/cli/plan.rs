//! `labrig plan`: the dry run of `up`.

use std::path::PathBuf;
use std::process::ExitCode;

use super::bring_up::BringUp;
use super::error::Result;
use super::state::State;
use super::up::LabArgs;
use super::{Global, output};

/// Arguments of `plan`.
#[derive(Debug, clap::Args)]
pub(super) struct PlanArgs {
    /// Topology file
    topology: PathBuf,
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
    output::print_notes(&planned.warnings);
    if global.json {
        output::print_json(&planned.plan)?;
    } else if planned.plan.is_empty() {
        output::print("nothing to do: the lab is as its file says")?;
    } else {
        let mut text = String::new();
        for action in &planned.plan.actions {
            text.push_str(&format!("{:<44} {}\n", action.title(), action.reason));
        }
        output::print(text)?;
    }
    Ok(ExitCode::SUCCESS)
}
