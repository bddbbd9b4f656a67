//! What whole runs are tried on: guests that are directories, and an experiment to change.

use super::*;

/// Fills in `{n}`, the level of the factor `n`, and leaves the rest alone.
pub struct PlainRenderer;

impl StepRenderer for PlainRenderer {
    fn render(
        &self,
        step: &Step,
        domain: &Name,
        trial: Option<&Trial>,
    ) -> Result<ResolvedStep, RenderError> {
        let level = trial
            .and_then(|trial| trial.levels.first())
            .map(|(_, level)| level.to_string());
        let fill = |text: &str| {
            text.replace("{n}", level.as_deref().unwrap_or("-"))
                .replace("{domain}", domain)
        };
        Ok(match &step.action {
            StepAction::Run { command } if command == "unrenderable" => {
                return Err("no such variable".into());
            }
            StepAction::Run { command } => ResolvedStep::Run {
                command: fill(command),
            },
            StepAction::Load {
                command, adapter, ..
            } => ResolvedStep::Load {
                command: fill(command),
                adapter: adapter.clone(),
            },
            StepAction::Template {
                template, to, mode, ..
            } => ResolvedStep::File {
                to: to.clone(),
                mode: *mode,
                content: Content::Rendered(fill(template).into()),
            },
            StepAction::Copy { from, to, mode } => ResolvedStep::File {
                to: to.clone(),
                mode: *mode,
                content: Content::File(from.into()),
            },
            StepAction::Service { verb, service } => ResolvedStep::Service {
                verb: *verb,
                service: service.clone(),
            },
            StepAction::Wait { until } => ResolvedStep::Wait(until.clone()),
        })
    }
}

/// A lab of fake guests, an archive, and an experiment to change before it is run.
pub struct Bench {
    pub guests: BTreeMap<String, Arc<FakeGuest>>,
    pub archive: Arc<FakeArchive>,
    pub experiment: Experiment,
    pub bus: Bus,
    pub cancel: Cancel,
}

pub fn name(text: &str) -> Name {
    text.parse().unwrap()
}

pub fn step(on: &[&str], action: StepAction) -> Step {
    let timeout = Seconds(Duration::from_secs(60));
    Step {
        name: "Do: it".to_owned(),
        on: on.iter().map(|domain| name(domain)).collect(),
        action,
        timeout,
    }
}

pub fn command(on: &[&str], command: &str) -> Step {
    step(
        on,
        StepAction::Run {
            command: command.to_owned(),
        },
    )
}

pub fn load(on: &[&str], command: &str) -> Step {
    let expect = Seconds(Duration::from_secs(1));
    let action = StepAction::Load {
        command: command.to_owned(),
        adapter: "lines".to_owned(),
        expect,
    };
    Step {
        name: "load".to_owned(),
        ..step(on, action)
    }
}

impl Bench {
    /// One factor `n` of 1 and 2, two repetitions, one load that prints `n` as its rate.
    pub fn new(domains: &[&str]) -> Self {
        let guests: BTreeMap<_, _> = domains
            .iter()
            .map(|d| ((*d).to_owned(), FakeGuest::new(Shell::Dash)))
            .collect();
        let archive = FakeArchive::new();
        let playbook = Playbook {
            name: name("play"),
            roles: BTreeMap::new(),
            factors: vec![Factor {
                name: name("n"),
                levels: vec![Level::Int(1), Level::Int(2)],
            }],
            design: Design {
                repetitions: 2,
                order: Order::Blocks,
                seed: 1,
            },
            setup: vec![command(domains, "echo setup >>$GUEST/log")],
            trial: vec![load(&domains[..1], "echo metric rate {n} 1/s")],
            metrics: vec![MetricSpec {
                name: "rate".to_owned(),
                primary: true,
                unit: "1/s".to_owned(),
                better: Better::Higher,
            }],
            margin: 0.1,
        };
        let target = |domain: &str| Target {
            domain: name(domain),
            address: [127, 0, 0, 1].into(),
        };
        let experiment = Experiment {
            run: "play/20261201-1".to_owned(),
            directory: archive.path().to_owned(),
            setup_directory: archive.path().join("setup"),
            trials: Vec::new(),
            playbook,
            targets: domains
                .iter()
                .map(|domain| (name(domain), target(domain)))
                .collect(),
            directories: domains
                .iter()
                .map(|domain| (name(domain), format!("{ROOT}/run/labrig")))
                .collect(),
        };
        let bus = Bus::new(FastClock::new());
        Self {
            guests,
            archive,
            experiment,
            bus,
            cancel: Cancel::default(),
        }
    }

    /// Trials as the design would make them, without its shuffle.
    pub fn trials(&self) -> Vec<Trial> {
        let mut trials = Vec::new();
        for block in 1..=self.experiment.playbook.design.repetitions {
            for level in [1, 2] {
                let number = u32::try_from(trials.len() + 1).unwrap();
                let levels = vec![(name("n"), Level::Int(level))];
                trials.push(Trial {
                    number,
                    block,
                    levels,
                    identity: Digest::of(number.to_string()),
                });
            }
        }
        trials
    }

    pub async fn run(&mut self) -> Result<Summary, EngineError> {
        self.experiment.trials = self.trials();
        let world = World {
            remote: Arc::new(FakeRemote(self.guests.clone())),
            attempts: Arc::clone(&self.archive) as Arc<dyn Attempts>,
            clock: FastClock::new(),
            renderer: Arc::new(PlainRenderer),
        };
        run(&self.experiment, &world, &self.bus, &self.cancel).await
    }

    pub fn first(&self) -> &FakeGuest {
        self.guests.values().next().unwrap()
    }

    pub fn log(&self) -> String {
        fs::read_to_string(self.first().path("log")).unwrap()
    }

    pub fn outcomes(&self) -> Vec<Outcome> {
        self.archive
            .committed()
            .into_iter()
            .map(|(.., outcome)| outcome)
            .collect()
    }

    pub fn failures(&self) -> Vec<Failure> {
        self.outcomes()
            .into_iter()
            .filter_map(|outcome| outcome.failure)
            .collect()
    }
}
