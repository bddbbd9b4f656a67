//! One step, done on one guest.

use std::error::Error;
use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::cancel::Cancelled;
use super::guest::{Capture, Guest, GuestError, OUTPUT_LIMIT, quoted};
use super::unit::{Report, UnitId, Why};
use crate::model::{FailureKind, Name, ServiceVerb, Step, Trial, WaitFor};
use crate::ports::chain;

/// Why a step's texts could not be rendered.
pub type RenderError = Box<dyn Error + Send + Sync>;

/// What fills in a step's templates for one domain and one trial.
pub trait StepRenderer: Send + Sync {
    /// The step with nothing left to decide; `trial` is none in the setup.
    ///
    /// # Errors
    /// When a template does not render.
    fn render(
        &self,
        step: &Step,
        domain: &Name,
        trial: Option<&Trial>,
    ) -> Result<ResolvedStep, RenderError>;
}

/// A step with its templates filled in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ResolvedStep {
    /// Run a shell command. What it leaves in the background lives until its trial is over; of the
    /// setup, for good.
    Run {
        /// The command.
        command: String,
    },
    /// Put a file in place.
    File {
        /// Absolute path on the guest.
        to: String,
        /// Permission bits.
        mode: u32,
        /// What is in it.
        content: Content,
    },
    /// Start, stop or restart a service.
    Service {
        /// What to do.
        verb: ServiceVerb,
        /// The service.
        service: String,
    },
    /// Wait until something holds.
    Wait(WaitFor),
    /// Run the measured workload.
    Load {
        /// The command.
        command: String,
        /// Which adapter reads its output.
        adapter: String,
    },
}

/// Content of a file for a guest.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Content {
    /// Rendered; it is kept with the attempt.
    Rendered(Vec<u8>),
    /// A file of this machine, as it is.
    File(PathBuf),
}

/// A step about to be done on one guest.
pub(super) struct Task {
    pub guest: Guest,
    /// The guest's boot that the work belongs to.
    pub boot: String,
    pub unit: UnitId,
    pub step: ResolvedStep,
    pub timeout: Duration,
    pub capture: Capture,
}

/// What a step did.
#[derive(Debug)]
pub(super) struct Done {
    /// Seconds it took, by the guest's clock for commands.
    pub seconds: f64,
    /// What the runner said, for commands.
    pub report: Option<Report>,
}

