//! One guest as the engine works with it: units, files and quiet, over connections that may break.
//!
//! All calls block. Each is harmless when repeated, so a broken connection is picked up again;
//! that a unit is never started twice is the runner's promise, not the connection's.

use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, LazyLock};
use std::time::{Duration, Instant};

use super::cancel::{Cancel, Cancelled};
use super::unit::{Answer, Report, Sweep, UnitId};
use crate::model::Digest;
use crate::ports::{Clock, ErrorKind, Output, PortError, Remote, Target};

/// The program that runs units on a guest.
const RUNNER: &str = include_str!("assets/runner.sh");
/// Its file name: another content is another file, so an old one is never used by mistake.
static RUNNER_NAME: LazyLock<String> =
    LazyLock::new(|| format!("runner-{}.sh", Digest::of(RUNNER).short(8)));
/// Exit status of a call that found no runner; neither the runner nor a shell uses it.
const NO_RUNNER: i32 = 97;

/// How long a guest may be out of reach before it is given up.
const PATIENCE: Duration = Duration::from_secs(60);
/// Pause before a broken connection is tried again.
const RETRY: Duration = Duration::from_secs(1);
/// How long a short call may take; emulated guests under load are slow.
const ANSWER: Duration = Duration::from_secs(60);
/// Longest wait for a unit in one call. A connection that dies without a sign is noticed then.
const WAIT: Duration = Duration::from_secs(300);
/// What a unit may take beyond its deadline to be ended: TERM, KILL and three looks around.
const ENDING: Duration = Duration::from_secs(60);
/// Most bytes of one output stream that are kept.
pub(super) const OUTPUT_LIMIT: u64 = 1 << 30;
/// Bytes of a file that go to a guest in one call; all of labrig stays under 50 MB.
const PART: usize = 4 << 20;

/// One guest.
#[derive(Clone)]
pub(super) struct Guest {
    pub remote: Arc<dyn Remote>,
    pub clock: Arc<dyn Clock>,
    pub cancel: Cancel,
    pub target: Target,
    /// Directory on the guest that is gone after a reboot.
    pub base: String,
}

/// Why a call to a guest failed.
#[derive(Debug, thiserror::Error)]
pub(super) enum GuestError {
    /// The user asked to stop.
    #[error(transparent)]
    Cancelled(#[from] Cancelled),
    /// The way to it is broken for longer than patience lasts.
    #[error("reach the guest")]
    Port(#[source] PortError),
    /// It was started anew in the middle of the work.
    #[error("the guest was started anew")]
    Rebooted,
    /// The unit's supervisor is gone without a report.
    #[error("the supervisor of the unit was killed on the guest")]
    Lost,
    /// The unit is long past its deadline.
    #[error("the unit does not end, long past its deadline")]
    Overrun,
    /// The runner failed.
    #[error("the runner on the guest failed with exit status {exit}: {message}")]
    Runner {
        /// Its exit status.
        exit: i32,
        /// What it printed.
        message: String,
    },
    /// A file here could not be used.
    #[error("use a file of the attempt")]
    File(#[from] io::Error),
}

/// Where a unit's output goes.
#[derive(Debug, Clone)]
pub(super) struct Capture {
    pub stdout: PathBuf,
    pub stderr: PathBuf,
}

/// A time during which the guest does not answer.
struct Outage<'a> {
    guest: &'a Guest,
    /// When it was first noticed.
    since: Option<Instant>,
}

impl Outage<'_> {
    /// The guest answered.
    fn over(&mut self) {
        self.since = None;
    }

    /// Waits before another try; fails when the error is not about the connection, or too old.
    fn wait(&mut self, error: PortError) -> Result<(), GuestError> {
        let passing = matches!(
            error.kind,
            ErrorKind::Connection | ErrorKind::Timeout | ErrorKind::NotYet
        );
        if error.kind == ErrorKind::Cancelled {
            return Err(Cancelled.into());
        }
        let now = self.guest.clock.monotonic();
        let since = *self.since.get_or_insert(now);
        if !passing || now.duration_since(since) >= PATIENCE {
            return Err(GuestError::Port(error));
        }
        Ok(self.guest.cancel.sleep(&*self.guest.clock, RETRY)?)
    }
}

impl Guest {
    /// Runs a unit to its end and puts away what it printed. Started at most once, whatever happens.
    pub fn run(
        &self,
        unit: &UnitId,
        command: &str,
        deadline: Duration,
        boot: &str,
        capture: &Capture,
    ) -> Result<Report, GuestError> {
        let seconds = whole_seconds(deadline);
        let wait = WAIT.min(deadline + ENDING);
        let directory = self.unit_directory(unit);
        let (deadline_text, wait_text, length) = (
            seconds.to_string(),
            whole_seconds(wait).to_string(),
            command.len().to_string(),
        );
        let arguments = ["run", &directory, &deadline_text, &wait_text, &length, boot];
        let mut outage = self.outage();
        let begun = self.clock.monotonic();
        loop {
            self.cancel.check()?;
            match self.call_once(&arguments, command.as_bytes(), wait + ANSWER) {
                Ok(output) => match Answer::parse(&output.stdout) {
                    Some(Answer::Done(report)) => {
                        self.keep(&directory, &report, capture)?;
                        return Ok(report);
                    }
                    Some(Answer::Running) => {
                        outage.over();
                        let limit = Duration::from_secs(seconds) + 2 * ENDING + PATIENCE;
                        if self.clock.monotonic().duration_since(begun) > limit {
                            return Err(GuestError::Overrun);
                        }
                    }
                    Some(Answer::Rebooted) => return Err(GuestError::Rebooted),
                    Some(Answer::Lost) => return Err(GuestError::Lost),
                    Some(Answer::Torn) => outage.wait(torn())?,
                    None if output.exit.is_success() => outage.wait(torn())?,
                    None => return Err(runner_failed(&output)),
                },
                Err(error) => outage.wait(error)?,
            }
        }
    }

