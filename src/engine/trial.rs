//! One attempt at a trial: its steps, its load, what was measured.

use std::collections::BTreeMap;
use std::io::BufReader;
use std::path::{Component, Path, PathBuf};

use jiff::Timestamp;
use serde_json::json;
use tokio::task::JoinSet;

use super::error::EngineError;
use super::guest::{Capture, Guest};
use super::steps::{Content, Done, ResolvedStep, StepError, Task};
use super::unit::{Keep, Report, UnitId};
use crate::adapters::{self, Verdict};
use crate::model::{
    Digest, Failure, FailureKind, Metric, MetricSpec, Name, Outcome, Step, StepRecord,
};
use crate::ports::{PortError, chain};

/// A step with its texts filled in for every domain it is done on.
pub(super) struct Rendered {
    pub step: Step,
    pub on: Vec<(Name, ResolvedStep)>,
}

/// A guest that was made quiet, and the boot it was found in.
#[derive(Clone)]
pub(super) struct Site {
    pub guest: Guest,
    pub boot: String,
}

/// What one go through a list of steps needs.
pub(super) struct Place<'a> {
    pub sites: &'a BTreeMap<Name, Site>,
    /// Where raw files go.
    pub directory: &'a Path,
    /// The run, for unit names.
    pub run: &'a str,
    /// This process of labrig, for unit names.
    pub session: &'a str,
    /// Setup, or trial and attempt, for unit names.
    pub label: String,
    pub keep: Keep,
}

/// What came of a list of steps.
#[derive(Default)]
pub(super) struct Course {
    pub records: Vec<StepRecord>,
    pub metrics: Vec<Metric>,
    pub failure: Option<Failure>,
    pub rendered: BTreeMap<String, Digest>,
}

impl Course {
    /// The outcome of an attempt that ended now.
    pub fn outcome(self, attempt: u32, started: Timestamp, ended: Timestamp) -> Outcome {
        Outcome {
            attempt,
            started,
            ended,
            steps: self.records,
            metrics: self.metrics,
            failure: self.failure,
            rendered: self.rendered,
        }
    }
}

