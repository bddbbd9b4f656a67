//! `labrig schema`: what an editor, or a person, wants to know of the languages.

use std::process::ExitCode;

use super::error::Result;
use super::output;
use crate::input::Language;

/// Arguments of `schema`.
#[derive(Debug, clap::Args)]
pub(super) struct SchemaArgs {
    /// Which language
    #[arg(value_enum, default_value = "topology")]
    language: Choice,
    /// Print a reference of all keys for people, in Markdown
    #[arg(long)]
    markdown: bool,
}

#[derive(Debug, Clone, Copy, clap::ValueEnum)]
enum Choice {
    Topology,
    Playbook,
}

pub(super) fn run(args: &SchemaArgs) -> Result<ExitCode> {
    let language = match args.language {
        Choice::Topology => Language::Topology,
        Choice::Playbook => Language::Playbook,
    };
    if args.markdown {
        output::print(language.reference())?;
    } else {
        output::print_json(&language.schema())?;
    }
    Ok(ExitCode::SUCCESS)
}