/// Why a step did not do what it should.
#[derive(Debug, thiserror::Error)]
pub(super) enum StepError {
    /// The user asked to stop.
    #[error(transparent)]
    Cancelled(#[from] Cancelled),
    /// It failed.
    #[error("{message}")]
    Failed {
        /// The kind.
        kind: FailureKind,
        /// What went wrong, for people.
        message: String,
        /// What it did until then.
        done: Box<Done>,
    },
    /// A thread of ours panicked.
    #[error("run a task of the engine")]
    Task(#[from] tokio::task::JoinError),
}

impl Task {
    /// Does the step. A wish to stop ends its unit on the guest first.
    pub async fn perform(self) -> Result<Done, StepError> {
        let Some(command) = command(&self.step) else {
            return tokio::task::spawn_blocking(move || self.put()).await?;
        };
        let (guest, unit) = (self.guest.clone(), self.unit.clone());
        let mut work = tokio::task::spawn_blocking(move || self.run(&command));
        tokio::select! {
            done = &mut work => return done?,
            () = guest.cancel.cancelled() => {}
        }
        // When the guest cannot be told, its own deadline ends the unit, or the sweep of a resume.
        let _ = tokio::task::spawn_blocking(move || guest.stop(&unit)).await?;
        let _ = work.await?;
        Err(Cancelled.into())
    }

    fn run(&self, command: &str) -> Result<Done, StepError> {
        let begun = self.guest.clock.monotonic();
        let report =
            match self
                .guest
                .run(&self.unit, command, self.timeout, &self.boot, &self.capture)
            {
                Ok(report) => report,
                Err(error) => return Err(failed(error)),
            };
        let is_load = matches!(self.step, ResolvedStep::Load { .. });
        let trouble = if !report.left.is_empty() {
            Some((
                FailureKind::Guest,
                format!("processes {} of it will not end", report.left),
            ))
        } else if report.full {
            let printed = report.stdout + report.stderr;
            Some((
                FailureKind::Output,
                format!(
                    "the guest has no room left in {}, where the output is kept until the end; {printed} bytes of it are there",
                    self.guest.base
                ),
            ))
        } else {
            match report.why {
                Why::Timeout => Some((
                    FailureKind::Timeout,
                    format!("did not end within {:?}", self.timeout),
                )),
                Why::Stopped => {
                    Some((FailureKind::Guest, "was stopped by someone else".to_owned()))
                }
                // What a load's exit status means is for its adapter to say.
                Why::Exit if is_load => {
                    let ours = self.guest.clock.monotonic().duration_since(begun);
                    fast_clock(report.seconds, ours).or_else(|| too_long(&report))
                }
                Why::Exit if report.exit == 0 => None,
                Why::Exit => Some((FailureKind::Tool, format!("exit status {}", report.exit))),
            }
        };
        let done = Done {
            seconds: report.seconds,
            report: Some(report),
        };
        match trouble {
            None => Ok(done),
            Some((kind, what)) => {
                let message = match last_words(&self.capture) {
                    Some(words) => format!("{what}: {words}"),
                    None => what,
                };
                Err(StepError::Failed {
                    kind,
                    message,
                    done: Box::new(done),
                })
            }
        }
    }

    fn put(&self) -> Result<Done, StepError> {
        let ResolvedStep::File { to, mode, content } = &self.step else {
            return Ok(Done {
                seconds: 0.0,
                report: None,
            });
        };
        let begun = self.guest.clock.monotonic();
        let once = || match content {
            Content::Rendered(bytes) => {
                self.guest
                    .put(to, *mode, &mut bytes.as_slice(), bytes.len() as u64)
            }
            Content::File(path) => {
                let mut file = fs_err::File::open(path)?;
                let length = file.metadata()?.len();
                self.guest.put(to, *mode, &mut file, length)
            }
        };
        // A part whose answer was lost does not fit a second time: then the file goes from its start.
        let put = match once() {
            Err(GuestError::Runner { .. }) => once(),
            other => other,
        };
        put.map_err(failed)?;
        let seconds = self
            .guest
            .clock
            .monotonic()
            .duration_since(begun)
            .as_secs_f64();
        Ok(Done {
            seconds,
            report: None,
        })
    }
}

/// A guest cannot have worked for longer than we waited for it: where its clock says so, that clock
/// runs fast, and with it all that the load measured. Seen on emulated guests whose kernel took a
/// wrong frequency for their TSC.
fn fast_clock(seconds: f64, waited: Duration) -> Option<(FailureKind, String)> {
    /// Clocks are read in hundredths of a second and may be off by some in a hundred.
    const TOLERANCE: f64 = 1.05;
    const GRAIN: f64 = 0.1;
    let waited = waited.as_secs_f64();
    (seconds > waited * TOLERANCE + GRAIN).then(|| {
        let what =
            format!("the guest's clock runs fast: {seconds:.2}s by it, {waited:.2}s by ours");
        (FailureKind::Guest, what)
    })
}

fn too_long(report: &Report) -> Option<(FailureKind, String)> {
    let most = report.stdout.max(report.stderr);
    (most > OUTPUT_LIMIT).then(|| {
        (
            FailureKind::Output,
            format!("printed {most} bytes, of which {OUTPUT_LIMIT} are kept"),
        )
    })
}

fn failed(error: GuestError) -> StepError {
    let kind = match &error {
        GuestError::Cancelled(cancelled) => return StepError::Cancelled(*cancelled),
        GuestError::Port(_) | GuestError::Rebooted | GuestError::Lost | GuestError::Overrun => {
            FailureKind::Guest
        }
        GuestError::Runner { .. } | GuestError::File(_) => FailureKind::Tool,
    };
    let done = Box::new(Done {
        seconds: 0.0,
        report: None,
    });
    StepError::Failed {
        kind,
        message: chain(&error),
        done,
    }
}

/// The end of what a command printed, in one line: standard error, else standard output.
fn last_words(capture: &Capture) -> Option<String> {
    const LENGTH: i64 = 400;
    let tail = |path: &Path| {
        let mut file = File::open(path).ok()?;
        // Shorter files are read from their start.
        let _ = file.seek(SeekFrom::End(-LENGTH));
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes).ok()?;
        let text = String::from_utf8_lossy(&bytes)
            .split_whitespace()
            .collect::<Vec<_>>()
            .join(" ");
        (!text.is_empty()).then_some(text)
    };
    tail(&capture.stderr).or_else(|| tail(&capture.stdout))
}

/// The shell command that does a step, for the steps that are commands.
fn command(step: &ResolvedStep) -> Option<String> {
    match step {
        ResolvedStep::Run { command } | ResolvedStep::Load { command, .. } => Some(command.clone()),
        ResolvedStep::Service { verb, service } => Some(service_command(*verb, service)),
        ResolvedStep::Wait(WaitFor::Port(port)) => Some(port_command(*port)),
        ResolvedStep::Wait(WaitFor::Command(command)) => Some(until_command(command)),
        ResolvedStep::File { .. } => None,
    }
}

fn service_command(verb: ServiceVerb, service: &str) -> String {
    let script = quoted(&format!("/etc/init.d/{service}"));
    let service = quoted(service);
    format!(
        "if [ -d /run/systemd/system ]; then exec systemctl {verb} {service}; fi
if command -v service >/dev/null 2>&1; then exec service {service} {verb}; fi
exec {script} {verb}"
    )
}

/// Waits for a listening socket. Linux lists it with state 0A (`TCP_LISTEN`) in /proc/net/tcp, its
/// port in hexadecimal; looking there needs no tool and leaves no half-open connection behind.
fn port_command(port: u16) -> String {
    format!(
        r#"listens() {{
    while read -r _ local _ state _; do
        case "$local $state" in *:{port:04X}" 0A") return 0 ;; esac
    done 2>/dev/null <"$1"
    return 1
}}
until listens /proc/net/tcp || listens /proc/net/tcp6; do
    sleep 0.1 2>/dev/null || sleep 1
done"#
    )
}

/// Repeats a command until it succeeds; when it is ended, says what the last try printed.
fn until_command(command: &str) -> String {
    let command = quoted(command);
    format!(
        r#"trap 'echo "$last" >&2; exit 143' TERM
last=
until last=$(sh -c {command} 2>&1); do
    sleep 0.2 2>/dev/null || sleep 1
done"#
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_guest_that_worked_longer_than_we_waited_has_a_fast_clock() {
        let waited = Duration::from_secs(6);
        assert_eq!(fast_clock(5.9, waited), None);
        assert_eq!(fast_clock(6.2, waited), None);
        let (kind, message) = fast_clock(102.0, waited).unwrap();
        assert_eq!(kind, FailureKind::Guest);
        assert!(
            message.contains("102.00s by it, 6.00s by ours"),
            "{message}"
        );
    }
}
