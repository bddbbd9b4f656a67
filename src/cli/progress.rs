//! What people and programs see while something is done: three listeners of the same events.

use std::collections::BTreeMap;
use std::io::Write;
use std::thread::JoinHandle;
use std::time::Duration;

use indicatif::{MultiProgress, ProgressBar, ProgressStyle};
use jiff::Timestamp;
use serde::Serialize;

use super::{Global, output};
use crate::engine::Bus;
use crate::model::{Event, EventLevel, Metric, Name, Phase};
use crate::report::number;

/// Shows events on a thread of its own until the bus is gone.
pub(super) struct Progress {
    thread: JoinHandle<()>,
}

impl Progress {
    /// Shows what is sent on the bus in the way that fits where it goes.
    pub(super) fn of(global: &Global, bus: &Bus) -> Self {
        let events = bus.subscribe();
        let mut view: Box<dyn View + Send> = if global.json {
            Box::new(JsonLines)
        } else if output::draws_bars() {
            Box::new(Bars::default())
        } else {
            Box::new(PlainLines::default())
        };
        let thread = std::thread::spawn(move || {
            for (at, event) in events {
                view.show(at, &event);
            }
            view.close();
        });
        Self { thread }
    }

    /// Returns when everything was shown; all clones of the bus must be gone.
    pub(super) fn finish(self) {
        let _ = self.thread.join(); // a view that panicked has said so itself
    }
}

trait View {
    fn show(&mut self, at: Timestamp, event: &Event);
    fn close(&mut self) {}
}

/// One JSON object a line on standard output.
struct JsonLines;

#[derive(Serialize)]
struct JsonLine<'a> {
    at: Timestamp,
    #[serde(flatten)]
    event: &'a Event,
}

impl View for JsonLines {
    fn show(&mut self, at: Timestamp, event: &Event) {
        if let Ok(line) = serde_json::to_string(&JsonLine { at, event }) {
            // A reader that has gone away must not end the work.
            let _ = writeln!(std::io::stdout(), "{line}");
        }
    }
}

/// Plain lines on standard error, for logs and pipes.
#[derive(Default)]
struct PlainLines {
    titles: BTreeMap<usize, String>,
}

impl View for PlainLines {
    fn show(&mut self, _at: Timestamp, event: &Event) {
        if let Some(line) = line_of(event, &mut self.titles) {
            eprintln!("{line}");
        }
    }
}

/// The line an event is worth, if it is worth one.
fn line_of(event: &Event, titles: &mut BTreeMap<usize, String>) -> Option<String> {
    Some(match event {
        Event::ActionStarted {
            action,
            title,
            reason,
            ..
        } => {
            titles.insert(*action, title.clone());
            format!("{title}: {reason}")
        }
        Event::ActionProgress { action, detail } => match titles.get(action) {
            Some(title) => format!("{title}: {detail}"),
            None => detail.clone(),
        },
        Event::ActionFailed { action, .. } => format!("{}: failed", titles.get(action)?),
        Event::DomainPhase {
            domain,
            phase,
            seconds,
        } => format!("{domain}: {} after {seconds:.1}s", phase_name(*phase)),
        Event::PlanDone { seconds } => format!("done in {seconds:.1}s"),
        Event::RunStarted {
            directory,
            trials,
            done,
        } => format!("run {directory}: {trials} trials, {done} done before"),
        Event::StepStarted { trial: None, step } => format!("setup: {step}"),
        Event::TrialStarted {
            trial,
            label,
            attempt,
            ..
        } if *attempt > 1 => format!("trial {trial} {label}: attempt {attempt}"),
        Event::TrialDone {
            trial,
            label,
            failure: Some(why),
            ..
        } => format!("trial {trial} {label}: failed: {why}"),
        Event::TrialDone {
            trial,
            label,
            metrics,
            seconds,
            failure: None,
        } => {
            format!(
                "trial {trial} {label}: {} ({seconds:.1}s)",
                metrics_of(metrics)
            )
        }
        Event::RunDone { good, failed } => format!("run over: {good} good, {failed} failed"),
        Event::Message {
            level: EventLevel::Warning,
            text,
        } => format!("warning: {text}"),
        Event::Message {
            level: EventLevel::Info,
            text,
        } => text.clone(),
        Event::PlanStarted { .. }
        | Event::ActionDone { .. }
        | Event::StepStarted { .. }
        | Event::TrialStarted { .. } => {
            return None;
        }
    })
}

