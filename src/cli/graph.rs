//! `labrig graph`: a lab as a picture.

use std::path::PathBuf;
use std::process::ExitCode;

use super::error::Result;
use super::up::TopologyChoice;
use super::{Global, output};
use crate::report::{self, GraphFormat};

/// Arguments of `graph`.
#[derive(Debug, clap::Args)]
pub(super) struct GraphArgs {
    /// Topology file
    topology: PathBuf,
    #[command(flatten)]
    options: TopologyChoice,
    /// What to draw: an image, or text for Mermaid or Graphviz
    #[arg(long, value_enum, default_value_t, value_name = "FORMAT")]
    format: Format,
    /// Write to this file instead of standard output
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
}

/// The forms a picture comes in.
#[derive(Debug, Clone, Copy, Default, clap::ValueEnum)]
enum Format {
    #[default]
    Svg,
    Mermaid,
    Dot,
}

pub(super) fn run(global: &Global, args: &GraphArgs) -> Result<ExitCode> {
    let loaded = args.options.load(&args.topology)?;
    let format = match args.format {
        Format::Svg => GraphFormat::Svg,
        Format::Mermaid => GraphFormat::Mermaid,
        Format::Dot => GraphFormat::Dot,
    };
    let text = report::graph(&loaded.value, format);
    output::write_text(global.json, args.output.as_deref(), &text)?;
    Ok(ExitCode::SUCCESS)
}
