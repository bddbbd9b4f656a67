//! `labrig host …`, and the hidden verbs that an embedded host is made of.

use std::path::PathBuf;
use std::process::ExitCode;

use super::Global;
use super::error::{Failure, Kind, Result};
use crate::backend::embedded::{EmbeddedError, HostDirectory, enter as enter_host, run_init};

/// Verbs of `host`.
#[derive(Debug, clap::Subcommand)]
pub(super) enum HostVerb {
    /// Say what this machine has and lacks for labs, and what to do about it
    Doctor,
}

/// Arguments of `__host`.
#[derive(Debug, clap::Args)]
pub(super) struct EnterArgs {
    directory: PathBuf,
    cache: PathBuf,
    #[arg(long)]
    mask_kvm: bool,
}

/// Arguments of `__host-init`.
#[derive(Debug, clap::Args)]
pub(super) struct InitArgs {
    directory: PathBuf,
    cache: PathBuf,
    lock: i32,
    #[arg(long)]
    mask_kvm: bool,
}

pub(super) fn run(_global: &Global, verb: &HostVerb) -> Result<ExitCode> {
    match verb {
        HostVerb::Doctor => Err(Failure::new(
            Kind::Host,
            anyhow::anyhow!("examine the host"),
        )),
    }
}

pub(super) fn enter(args: &EnterArgs) -> Result<ExitCode> {
    done(enter_host(
        &HostDirectory::new(args.directory.clone(), args.cache.clone()),
        args.mask_kvm,
    ))
}

pub(super) fn init(args: &InitArgs) -> Result<ExitCode> {
    done(run_init(
        &HostDirectory::new(args.directory.clone(), args.cache.clone()),
        args.lock,
        args.mask_kvm,
    ))
}

/// Nobody reads hints here: standard error is the host's log.
fn done(result: std::result::Result<(), EmbeddedError>) -> Result<ExitCode> {
    result
        .map(|()| ExitCode::SUCCESS)
        .map_err(|e| Failure::new(Kind::Host, e))
}
