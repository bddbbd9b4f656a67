//! `labrig ssh`: the ssh program on a domain, through the lab's own way to it.

use std::io::{Read, Write};
use std::net::Ipv4Addr;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, ExitCode};
use std::time::Duration;

use super::Global;
use super::error::{Failure, Kind, Result};
use super::lab::{HostKind, OpenLab, Record, embedded_host, no_such_lab};
use super::state::State;
use crate::backend::ssh::Dialer;
use crate::model::Name;

/// Arguments of `ssh`.
#[derive(Debug, clap::Args)]
pub(super) struct SshArgs {
    /// Name of the lab
    lab: Name,
    /// Name of the domain
    domain: String,
    /// A command, instead of a shell
    #[arg(last = true)]
    command: Vec<String>,
}

/// Arguments of `__dial`.
#[derive(Debug, clap::Args)]
pub(super) struct DialArgs {
    lab: Name,
    address: Ipv4Addr,
    port: u16,
}

pub(super) fn run(global: &Global, args: &SshArgs) -> Result<ExitCode> {
    let state = State::of(global.state_dir.as_deref())?;
    let lab = OpenLab::of_name(&state, &args.lab)?;
    let target = lab.target(&args.domain)?;
    let proxy = format!("{} {} 22", dial_command(&state, &args.lab)?, target.address);
    let files = lab.paths.ssh();
    let mut command = Command::new("ssh");
    command
        .arg("-F")
        .arg("none")
        .arg("-i")
        .arg(files.join("id_ed25519"))
        .args([
            "-o",
            "IdentitiesOnly=yes",
            "-o",
            "StrictHostKeyChecking=yes",
            "-o",
            "GlobalKnownHostsFile=none",
        ])
        .arg("-o")
        .arg(format!(
            "UserKnownHostsFile={}",
            files.join("known_hosts").display()
        ))
        // `%` is ssh's own sign for tokens.
        .arg("-o")
        .arg(format!("ProxyCommand={}", proxy.replace('%', "%%")))
        .arg(format!("root@{}", target.domain))
        .args(&args.command);
    let error = command.exec();
    Err(Failure::new(
        Kind::Host,
        anyhow::Error::new(error).context("run the ssh program"),
    )
    .hint("install openssh-client"))
}

/// The command for a shell that connects its standard input and output to the address and port of a
/// guest that are put after it.
pub(super) fn dial_command(state: &State, lab: &Name) -> Result<String> {
    let quote = |path: &Path| {
        let text = path.to_string_lossy().into_owned();
        shlex::try_quote(&text)
            .map(std::borrow::Cow::into_owned)
            .map_err(|_| Failure::usage("quote a path with a NUL"))
    };
    Ok(format!(
        "{} --state-dir {} __dial {lab}",
        quote(&std::env::current_exe()?)?,
        quote(state.root())?,
    ))
}

/// Connects standard input and output to a guest's port: what `ssh` runs as its proxy.
pub(super) fn dial(global: &Global, args: &DialArgs) -> Result<ExitCode> {
    const TIMEOUT: Duration = Duration::from_secs(10);
    let state = State::of(global.state_dir.as_deref())?;
    let paths = state.lab(&args.lab);
    let record = Record::read(&paths)?.ok_or_else(|| no_such_lab(&state, &args.lab))?;
    let dialer = match record.host {
        HostKind::Embedded => {
            let host = embedded_host(&state, &paths);
            Dialer::Embedded {
                service: host.directory().socket_service(),
            }
        }
        HostKind::System(_) => Dialer::Direct,
    };
    let guest = dialer.connect(args.address, args.port, TIMEOUT)?;
    let to_guest = guest.try_clone()?;
    std::thread::spawn(move || {
        let _ = pump(std::io::stdin(), &to_guest); // the other way tells of a broken connection
        let _ = to_guest.shutdown(std::net::Shutdown::Write);
    });
    pump(&guest, std::io::stdout())?;
    Ok(ExitCode::SUCCESS)
}

/// Copies as it comes: what one side says must not wait for more.
fn pump(mut from: impl Read, mut to: impl Write) -> std::io::Result<()> {
    let mut buffer = [0; 32 << 10];
    loop {
        let n = from.read(&mut buffer)?;
        if n == 0 {
            return Ok(());
        }
        to.write_all(&buffer[..n])?;
        to.flush()?;
    }
}