impl Place<'_> {
    /// Does all steps in order, each on its domains side by side; ends at the first that fails.
    /// `tell` hears the name of each step before it is done.
    pub async fn go(
        &self,
        steps: &[Rendered],
        metrics: &[MetricSpec],
        mut tell: impl FnMut(&str) -> Result<(), EngineError>,
    ) -> Result<Course, EngineError> {
        let mut course = Course::default();
        for (number, rendered) in (1..).zip(steps) {
            tell(&rendered.step.name)?;
            let loads = self.step(number, rendered, &mut course).await?;
            if course.failure.is_none() && !loads.is_empty() {
                // A tool may have printed a gigabyte: not on a thread that others wait for.
                let wanted = metrics.to_vec();
                match tokio::task::spawn_blocking(move || measured(&loads, &wanted)).await? {
                    Ok(found) => course.metrics = found,
                    Err((found, message)) => {
                        course.metrics = found;
                        let step = rendered.step.name.clone();
                        course.failure = Some(Failure {
                            kind: FailureKind::Output,
                            step,
                            message,
                        });
                    }
                }
            }
            if course.failure.is_some() {
                break;
            }
        }
        Ok(course)
    }

    /// Does one step on all its domains; gives back the loads that are over, in the domains' order.
    async fn step(
        &self,
        number: usize,
        rendered: &Rendered,
        course: &mut Course,
    ) -> Result<Vec<Load>, EngineError> {
        let mut tasks = JoinSet::new();
        for (index, (domain, resolved)) in rendered.on.iter().enumerate() {
            let site = self
                .sites
                .get(domain)
                .ok_or_else(|| EngineError::NoTarget(domain.clone()))?;
            let capture = self.capture(number, rendered, domain).map_err(archive)?;
            if let ResolvedStep::File {
                to,
                content: Content::Rendered(bytes),
                ..
            } = resolved
            {
                let digest = self.keep_rendered(domain, to, bytes).map_err(archive)?;
                course.rendered.insert(format!("{domain}:{to}"), digest);
            }
            let keep = match resolved {
                ResolvedStep::Service { .. } => Keep::ForGood,
                _ => self.keep,
            };
            let task = Task {
                guest: site.guest.clone(),
                boot: site.boot.clone(),
                unit: UnitId::new(
                    keep,
                    self.run,
                    self.session,
                    &format!("{}-{number}", self.label),
                    domain,
                ),
                step: resolved.clone(),
                timeout: rendered.step.timeout.0,
                capture,
            };
            tasks.spawn(async move { (index, task.perform().await) });
        }
        // Each has its own deadline; all are waited for, so that nothing works on unseen.
        let mut results = tasks.join_all().await;
        results.sort_by_key(|(index, _)| *index);
        let mut loads = Vec::new();
        for (index, result) in results {
            let (domain, resolved) = &rendered.on[index];
            let done = match result {
                Ok(done) => done,
                Err(StepError::Cancelled(cancelled)) => return Err(cancelled.into()),
                Err(StepError::Task(error)) => return Err(error.into()),
                Err(StepError::Failed {
                    kind,
                    message,
                    done,
                }) => {
                    let message = if rendered.on.len() > 1 {
                        format!("{domain}: {message}")
                    } else {
                        message
                    };
                    course.failure.get_or_insert(Failure {
                        kind,
                        step: rendered.step.name.clone(),
                        message,
                    });
                    *done
                }
            };
            if let (ResolvedStep::Load { adapter, .. }, Some(report)) = (resolved, &done.report) {
                let capture = self.capture(number, rendered, domain).map_err(archive)?;
                keep_timing(&capture, report).map_err(archive)?;
                loads.push(Load {
                    domain: domain.clone(),
                    adapter: adapter.clone(),
                    exit: report.exit,
                    capture,
                });
            }
            course.records.push(record(&rendered.step, domain, &done));
        }
        Ok(loads)
    }

    /// Where a step's output goes; the directory is made. A load's stands at the top, where people
    /// look for it, in a directory a domain when there are several.
    fn capture(
        &self,
        number: usize,
        rendered: &Rendered,
        domain: &Name,
    ) -> std::io::Result<Capture> {
        let is_load = rendered
            .on
            .iter()
            .any(|(_, resolved)| matches!(resolved, ResolvedStep::Load { .. }));
        let (directory, stem) = match (is_load, rendered.on.len()) {
            (true, 1) => (self.directory.to_owned(), None),
            (true, _) => (self.directory.join(domain.as_str()), None),
            (false, _) => {
                let name = format!("{number:02}-{}", file_name(&rendered.step.name));
                (self.directory.join("steps").join(name), Some(domain))
            }
        };
        fs_err::create_dir_all(&directory)?;
        Ok(match stem {
            None => Capture {
                stdout: directory.join("stdout"),
                stderr: directory.join("stderr"),
            },
            Some(domain) => Capture {
                stdout: directory.join(format!("{domain}.out")),
                stderr: directory.join(format!("{domain}.err")),
            },
        })
    }

    fn keep_rendered(&self, domain: &Name, to: &str, bytes: &[u8]) -> std::io::Result<Digest> {
        let mut path = self.directory.join("rendered").join(domain.as_str());
        // A path on the guest never leads out of the attempt's directory.
        path.extend(
            Path::new(to)
                .components()
                .filter(|part| matches!(part, Component::Normal(_))),
        );
        if let Some(parent) = path.parent() {
            fs_err::create_dir_all(parent)?;
        }
        fs_err::write(&path, bytes)?;
        Ok(Digest::of(bytes))
    }
}

/// A load that is over on one domain.
struct Load {
    domain: Name,
    adapter: String,
    exit: i32,
    capture: Capture,
}

