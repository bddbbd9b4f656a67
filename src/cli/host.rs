//! `labrig host …`, and the hidden verbs that an embedded host is made of.

use std::fmt::Write as _;
use std::path::PathBuf;
use std::process::ExitCode;

use super::error::{Failure, Kind, Result};
use super::state::State;
use super::{Global, output};
use crate::backend::doctor::{self, Examination, Finding, State as FindingState};
use crate::backend::embedded::{EmbeddedError, HostDirectory, enter as enter_host, run_init};
use crate::backend::images::Store;

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

pub(super) fn run(global: &Global, verb: &HostVerb) -> Result<ExitCode> {
    match verb {
        HostVerb::Doctor => doctor(global),
    }
}

fn doctor(global: &Global) -> Result<ExitCode> {
    let state = State::of(global.state_dir.as_deref())?;
    // Whether KVM works shows only when a kernel is booted; any image's will do.
    let images = Store::open(state.images()).list().unwrap_or_default();
    let kernel = images.iter().find_map(|image| {
        Some((
            image.files.kernel.as_deref()?,
            image.files.initrd.as_deref(),
        ))
    });
    let findings = doctor::examine(&Examination {
        state_directory: state.root(),
        kvm_cache: &state.kvm_verdict(),
        boot: kernel,
    });
    if global.json {
        output::print_json(&findings)?;
    } else {
        output::print(draw(&findings))?;
    }
    let lacks = findings
        .iter()
        .any(|finding| finding.state == FindingState::Missing);
    Ok(if lacks {
        Kind::Host.exit_code()
    } else {
        ExitCode::SUCCESS
    })
}

/// One line a finding, and what to do about it below.
fn draw(findings: &[Finding]) -> String {
    let mut text = String::new();
    for finding in findings {
        let state = match finding.state {
            FindingState::Good => "good",
            FindingState::Poor => "poor",
            FindingState::Missing => "MISSING",
        };
        let _ = writeln!(text, "{state:<8} {:<22} {}", finding.name, finding.detail);
        if let Some(advice) = &finding.advice {
            let _ = writeln!(text, "{:<31} -> {advice}", "");
        }
    }
    text
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