    /// Ends a unit, or keeps it from starting.
    pub fn stop(&self, unit: &UnitId) -> Result<(), PortError> {
        self.call_once(&["stop", &self.unit_directory(unit)], b"", 2 * ENDING)
            .map(|_| ())
    }

    /// Ends what former trials and attempts left behind; says whether `marker` is there.
    pub fn sweep(&self, marker: &str) -> Result<Sweep, GuestError> {
        let (units, marker) = (self.units_directory(), self.marker_path(marker));
        let mut outage = self.outage();
        loop {
            self.cancel.check()?;
            match self.call_once(&["sweep", &units, &marker], b"", 2 * ENDING) {
                Ok(output) => match Sweep::parse(&output.stdout) {
                    Some(sweep) => return Ok(sweep),
                    None if output.exit.is_success() => outage.wait(torn())?,
                    None => return Err(runner_failed(&output)),
                },
                Err(error) => outage.wait(error)?,
            }
        }
    }

    /// Leaves a marker that lasts until the guest is started anew.
    pub fn mark(&self, marker: &str) -> Result<(), GuestError> {
        self.call(&["mark", &self.marker_path(marker)], b"")
            .map(|_| ())
    }

    /// Puts a file in place at once: whole or not at all, its directories made.
    pub fn put(
        &self,
        to: &str,
        mode: u32,
        content: &mut dyn io::Read,
        total: u64,
    ) -> Result<(), GuestError> {
        let (mode, total_text) = (format!("{mode:o}"), total.to_string());
        let mut part = Vec::new();
        let mut offset = 0;
        loop {
            part.clear();
            io::Read::read_to_end(&mut io::Read::take(&mut *content, PART as u64), &mut part)?;
            let (offset_text, length) = (offset.to_string(), part.len().to_string());
            let arguments = ["put", to, &mode, &total_text, &offset_text, &length];
            self.call(&arguments, &part)?;
            offset += part.len() as u64;
            if offset >= total {
                return Ok(());
            }
            if part.is_empty() {
                return Err(io::Error::new(
                    io::ErrorKind::UnexpectedEof,
                    "the file shrank while it was copied",
                )
                .into());
            }
        }
    }

    /// Puts away what a unit printed.
    fn keep(&self, directory: &str, report: &Report, capture: &Capture) -> Result<(), GuestError> {
        let Some(printed) = &report.inline else {
            self.fetch(
                &format!("{directory}/stdout"),
                report.stdout,
                &capture.stdout,
            )?;
            return self.fetch(
                &format!("{directory}/stderr"),
                report.stderr,
                &capture.stderr,
            );
        };
        // The runner puts inline only what it printed: the sizes add up.
        let (stdout, stderr) = printed.split_at(
            usize::try_from(report.stdout)
                .unwrap_or(0)
                .min(printed.len()),
        );
        fs_err::write(&capture.stdout, stdout)?;
        fs_err::write(&capture.stderr, stderr)?;
        Ok(())
    }

