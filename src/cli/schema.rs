//! `labrig schema`: what an editor wants to know of the language.

use std::process::ExitCode;

use super::error::Result;
use super::output;
use crate::input;

pub(super) fn run() -> Result<ExitCode> {
    output::print_json(&input::topology_schema())?;
    Ok(ExitCode::SUCCESS)
}
