//! Executes a plan: every action after those it depends on, the rest side by side.

use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::task::JoinSet;

use super::{Bus, Cancel, images, ready};
use crate::model::{Event, Name, Seconds, Split};
use crate::plan::{Action, ActionKind, Plan};
use crate::ports::{ErrorKind, Hypervisor, ImageStore, Journal, PortError, Remote, chain};

/// Console lines shown when a domain does not come up.
const CONSOLE_LINES: usize = 12;

/// What is needed to execute a plan.
#[derive(Clone)]
pub struct Applier {
    /// The lab's hypervisor.
    pub hypervisor: Arc<dyn Hypervisor>,
    /// The image store.
    pub images: Arc<dyn ImageStore>,
    /// SSH to the lab's guests.
    pub remote: Arc<dyn Remote>,
    /// The lab's journal.
    pub journal: Arc<dyn Journal>,
    /// Hears what happens.
    pub bus: Bus,
    /// Ends it early.
    pub cancel: Cancel,
}

/// When to stop: the user asked for it, or another action failed.
#[derive(Clone)]
pub(super) struct Halt {
    user: Cancel,
    failure: Cancel,
}

impl Halt {
    pub(super) fn check(&self) -> Result<(), PortError> {
        self.user
            .check()
            .and_then(|()| self.failure.check())
            .map_err(|e| PortError::new(ErrorKind::Cancelled, e.to_string()))
    }
}

/// Why a plan was not executed to its end.
#[derive(Debug, thiserror::Error)]
#[error("{title}")]
pub struct ApplyError {
    /// What was done when it failed.
    pub title: String,
    /// Why.
    pub source: PortError,
    /// The domain it was about.
    pub domain: Option<Name>,
    /// Last lines of that domain's console.
    pub console: Vec<String>,
}

impl ApplyError {
    /// Whether the user asked for the end.
    pub fn is_cancelled(&self) -> bool {
        self.source.kind == ErrorKind::Cancelled
    }
}

impl Applier {
    /// Executes a plan. The first failure ends it, as does the user: what changes something is waited
    /// for, what only waits is left behind, nothing new is begun. What was made stays, to be mended by
    /// the next `up` or removed by `down`.
    ///
    /// # Errors
    /// The first failure, in order of time.
    pub async fn apply(&self, plan: Plan) -> Result<(), ApplyError> {
        let began = Instant::now();
        self.bus.send(&Event::PlanStarted {
            actions: plan.actions.len(),
        });
        let actions: Arc<[Action]> = plan.actions.into();
        let mut waiting: Vec<usize> = actions.iter().map(|action| action.after.len()).collect();
        let mut followers = vec![Vec::new(); actions.len()];
        for (i, action) in actions.iter().enumerate() {
            for &before in &action.after {
                followers[before].push(i);
            }
        }
        let halt = Halt {
            user: self.cancel.clone(),
            failure: Cancel::default(),
        };
        let mut running = JoinSet::new();
        let mut changing = 0_usize;
        let start = |running: &mut JoinSet<_>, changing: &mut usize, i: usize| {
            *changing += usize::from(!actions[i].only_waits());
            let (this, actions, halt) = (self.clone(), Arc::clone(&actions), halt.clone());
            running.spawn_blocking(move || (i, this.execute(i, &actions[i], &halt)));
        };
        for i in (0..actions.len()).filter(|&i| waiting[i] == 0) {
            start(&mut running, &mut changing, i);
        }
        let mut failure: Option<ApplyError> = None;
        while changing > 0 || halt.check().is_ok() {
            let ended = tokio::select! {
                ended = running.join_next() => ended,
                () = self.cancel.cancelled(), if halt.user.check().is_ok() => continue,
            };
            let Some(ended) = ended else { break };
            let (i, result) =
                ended.unwrap_or_else(|panic| std::panic::resume_unwind(panic.into_panic()));
            changing -= usize::from(!actions[i].only_waits());
            match result {
                Ok(()) => {
                    for &follower in &followers[i] {
                        waiting[follower] -= 1;
                        if waiting[follower] == 0 && halt.check().is_ok() {
                            start(&mut running, &mut changing, follower);
                        }
                    }
                }
                Err(error) => {
                    halt.failure.cancel();
                    failure.get_or_insert_with(|| self.explain(&actions[i], error));
                }
            }
        }
        match failure {
            Some(error) => Err(error),
            None if self.cancel.is_cancelled() => Err(ApplyError {
                title: "bring the lab to its plan".to_owned(),
                source: PortError::new(ErrorKind::Cancelled, "interrupted"),
                domain: None,
                console: Vec::new(),
            }),
            None => {
                self.bus.send(&Event::PlanDone {
                    seconds: began.elapsed().as_secs_f64(),
                });
                Ok(())
            }
        }
    }