fn metrics_of(metrics: &[Metric]) -> String {
    let shown: Vec<_> = metrics
        .iter()
        .map(|m| format!("{} {} {}", m.name, number(m.value), m.unit))
        .collect();
    shown.join(", ")
}

fn phase_name(phase: Phase) -> &'static str {
    match phase {
        Phase::Started => "started",
        Phase::Banner => "SSH answers",
        Phase::Login => "logged in",
        Phase::Ready => "ready",
    }
}

/// Bars on a terminal: one a domain with its phase, one a long action, one for the whole, lines
/// above for the rest.
#[derive(Default)]
struct Bars {
    all: MultiProgress,
    whole: Option<ProgressBar>,
    domains: BTreeMap<Name, ProgressBar>,
    long: BTreeMap<usize, ProgressBar>,
    titles: BTreeMap<usize, String>,
}

const TICK: Duration = Duration::from_millis(200);
/// From started to ready.
const PHASES: u64 = 4;

impl Bars {
    fn bar(&self, length: u64, template: &str) -> ProgressBar {
        let style =
            ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar());
        let bar = self
            .all
            .add(ProgressBar::new(length).with_style(style.progress_chars("━━╌")));
        bar.enable_steady_tick(TICK);
        bar
    }

    fn say(&self, line: &str) {
        let _ = self.all.println(line);
    }
}

impl View for Bars {
    fn show(&mut self, _at: Timestamp, event: &Event) {
        match event {
            Event::PlanStarted { actions } => {
                let bar = self.bar(
                    *actions as u64,
                    "{elapsed:>5} {bar:30} {pos}/{len} {wide_msg}",
                );
                self.whole = Some(bar);
            }
            Event::ActionStarted {
                action,
                title,
                long,
                ..
            } => {
                self.titles.insert(*action, title.clone());
                if *long {
                    let bar = self.bar(1, "{elapsed:>5} {spinner} {wide_msg}");
                    bar.set_message(title.clone());
                    self.long.insert(*action, bar);
                } else if let Some(whole) = &self.whole {
                    whole.set_message(title.clone());
                }
            }
            Event::ActionProgress { action, detail } => {
                if let (Some(bar), Some(title)) = (self.long.get(action), self.titles.get(action)) {
                    bar.set_message(format!("{title}: {detail}"));
                }
            }
            Event::ActionDone { action, .. } | Event::ActionFailed { action, .. } => {
                if let Some(bar) = self.long.remove(action) {
                    bar.finish_and_clear();
                }
                if let Some(whole) = &self.whole {
                    whole.inc(1);
                }
            }
            Event::DomainPhase { domain, phase, .. } => {
                let bar = match self.domains.get(domain) {
                    Some(bar) => bar.clone(),
                    None => {
                        let bar = self.bar(
                            PHASES,
                            &format!("{{elapsed:>5}} {{bar:12}} {domain:20} {{wide_msg}}"),
                        );
                        self.domains.insert(domain.clone(), bar.clone());
                        bar
                    }
                };
                bar.set_position(*phase as u64 + 1);
                if *phase == Phase::Ready {
                    bar.finish_with_message("ready")
                } else {
                    bar.set_message(phase_name(*phase))
                }
            }
            Event::PlanDone { .. } => self.close(),
            Event::RunStarted { trials, done, .. } => {
                let bar = self.bar(
                    *trials as u64,
                    "{elapsed:>5} {bar:30} {pos}/{len} trials, {eta} left {wide_msg}",
                );
                bar.set_position(*done as u64);
                self.whole = Some(bar);
            }
            Event::StepStarted { step, .. } => {
                if let Some(whole) = &self.whole {
                    whole.set_message(step.clone());
                }
            }
            Event::TrialDone { .. } => {
                if let Some(whole) = &self.whole {
                    whole.inc(1);
                }
            }
            _ => {}
        }
        let keeps = matches!(
            event,
            Event::TrialDone { .. }
                | Event::RunStarted { .. }
                | Event::RunDone { .. }
                | Event::PlanDone { .. }
                | Event::Message { .. }
        );
        if keeps && let Some(line) = line_of(event, &mut self.titles) {
            self.say(&line);
        }
    }

    fn close(&mut self) {
        for bar in self
            .domains
            .values()
            .chain(self.long.values())
            .chain(&self.whole)
        {
            bar.finish_and_clear();
        }
        self.domains.clear();
        self.long.clear();
        self.whole = None;
    }
}