    /// Copies a file of the guest, at most [`OUTPUT_LIMIT`] of it, in constant memory.
    fn fetch(&self, from: &str, size: u64, to: &Path) -> Result<(), GuestError> {
        let size = size.min(OUTPUT_LIMIT);
        let command = format!("head -c {size} {}", quoted(from));
        let mut outage = self.outage();
        loop {
            self.cancel.check()?;
            let mut file = Counted {
                file: File::create(to)?,
                bytes: 0,
            };
            let mut complaint = Counted {
                file: io::sink(),
                bytes: 0,
            };
            // A guest that gives less than 1 MB/s for so long is not there.
            let timeout = ANSWER + Duration::from_secs(size >> 20);
            match self
                .remote
                .stream(&self.target, &command, &mut file, &mut complaint, timeout)
            {
                Ok(_) if file.bytes == size => return Ok(file.file.sync_data()?),
                Ok(_) => outage.wait(torn())?,
                Err(error) => outage.wait(error)?,
            }
        }
    }

    /// Calls the runner until it answers; for verbs that may be repeated.
    fn call(&self, arguments: &[&str], stdin: &[u8]) -> Result<Output, GuestError> {
        let mut outage = self.outage();
        loop {
            self.cancel.check()?;
            match self.call_once(arguments, stdin, ANSWER) {
                Ok(output) if output.exit.is_success() => return Ok(output),
                Ok(output) => return Err(runner_failed(&output)),
                Err(error) => outage.wait(error)?,
            }
        }
    }

    /// Calls the runner, which is put on the guest first when it is not there.
    fn call_once(
        &self,
        arguments: &[&str],
        stdin: &[u8],
        timeout: Duration,
    ) -> Result<Output, PortError> {
        let runner = quoted(&format!("{}/{}", self.base, *RUNNER_NAME));
        let arguments: Vec<_> = arguments.iter().map(|argument| quoted(argument)).collect();
        let command = format!(
            "[ -r {runner} ] || exit {NO_RUNNER}; exec sh {runner} {}",
            arguments.join(" ")
        );
        let output = self.remote.exec(&self.target, &command, stdin, timeout)?;
        if output.exit.0 != NO_RUNNER {
            return Ok(output);
        }
        let base = quoted(&self.base);
        let length = RUNNER.len();
        // Whole or not at all, like every file: several connections may do this at a time.
        let install = format!(
            "umask 077; mkdir -p {base} && cat >{runner}.$$ && [ \"$(wc -c <{runner}.$$)\" -eq {length} ] && mv {runner}.$$ {runner}"
        );
        let installed = self
            .remote
            .exec(&self.target, &install, RUNNER.as_bytes(), ANSWER)?;
        if !installed.exit.is_success() {
            let message = String::from_utf8_lossy(&installed.stderr).trim().to_owned();
            return Err(
                PortError::new(ErrorKind::Fatal, "put labrig's runner on the guest")
                    .because(message),
            );
        }
        self.remote.exec(&self.target, &command, stdin, timeout)
    }

    fn outage(&self) -> Outage<'_> {
        Outage {
            guest: self,
            since: None,
        }
    }

    fn units_directory(&self) -> String {
        format!("{}/units", self.base)
    }

    fn unit_directory(&self, unit: &UnitId) -> String {
        format!("{}/{unit}", self.units_directory())
    }

    fn marker_path(&self, marker: &str) -> String {
        format!("{}/{marker}", self.base)
    }
}

/// A writer that counts.
struct Counted<W> {
    file: W,
    bytes: u64,
}

impl<W: Write> Write for Counted<W> {
    fn write(&mut self, buffer: &[u8]) -> io::Result<usize> {
        let written = self.file.write(buffer)?;
        self.bytes += written as u64;
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

/// A text as one word of a shell command.
pub(super) fn quoted(text: &str) -> String {
    // Single quotes hold everything but themselves; NUL cannot reach a guest in any form.
    format!("'{}'", text.replace('\0', "").replace('\'', r"'\''"))
}

/// Whole seconds, rounded up: not every guest's tools take fractions.
fn whole_seconds(span: Duration) -> u64 {
    span.as_secs() + u64::from(span.subsec_nanos() > 0)
}

fn torn() -> PortError {
    PortError::new(ErrorKind::Connection, "get a whole answer from the guest")
}

fn runner_failed(output: &Output) -> GuestError {
    let message = String::from_utf8_lossy(&output.stderr)
        .trim()
        .chars()
        .take(400)
        .collect();
    GuestError::Runner {
        exit: output.exit.0,
        message,
    }
}

#[cfg(test)]
mod tests;