/// What all loads measured, and whether it is what the playbook asks for; else what there is, and
/// what is wrong with it.
fn measured(loads: &[Load], wanted: &[MetricSpec]) -> Result<Vec<Metric>, (Vec<Metric>, String)> {
    let mut found = Vec::new();
    let mut wrong = Vec::new();
    for load in loads {
        let prefix = if loads.len() > 1 {
            format!("{}: ", load.domain)
        } else {
            String::new()
        };
        match read(load) {
            Ok(reading) => {
                if let Verdict::Partial(why) = reading.verdict {
                    wrong.push(format!("{prefix}not a whole measurement: {why}"));
                }
                found.push((load.domain.clone(), reading.metrics));
            }
            Err(error) => wrong.push(format!("{prefix}{}", chain(&error))),
        }
    }
    let mut metrics = match found.len() {
        1 if loads.len() == 1 => found.remove(0).1,
        _ => together(&found),
    };
    if wrong.is_empty() {
        for spec in wanted {
            if let Err(message) = convert_to(&mut metrics, spec) {
                wrong.push(message);
            }
        }
    }
    if wrong.is_empty() {
        Ok(metrics)
    } else {
        Err((metrics, wrong.join("; ")))
    }
}

fn read(load: &Load) -> Result<adapters::Reading, adapters::ReadError> {
    let open = |path: &PathBuf| fs_err::File::open(path).map(BufReader::new);
    adapters::read_streams(
        &load.adapter,
        open(&load.capture.stdout)?,
        open(&load.capture.stderr)?,
        load.exit,
    )
}

/// Metrics of a load on several domains: each under `domain/name`, and one under `name` for all.
/// Counts, amounts and rates of all domains add up; of times the longest counts, since a figure
/// like a percentile cannot be added. Others are not put together.
fn together(found: &[(Name, Vec<Metric>)]) -> Vec<Metric> {
    let mut all: Vec<Metric> = Vec::new();
    let mut single = Vec::new();
    for (domain, metrics) in found {
        for metric in metrics {
            single.push(Metric {
                name: format!("{domain}/{}", metric.name),
                ..metric.clone()
            });
            let is_time = matches!(metric.unit.as_str(), "s" | "ms" | "us" | "ns" | "min");
            let adds_up = matches!(
                metric.unit.as_str(),
                "" | "count" | "B" | "1/s" | "B/s" | "bit/s"
            );
            match all.iter_mut().find(|known| known.name == metric.name) {
                Some(known) if known.unit != metric.unit => {}
                Some(known) if adds_up => known.value += metric.value,
                Some(known) if is_time => known.value = known.value.max(metric.value),
                Some(_) => {}
                None if adds_up || is_time => all.push(metric.clone()),
                None => {}
            }
        }
    }
    all.extend(single);
    all
}

/// Brings the metric that `spec` asks for into its unit.
fn convert_to(metrics: &mut [Metric], spec: &MetricSpec) -> Result<(), String> {
    let Some(metric) = metrics.iter_mut().find(|metric| metric.name == spec.name) else {
        let names: Vec<_> = metrics.iter().map(|metric| metric.name.as_str()).collect();
        return Err(format!(
            "the load gave no metric {}; it gave {}",
            spec.name,
            names.join(", ")
        ));
    };
    let converted = adapters::convert(metric, &spec.unit);
    *metric = converted.ok_or_else(|| {
        format!(
            "{} is in {:?}, not in {:?}",
            metric.name, metric.unit, spec.unit
        )
    })?;
    Ok(())
}

fn record(step: &Step, domain: &Name, done: &Done) -> StepRecord {
    let exit = done.report.as_ref().map(|report| report.exit);
    StepRecord {
        step: step.name.clone(),
        domain: domain.clone(),
        seconds: done.seconds,
        exit,
    }
}

/// Exit status and times of a load, beside its output.
fn keep_timing(capture: &Capture, report: &Report) -> std::io::Result<()> {
    let timing = json!({
        "started": report.started,
        "seconds": report.seconds,
        "exit": report.exit,
        "why": report.why.word(),
    });
    fs_err::write(
        capture.stdout.with_file_name("timing.json"),
        format!("{timing:#}\n"),
    )?;
    fs_err::write(
        capture.stdout.with_file_name("exit"),
        format!("{}\n", report.exit),
    )
}

/// A step's name as part of a file name.
fn file_name(name: &str) -> String {
    let plain = |c: char| {
        if c.is_ascii_alphanumeric() {
            c.to_ascii_lowercase()
        } else {
            '-'
        }
    };
    name.chars()
        .map(plain)
        .take(40)
        .collect::<String>()
        .trim_matches('-')
        .to_owned()
}

fn archive(error: std::io::Error) -> EngineError {
    EngineError::Archive(PortError::from(error))
}
