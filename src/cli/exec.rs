//! `labrig exec`: one command on some domains, side by side.

use std::io::Write;
use std::process::ExitCode;
use std::time::Duration;

use super::Global;
use super::error::{Failure, Result};
use super::lab::OpenLab;
use super::state::State;
use crate::model::{Name, Seconds};
use crate::ports::{Remote, Target};

/// Arguments of `exec`.
#[derive(Debug, clap::Args)]
pub(super) struct ExecArgs {
    /// Name of the lab
    lab: Name,
    /// Domains, or groups of counted ones, separated by commas or spaces; `all` for all of them
    #[arg(value_name = "DOMAIN", value_delimiter = ',', required = true)]
    domains: Vec<String>,
    /// The command; several words are quoted for the guest's shell, one is taken as it is
    #[arg(last = true, required = true)]
    command: Vec<String>,
    /// Give up after this time, as in 30s or 5m
    #[arg(long, default_value = "1h", value_name = "TIME", value_parser = parse_seconds)]
    timeout: Seconds,
}

fn parse_seconds(text: &str) -> std::result::Result<Seconds, String> {
    text.parse()
        .map_err(|e: crate::model::ParseUnitError| e.to_string())
}

pub(super) fn run(global: &Global, args: &ExecArgs) -> Result<ExitCode> {
    let state = State::of(global.state_dir.as_deref())?;
    let lab = OpenLab::of_name(&state, &args.lab)?;
    let targets: Vec<Target> = if args.domains == ["all"] {
        lab.record
            .topology
            .domains
            .iter()
            .map(|d| lab.target(&d.name))
            .collect::<Result<_>>()?
    } else {
        let mut targets = Vec::new();
        for name in &args.domains {
            for target in lab.targets(name)? {
                if !targets.contains(&target) {
                    targets.push(target);
                }
            }
        }
        targets
    };
    let command = match args.command.as_slice() {
        [one] => one.clone(),
        words => shlex::try_join(words.iter().map(String::as_str))
            .map_err(|_| Failure::usage("pass the command on: it has a NUL character"))?,
    };
    let timeout = Duration::from(args.timeout);
    let remote = lab.remote.as_ref();
    let prefix = targets.len() > 1;
    let results: Vec<_> = std::thread::scope(|scope| {
        let command = command.as_str();
        let threads: Vec<_> = targets
            .iter()
            .map(|target| {
                scope.spawn(move || {
                    let name = if prefix {
                        Some(target.domain.as_str())
                    } else {
                        None
                    };
                    let mut stdout = Lines::new(name, std::io::stdout());
                    let mut stderr = Lines::new(name, std::io::stderr());
                    let exit = remote.stream(target, command, &mut stdout, &mut stderr, timeout);
                    stdout
                        .finish()
                        .and_then(|()| stderr.finish())
                        .map_err(crate::ports::PortError::from)
                        .and(exit)
                })
            })
            .collect();
        threads.into_iter().map(|thread| thread.join()).collect()
    });
    let mut worst = 0;
    for result in results {
        let exit = result.unwrap_or_else(|panic| std::panic::resume_unwind(panic))?;
        worst = worst.max(exit.0);
    }
    Ok(ExitCode::from(u8::try_from(worst).unwrap_or(u8::MAX)))
}

/// Passes output on; with a prefix, in whole lines, so that those of several domains do not mix.
struct Lines<'a, W> {
    prefix: Option<&'a str>,
    line: Vec<u8>,
    sink: W,
}

impl<'a, W: Write> Lines<'a, W> {
    /// A line that never ends is passed on in pieces of this size.
    const LIMIT: usize = 64 << 10;

    fn new(prefix: Option<&'a str>, sink: W) -> Self {
        Self {
            prefix,
            line: Vec::new(),
            sink,
        }
    }

    fn finish(&mut self) -> std::io::Result<()> {
        if !self.line.is_empty() {
            self.line.push(b'\n');
            self.emit()?;
        }
        self.sink.flush()
    }

    fn emit(&mut self) -> std::io::Result<()> {
        let mut whole = self
            .prefix
            .map(|prefix| format!("{prefix}: ").into_bytes())
            .unwrap_or_default();
        whole.append(&mut self.line);
        self.sink.write_all(&whole)
    }
}

impl<W: Write> Write for Lines<'_, W> {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        if self.prefix.is_none() {
            self.sink.write_all(bytes)?;
            self.sink.flush()?;
            return Ok(bytes.len());
        }
        for part in bytes.split_inclusive(|&b| b == b'\n') {
            self.line.extend_from_slice(part);
            if part.ends_with(b"\n") {
                self.emit()?;
            } else if self.line.len() >= Self::LIMIT {
                self.line.push(b'\n');
                self.emit()?;
            }
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        self.sink.flush()
    }
}
