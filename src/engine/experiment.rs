//! A whole run: setup once, then every trial that is not done yet, in order.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use tokio::task::JoinSet;

use super::bus::Bus;
use super::cancel::Cancel;
use super::error::EngineError;
use super::guest::{Guest, GuestError};
use super::steps::StepRenderer;
use super::trial::{Place, Rendered, Site};
use super::unit::{Keep, Sweep};
use crate::model::{
    Digester, Event, EventLevel, Failure, FailureKind, Name, Playbook, Step, Trial,
};
use crate::ports::{Attempts, Clock, ErrorKind, PortError, Remote, Target};

/// Attempts at a trial in one run when the guest or the way to it failed; otherwise there is one.
const ATTEMPTS: u32 = 2;

/// What is run.
pub struct Experiment {
    /// Identity of the run; a resumed run has the one it began with.
    pub run: String,
    /// The run's directory, as people are told.
    pub directory: PathBuf,
    /// Directory for the raw output of the setup.
    pub setup_directory: PathBuf,
    /// The experiment.
    pub playbook: Playbook,
    /// All its trials, in order.
    pub trials: Vec<Trial>,
    /// Where the playbook's domains are.
    pub targets: BTreeMap<Name, Target>,
    /// Directory on each domain for what lasts until it is started anew; `/run/labrig` on guests.
    pub directories: BTreeMap<Name, String>,
}

/// What a run works with.
#[derive(Clone)]
pub struct World {
    /// The guests.
    pub remote: Arc<dyn Remote>,
    /// The archive.
    pub attempts: Arc<dyn Attempts>,
    /// Time.
    pub clock: Arc<dyn Clock>,
    /// What fills in templates.
    pub renderer: Arc<dyn StepRenderer>,
}

/// How a run ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Summary {
    /// Trials with good metrics, those of earlier runs of the same archive included.
    pub good: usize,
    /// Trials that failed, in order.
    pub failed: Vec<FailedTrial>,
}

/// A trial that failed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FailedTrial {
    /// Its number.
    pub number: u32,
    /// Its levels in one line.
    pub label: String,
    /// Why its last attempt failed.
    pub failure: Failure,
}

/// Runs what is not done yet of an experiment.
///
/// A failed trial is committed with its failure and the run goes on. Trials whose committed
/// attempts all failed are tried again by the next call on the same archive.
///
/// # Errors
/// When the run cannot go on; what is committed stays, and another call resumes.
pub async fn run(
    experiment: &Experiment,
    world: &World,
    bus: &Bus,
    cancel: &Cancel,
) -> Result<Summary, EngineError> {
    let session = format!(
        "{}-{}",
        std::process::id(),
        world.clock.now().as_millisecond()
    );
    let run = Run {
        experiment,
        world,
        bus,
        cancel,
        session,
    };
    let result = run.all().await;
    // Quiet in the end as well. A guest that does not answer now is swept by whoever comes next.
    if !matches!(
        result,
        Err(EngineError::Guest { .. } | EngineError::NotQuiet { .. })
    ) {
        let _ = run.sweep(Cancel::default()).await;
    }
    result
}

/// A run at work.
struct Run<'a> {
    experiment: &'a Experiment,
    world: &'a World,
    bus: &'a Bus,
    cancel: &'a Cancel,
    /// Sets the units of this process apart from those of an earlier one.
    session: String,
}

