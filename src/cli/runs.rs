//! `labrig runs` and `labrig show`: what was run, and what came of it.

use std::path::PathBuf;
use std::process::ExitCode;

use super::error::{Failure, Result};
use super::{Global, output};
use crate::archive::{self, RunDir, RunState};
use crate::model::Name;
use crate::report::{RunReport, runs_text};

/// Arguments of `runs`.
#[derive(Debug, clap::Args)]
pub(super) struct RunsArgs {
    /// Where runs are filed
    #[arg(long, default_value = "runs", value_name = "DIR")]
    runs: PathBuf,
    /// Print only the directory of this playbook's newest finished run
    #[arg(long, value_name = "PLAYBOOK")]
    latest: Option<Name>,
}

/// Arguments of `show`.
#[derive(Debug, clap::Args)]
pub(super) struct ShowArgs {
    /// Directory of the run, as `labrig runs` lists it
    run: PathBuf,
}

pub(super) fn runs(global: &Global, args: &RunsArgs) -> Result<ExitCode> {
    let mut runs = archive::list(&args.runs)?;
    if let Some(playbook) = &args.latest {
        runs.retain(|run| run.playbook == playbook.as_str() && run.state == RunState::Finished);
        let Some(newest) = runs.iter().max_by_key(|run| run.created) else {
            let place = args.runs.display();
            return Err(Failure::usage(format!(
                "find a finished run of {playbook} in {place}"
            )));
        };
        output::print(newest.path.display().to_string())?;
    } else if global.json {
        output::print_json(&runs)?;
    } else {
        output::print(runs_text(&runs, output::width()))?;
    }
    Ok(ExitCode::SUCCESS)
}

pub(super) fn show(global: &Global, args: &ShowArgs) -> Result<ExitCode> {
    let run = RunDir::open(&args.run)?;
    let report = RunReport::new(&run, &run.results()?);
    if global.json {
        output::print_json(&report)?;
    } else {
        output::print(report.text(output::width()))?;
    }
    Ok(ExitCode::SUCCESS)
}