    fn explain(&self, action: &Action, source: PortError) -> ApplyError {
        let console = match &action.domain {
            Some(domain) if action.only_waits() && source.kind != ErrorKind::Cancelled => self
                .hypervisor
                .console_tail(domain, CONSOLE_LINES)
                .unwrap_or_default(),
            _ => Vec::new(),
        };
        ApplyError {
            title: action.title(),
            source,
            domain: action.domain.clone(),
            console,
        }
    }

    fn execute(&self, index: usize, action: &Action, halt: &Halt) -> Result<(), PortError> {
        halt.check()?;
        let began = Instant::now();
        self.bus.send(&Event::ActionStarted {
            action: index,
            title: action.title(),
            reason: action.reason.clone(),
            domain: action.domain.clone(),
            long: action.is_long(),
        });
        let result = self.perform(index, action, halt);
        self.bus.send(&match &result {
            Ok(()) => Event::ActionDone {
                action: index,
                seconds: began.elapsed().as_secs_f64(),
            },
            Err(error) => Event::ActionFailed {
                action: index,
                error: chain(error),
            },
        });
        result
    }

    fn wait<'a>(&'a self, halt: &'a Halt, timeout: Seconds) -> ready::Wait<'a> {
        ready::Wait {
            hypervisor: self.hypervisor.as_ref(),
            remote: self.remote.as_ref(),
            bus: &self.bus,
            halt,
            step_timeout: Duration::from(timeout),
        }
    }

    fn perform(&self, index: usize, action: &Action, halt: &Halt) -> Result<(), PortError> {
        use ActionKind as K;
        let hypervisor = &self.hypervisor;
        if !action.only_waits() {
            self.journal.intend(&action.title(), &action.reason)?;
        }
        match &action.kind {
            K::EnsureImage { image, link, .. } => {
                let files = images::ensure(self.images.as_ref(), index, image, &self.bus)?;
                hypervisor.link_image(link, &files)
            }
            K::DefineNetwork { name, xml } => hypervisor.define_network(name, xml),
            K::StartNetwork { name } => hypervisor.start_network(name),
            K::Reserve {
                network,
                reservation,
                wanted,
            } => hypervisor.reserve(network, reservation, *wanted),
            K::RemoveNetwork { name } => hypervisor.remove_network(name),
            K::CreateDisk {
                path,
                format,
                backing,
                size,
                ..
            } => hypervisor.create_disk(path, *format, backing.as_deref(), *size),
            K::WriteSeed { path, seed } => hypervisor.write_seed(path, &seed.pack()),
            K::RemoveFile { path } => hypervisor.remove_file(path),
            K::DefineDomain { name, xml } => hypervisor.define_domain(name, xml),
            K::StartDomain { name } => hypervisor.start_domain(name),
            K::StopDomain { name } => hypervisor.stop_domain(name),
            K::RemoveDomain { name } => hypervisor.remove_domain(name),
            K::MoveDomain { name, split } => {
                hypervisor.move_domain(name, split)?;
                self.check_place(name, split)
            }
            K::AwaitReady {
                name,
                address,
                timeout,
                hosts,
                split,
            } => {
                let Some(domain) = &action.domain else {
                    return Ok(());
                };
                let wait = self.wait(halt, *timeout);
                wait.until_ready(domain, name, *address, hosts.as_deref())?;
                // Nobody may be waiting any more, and the domain's life another one.
                halt.check()?;
                self.check_place(name, split)?;
                hypervisor.mark_ready(name, hosts.as_ref().map(|hosts| hosts.digest()))
            }
            K::TellHosts {
                name,
                address,
                timeout,
                hosts,
            } => {
                let Some(domain) = &action.domain else {
                    return Ok(());
                };
                let wait = self.wait(halt, *timeout);
                wait.tell_hosts(domain, name, *address, hosts)?;
                hypervisor.mark_ready(name, Some(hosts.digest()))
            }
            K::Impair {
                device, impairment, ..
            } => hypervisor.impair(device, impairment),
        }
    }

    /// Sees that a running domain is where it belongs on the host.
    fn check_place(&self, name: &str, split: &Split) -> Result<(), PortError> {
        let wrong = self.hypervisor.placement(name)?.misplaced(split);
        if wrong.is_empty() {
            return Ok(());
        }
        let wrong: Vec<_> = wrong.iter().map(ToString::to_string).collect();
        let what = format!("find domain {name} where it belongs: {}", wrong.join(", "));
        Err(PortError::new(ErrorKind::Fatal, what).hint(
            "something else on this host moves its threads or its memory; `labrig up` tries again",
        ))
    }
}
