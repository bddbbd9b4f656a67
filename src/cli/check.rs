//! `labrig check`: all notes about a topology or a playbook.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use super::error::Result;
use super::up::TopologyChoice;
use super::{Global, output};
use crate::diag::Notes;
use crate::input::{self, Options};

/// Arguments of `check`.
#[derive(Debug, clap::Args)]
pub(super) struct CheckArgs {
    /// Topology or playbook files
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
    #[command(flatten)]
    choice: TopologyChoice,
}

pub(super) fn run(global: &Global, args: &CheckArgs) -> Result<ExitCode> {
    let options = args.choice.options()?;
    let mut notes = Notes::default();
    for file in &args.files {
        let found = match check(file, &options) {
            Ok(warnings) => warnings,
            Err(notes) => notes,
        };
        notes.0.extend(found.0);
    }
    if notes.has_errors() {
        return Err(notes.sorted().into());
    }
    if global.json {
        output::print_json(&notes)?;
    } else {
        output::print_notes(&notes);
        for file in &args.files {
            output::print(format!("{}: good", file.display()))?;
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn check(file: &Path, options: &Options) -> std::result::Result<Notes, Notes> {
    if input::is_playbook(file) {
        let loaded = input::load_playbook(file, options)?;
        let mut warnings = loaded.playbook.warnings;
        warnings.0.extend(loaded.topology.warnings.0);
        Ok(warnings)
    } else {
        Ok(input::load_topology(file, options)?.warnings)
    }
}
