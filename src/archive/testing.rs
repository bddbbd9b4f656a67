//! Small whole values for tests of this layer and of those above it.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use jiff::Timestamp;

use super::{Lock, Manifest, Results, RunDir, Writer};
use crate::model::{
    Better, Design, Digest, Digester, Domain, DomainKind, Factor, Failure, FailureKind, Guest,
    Image, ImageRecipe, ImageSource, Lab, Level, Metric, MetricSpec, Name, Order, Outcome,
    Playbook, Seconds, Split, Step, StepAction, StepRecord, Topology, Trial,
};
use crate::ports::{Attempts, Clock};

/// A clock that stands still.
pub(crate) struct Stopped;

impl Clock for Stopped {
    fn now(&self) -> Timestamp {
        stamp()
    }

    fn monotonic(&self) -> Instant {
        Instant::now()
    }

    fn sleep(&self, _: Duration) {}
}

pub(crate) fn stamp() -> Timestamp {
    "2026-12-01T10:15:00.123456789Z".parse().unwrap()
}

pub(crate) fn name(text: &str) -> Name {
    text.parse().unwrap()
}

/// Two metrics, tps (primary) and p95, over the given levels of `threads`.
pub(crate) fn playbook(levels: &[Level], repetitions: u32) -> Playbook {
    let metric = |name: &str, primary, unit: &str, better| MetricSpec {
        name: name.to_owned(),
        primary,
        unit: unit.to_owned(),
        better,
    };
    Playbook {
        name: name("oltp"),
        roles: BTreeMap::from([(name("db"), vec![name("db")])]),
        factors: vec![Factor {
            name: name("threads"),
            levels: levels.to_vec(),
        }],
        design: Design {
            repetitions,
            order: Order::Blocks,
            seed: 7,
        },
        setup: Vec::new(),
        trial: vec![Step {
            name: "load".to_owned(),
            on: vec![name("db")],
            action: StepAction::Load {
                command: "sysbench run".to_owned(),
                adapter: "sysbench".to_owned(),
                expect: Seconds(Duration::from_secs(10)),
            },
            timeout: Seconds(Duration::from_millis(90_500)),
        }],
        metrics: vec![
            metric("tps", true, "1/s", Better::Higher),
            metric("p95", false, "ms", Better::Lower),
        ],
        margin: 0.1,
    }
}

/// One trial per level and block, in order.
pub(crate) fn trials(playbook: &Playbook) -> Vec<Trial> {
    let factor = &playbook.factors[0];
    let mut trials = Vec::new();
    for block in 1..=playbook.design.repetitions {
        for level in &factor.levels {
            let levels = vec![(factor.name.clone(), level.clone())];
            let identity = Digester::default()
                .field(format!("{levels:?}"))
                .field(block.to_be_bytes())
                .finish();
            let number = u32::try_from(trials.len()).unwrap() + 1;
            trials.push(Trial {
                number,
                block,
                levels,
                identity,
            });
        }
    }
    trials
}

pub(crate) fn topology() -> Topology {
    Topology {
        vars: serde_json::Map::new(),
        secrets: BTreeMap::new(),
        lab: Lab {
            name: name("quickstart"),
        },
        images: BTreeMap::from([(
            name("micro"),
            Image {
                source: ImageSource::Build(ImageRecipe::Micro {
                    suite: "bookworm".to_owned(),
                    files: Vec::new(),
                }),
                key: Digest::of("micro"),
                cloud_init: false,
            },
        )]),
        host: crate::model::LabHost::default(),
        vswitches: BTreeMap::new(),
        domains: vec![Domain {
            name: name("db"),
            group: name("db"),
            index: 1,
            kind: DomainKind::Vm(Box::new(Guest {
                libvirt_name: "quickstart-db".to_owned(),
                uuid: uuid::Uuid::nil(),
                image: name("micro"),
                machine: crate::model::Machine::default(),
                disks: Vec::new(),
            })),
            split: Some(Split::new(2, "512MiB".parse().unwrap())),
            vnets: Vec::new(),
            files: Vec::new(),
            instances: Vec::new(),
            settings: crate::model::GuestSettings::default(),
            boot_timeout: Seconds(Duration::from_secs(120)),
        }],
    }
}