impl Run<'_> {
    async fn all(&self) -> Result<Summary, EngineError> {
        let trials = &self.experiment.trials;
        let done = trials
            .iter()
            .filter(|trial| self.world.attempts.is_done(trial))
            .count();
        let directory = self.experiment.directory.display().to_string();
        self.tell(&Event::RunStarted {
            directory,
            trials: trials.len(),
            done,
        })?;
        let mut summary = Summary {
            good: done,
            failed: Vec::new(),
        };
        let todo: Vec<_> = trials
            .iter()
            .filter(|trial| !self.world.attempts.is_done(trial))
            .collect();
        if !todo.is_empty() {
            self.set_up().await?;
        }
        for trial in todo {
            match self.trial(trial).await? {
                None => summary.good += 1,
                Some(failure) => {
                    summary.failed.push(FailedTrial {
                        number: trial.number,
                        label: trial.label(),
                        failure,
                    });
                }
            }
        }
        self.tell(&Event::RunDone {
            good: summary.good,
            failed: summary.failed.len(),
        })?;
        Ok(summary)
    }

    /// Does the setup, unless all guests carry its marker: it lasts as long as they are not started
    /// anew.
    async fn set_up(&self) -> Result<(), EngineError> {
        let sites = self.sweep(self.cancel.clone()).await?;
        if sites.values().all(|(_, sweep)| sweep.marker) {
            return Ok(());
        }
        let steps = self.render(&self.experiment.playbook.setup, None)?;
        fs_err::create_dir_all(&self.experiment.setup_directory)
            .map_err(|e| EngineError::Archive(e.into()))?;
        let sites = only_sites(sites);
        let place = Place {
            sites: &sites,
            directory: &self.experiment.setup_directory,
            run: &self.experiment.run,
            session: &self.session,
            label: "setup".to_owned(),
            keep: Keep::ForGood,
        };
        let tell = |step: &str| {
            self.tell(&Event::StepStarted {
                trial: None,
                step: step.to_owned(),
            })
        };
        if let Some(failure) = place.go(&steps, &[], tell).await?.failure {
            return Err(EngineError::Setup {
                step: failure.step,
                message: failure.message,
            });
        }
        let marker = self.marker();
        self.on_all(
            sites.into_iter().map(|(name, site)| (name, site.guest)),
            move |guest| guest.mark(&marker),
        )
        .await?;
        Ok(())
    }

    /// Runs one trial; says why it failed, if it did.
    async fn trial(&self, trial: &Trial) -> Result<Option<Failure>, EngineError> {
        // Before anything is done: a text that does not render is no matter of this attempt.
        let steps = self.render(&self.experiment.playbook.trial, Some(trial))?;
        let mut tries = 1;
        loop {
            self.cancel.check()?;
            let sites = self.quiet_sites().await?;
            let failure = self.attempt(trial, &steps, &sites).await?;
            let again = failure
                .as_ref()
                .is_some_and(|failure| failure.kind == FailureKind::Guest);
            if !again || tries == ATTEMPTS {
                return Ok(failure);
            }
            tries += 1;
        }
    }

    async fn attempt(
        &self,
        trial: &Trial,
        steps: &[Rendered],
        sites: &BTreeMap<Name, Site>,
    ) -> Result<Option<Failure>, EngineError> {
        let attempts = &self.world.attempts;
        let attempt = attempts.begin(trial).map_err(EngineError::Archive)?;
        let (started, begun) = (self.world.clock.now(), self.world.clock.monotonic());
        let label = trial.label();
        self.tell(&Event::TrialStarted {
            trial: trial.number,
            label: label.clone(),
            attempt: attempt.number,
        })?;
        let place = Place {
            sites,
            directory: &attempt.directory,
            run: &self.experiment.run,
            session: &self.session,
            label: format!("t{}-a{}", trial.number, attempt.number),
            keep: Keep::UntilTrialEnds,
        };
        let tell = |step: &str| {
            self.tell(&Event::StepStarted {
                trial: Some(trial.number),
                step: step.to_owned(),
            })
        };
        let course = place
            .go(steps, &self.experiment.playbook.metrics, tell)
            .await?;
        let outcome = course.outcome(attempt.number, started, self.world.clock.now());
        let (archive, committed, result) = (Arc::clone(attempts), trial.clone(), outcome.clone());
        tokio::task::spawn_blocking(move || archive.commit(&committed, attempt, &result))
            .await?
            .map_err(EngineError::Archive)?;
        let asked = &self.experiment.playbook.metrics;
        let mut metrics = outcome.metrics;
        metrics.retain(|metric| asked.iter().any(|spec| spec.name == metric.name));
        self.tell(&Event::TrialDone {
            trial: trial.number,
            label,
            metrics,
            failure: outcome
                .failure
                .as_ref()
                .map(|failure| format!("{}: {}", failure.step, failure.message)),
            seconds: self
                .world
                .clock
                .monotonic()
                .duration_since(begun)
                .as_secs_f64(),
        })?;
        Ok(outcome.failure)
    }

    /// All guests, verified quiet and with their setup in place.
    async fn quiet_sites(&self) -> Result<BTreeMap<Name, Site>, EngineError> {
        let swept = self.sweep(self.cancel.clone()).await?;
        match swept.iter().find(|(_, (_, sweep))| !sweep.marker) {
            Some((domain, _)) => Err(EngineError::Rebooted {
                domain: domain.clone(),
            }),
            None => Ok(only_sites(swept)),
        }
    }

    /// Ends whatever units and trials left behind on any guest.
    async fn sweep(&self, cancel: Cancel) -> Result<BTreeMap<Name, (Site, Sweep)>, EngineError> {
        let mut guests = Vec::new();
        for domain in self.domains() {
            let target = self
                .experiment
                .targets
                .get(domain)
                .ok_or_else(|| EngineError::NoTarget(domain.clone()))?;
            let base = self.experiment.directories.get(domain);
            let base = base.ok_or_else(|| EngineError::NoTarget(domain.clone()))?;
            let guest = Guest {
                remote: Arc::clone(&self.world.remote),
                clock: Arc::clone(&self.world.clock),
                cancel: cancel.clone(),
                target: target.clone(),
                base: base.clone(),
            };
            guests.push((domain.clone(), guest));
        }
        let marker = self.marker();
        let swept = self
            .on_all(guests.into_iter(), move |guest| {
                let sweep = guest.sweep(&marker)?;
                Ok((
                    Site {
                        guest: guest.clone(),
                        boot: sweep.boot.clone(),
                    },
                    sweep,
                ))
            })
            .await?;
        for (domain, (_, sweep)) in &swept {
            for (what, found) in [("unit", &sweep.unfinished), ("process", &sweep.ended)] {
                if !found.is_empty() {
                    let text = format!(
                        "ended on {domain}, left behind by a trial: {what} {}",
                        found.join(", ")
                    );
                    self.tell(&Event::Message {
                        level: EventLevel::Info,
                        text,
                    })?;
                }
            }
            if !sweep.quiet {
                return Err(EngineError::NotQuiet {
                    domain: domain.clone(),
                    left: sweep.ended.join(", "),
                });
            }
        }
        Ok(swept)
    }

    /// Does something on guests side by side.
    async fn on_all<T: Send + 'static>(
        &self,
        guests: impl Iterator<Item = (Name, Guest)>,
        work: impl Fn(&Guest) -> Result<T, GuestError> + Clone + Send + 'static,
    ) -> Result<BTreeMap<Name, T>, EngineError> {
        let mut tasks = JoinSet::new();
        for (domain, guest) in guests {
            let work = work.clone();
            tasks.spawn_blocking(move || (domain, work(&guest)));
        }
        let mut results = BTreeMap::new();
        while let Some(joined) = tasks.join_next().await {
            let (domain, result) = joined?;
            let value = result.map_err(|error| match error {
                GuestError::Cancelled(cancelled) => cancelled.into(),
                GuestError::Port(source) => EngineError::Guest {
                    domain: domain.clone(),
                    source,
                },
                other => EngineError::Guest {
                    domain: domain.clone(),
                    source: PortError::new(ErrorKind::Fatal, "use the runner on the guest")
                        .because(other),
                },
            })?;
            results.insert(domain, value);
        }
        Ok(results)
    }

    fn render(&self, steps: &[Step], trial: Option<&Trial>) -> Result<Vec<Rendered>, EngineError> {
        let one = |step: &Step| {
            let on = step.on.iter().map(|domain| {
                let resolved = self.world.renderer.render(step, domain, trial);
                let failed = |source| EngineError::Render {
                    step: step.name.clone(),
                    domain: domain.clone(),
                    source,
                };
                Ok((domain.clone(), resolved.map_err(failed)?))
            });
            Ok(Rendered {
                step: step.clone(),
                on: on.collect::<Result<_, EngineError>>()?,
            })
        };
        steps.iter().map(one).collect()
    }

    /// All domains the playbook does something on, without repeats.
    fn domains(&self) -> Vec<&Name> {
        let playbook = &self.experiment.playbook;
        let mut domains: Vec<_> = playbook
            .setup
            .iter()
            .chain(&playbook.trial)
            .flat_map(|step| &step.on)
            .collect();
        domains.sort();
        domains.dedup();
        domains
    }

    /// Name of the file that says on a guest that the setup of this run was done.
    fn marker(&self) -> String {
        format!(
            "setup-{}",
            Digester::default()
                .field(&self.experiment.run)
                .finish()
                .short(16)
        )
    }

    /// Writes down what happens, then tells everyone.
    fn tell(&self, event: &Event) -> Result<(), EngineError> {
        self.world
            .attempts
            .record(event)
            .map_err(EngineError::Archive)?;
        self.bus.send(event);
        Ok(())
    }
}

fn only_sites(swept: BTreeMap<Name, (Site, Sweep)>) -> BTreeMap<Name, Site> {
    swept
        .into_iter()
        .map(|(domain, (site, _))| (domain, site))
        .collect()
}

#[cfg(test)]
mod tests;
