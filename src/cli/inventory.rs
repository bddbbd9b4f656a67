//! `labrig inventory`: the way to a lab's domains, for other tools.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use super::error::{Failure, Result};
use super::lab::{HostKind, Record, no_such_lab};
use super::state::State;
use super::up::LabArgs;
use super::{Global, output, ssh};
use crate::model::{Name, Topology};
use crate::report::{Inventory, Reach, hosts_file};

/// Arguments of `inventory`.
#[derive(Debug, clap::Args)]
pub(super) struct InventoryArgs {
    /// Name of a lab, or topology file
    #[arg(value_name = "LAB|TOPOLOGY")]
    lab: PathBuf,
    #[command(flatten)]
    options: LabArgs,
    #[command(flatten)]
    form: Form,
    /// Write to this file instead of standard output
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
}

/// For which tool.
#[derive(Debug, clap::Args)]
#[group(required = true, multiple = false)]
struct Form {
    /// An inventory for Ansible, in YAML, or in JSON with --json
    #[arg(long)]
    ansible: bool,
    /// A configuration for `ssh -F`
    #[arg(long)]
    ssh_config: bool,
    /// Lines for a hosts file
    #[arg(long)]
    hosts: bool,
}

pub(super) fn run(global: &Global, args: &InventoryArgs) -> Result<ExitCode> {
    let state = State::of(global.state_dir.as_deref())?;
    let (topology, host) = find(&state, args)?;
    let inventory = || -> Result<Inventory> {
        let reach = reach(&state, &topology.lab.name, &host)?;
        Ok(Inventory::of(&topology, &reach))
    };
    let file = args.output.as_deref();
    if args.form.ansible && global.json {
        let text =
            serde_json::to_string_pretty(&inventory()?.ansible()).map_err(std::io::Error::from)?;
        output::write_to(file, &(text + "\n"))?;
    } else {
        let text = if args.form.ansible {
            inventory()?.ansible_yaml()
        } else if args.form.ssh_config {
            inventory()?.ssh_config()
        } else {
            hosts_file(&topology)
        };
        output::write_text(global.json, file, &text)?;
    }
    Ok(ExitCode::SUCCESS)
}

/// A lab that was made, or one that a file describes, with the host it is on or would be.
fn find(state: &State, args: &InventoryArgs) -> Result<(Topology, HostKind)> {
    let name: Option<Name> = args.lab.to_str().and_then(|text| text.parse().ok());
    let record_of = |name: &Name| Record::read(&state.lab(name));
    if let Some(name) = &name {
        if let Some(record) = record_of(name)? {
            if args.options.decide_anything() {
                return Err(
                    Failure::usage(format!("change lab {name} for an inventory"))
                        .hint("--name, --set and --host go with a topology file"),
                );
            }
            return Ok((record.topology, record.host));
        }
        if !Path::new(&args.lab).exists() {
            return Err(no_such_lab(state, name));
        }
    }
    let topology = args.options.load(&args.lab)?.value;
    let host = match (&args.options.host, record_of(&topology.lab.name)?) {
        (Some(host), _) => host.clone(),
        (None, Some(record)) => record.host,
        (None, None) => HostKind::Embedded,
    };
    Ok((topology, host))
}

fn reach(state: &State, lab: &Name, host: &HostKind) -> Result<Reach> {
    let files = state.lab(lab).ssh();
    Ok(Reach {
        key: files.join("id_ed25519"),
        known_hosts: files.join("known_hosts"),
        proxy: match host {
            HostKind::Embedded => Some(ssh::dial_command(state, lab)?),
            HostKind::System(_) => None,
        },
    })
}