pub(crate) fn lock() -> Lock {
    let leaf = |name: &str, value: &str| (name.to_owned(), value.to_owned());
    Lock::new(BTreeMap::from([
        leaf("host.acceleration", "emulation"),
        leaf("host.cpu", "EPYC"),
        leaf(
            "input.topologies/quickstart.yaml",
            &Digest::of("version: 1\n").to_string(),
        ),
        leaf("seed", "7"),
    ]))
}

pub(crate) fn inputs() -> Vec<(PathBuf, Vec<u8>)> {
    vec![(
        PathBuf::from("topologies/quickstart.yaml"),
        b"version: 1\n".to_vec(),
    )]
}

/// A good outcome with the playbook's two metrics.
pub(crate) fn good(attempt: u32, tps: f64, p95: f64) -> Outcome {
    let metric = |name: &str, value, unit: &str| Metric {
        name: name.to_owned(),
        value,
        unit: unit.to_owned(),
    };
    Outcome {
        attempt,
        started: stamp(),
        ended: stamp() + Duration::from_secs(12),
        steps: vec![StepRecord {
            step: "load".to_owned(),
            domain: name("db"),
            seconds: 0.1 + 0.2,
            exit: Some(0),
        }],
        metrics: vec![metric("tps", tps, "1/s"), metric("p95", p95, "ms")],
        failure: None,
        rendered: BTreeMap::from([("db:/etc/my.cnf".to_owned(), Digest::of("x"))]),
    }
}

/// An outcome that failed.
pub(crate) fn bad(attempt: u32, message: &str) -> Outcome {
    Outcome {
        metrics: Vec::new(),
        failure: Some(Failure {
            kind: FailureKind::Tool,
            step: "load".to_owned(),
            message: message.to_owned(),
        }),
        ..good(attempt, 0.0, 0.0)
    }
}

/// Results with one value of `tps` and `p95` = 1000/tps per trial, by level and block. Where there
/// is no value the trial was not tried.
pub(crate) fn results(cells: &[(i64, &[f64])]) -> Results {
    let levels: Vec<_> = cells.iter().map(|(level, _)| Level::Int(*level)).collect();
    let repetitions = cells
        .iter()
        .map(|(_, values)| values.len())
        .max()
        .unwrap_or(0)
        .max(1);
    let playbook = playbook(&levels, u32::try_from(repetitions).unwrap());
    let trials = trials(&playbook)
        .into_iter()
        .map(|trial| {
            let at = levels
                .iter()
                .position(|level| *level == trial.levels[0].1)
                .unwrap();
            let value = cells[at].1.get(trial.block as usize - 1);
            let outcomes = value
                .map(|tps| good(1, *tps, 1000.0 / tps))
                .into_iter()
                .collect();
            (trial, outcomes)
        })
        .collect();
    Results { playbook, trials }
}

pub(crate) fn create(root: &Path, playbook: &Playbook) -> RunDir {
    let manifest = Manifest::new(stamp());
    RunDir::create(
        root,
        &manifest,
        &inputs(),
        &trials(playbook),
        playbook,
        &topology(),
        &lock(),
    )
    .unwrap()
}

pub(crate) fn writer(run: &RunDir) -> Writer {
    run.writer(&name("main"), Arc::new(Stopped)).unwrap()
}

/// Begins and commits an attempt with a raw file.
pub(crate) fn commit(writer: &Writer, trial: &Trial, outcome: impl FnOnce(u32) -> Outcome) {
    let attempt = writer.begin(trial).unwrap();
    std::fs::write(attempt.directory.join("stdout"), b"raw \xff output").unwrap();
    let outcome = outcome(attempt.number);
    writer.commit(trial, attempt, &outcome).unwrap();
}
