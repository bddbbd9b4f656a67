//! One run: what was asked, on what, what came of it, and where the raw data is.

use std::fmt::Write as _;
use std::path::PathBuf;

use serde::Serialize;

use super::number::{count, plain};
use super::result_table::ResultTable;
use crate::archive::{Lock, Manifest, Results, RunDir};
use crate::model::{Domain, Playbook, Topology};

/// The leaf of the lock that says how guests were executed.
const ACCELERATION: &str = "host.acceleration";
/// The leaf of the lock that names the host's CPU.
const CPU: &str = "host.cpu";

/// One run.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct RunReport {
    /// The run directory.
    pub path: PathBuf,
    /// Where it comes from.
    pub manifest: Manifest,
    /// Whether every trial has a committed attempt.
    pub finished: bool,
    /// What went in.
    pub lock: Lock,
    /// The experiment.
    pub playbook: Playbook,
    /// The lab.
    pub topology: Topology,
    /// What came out.
    pub results: ResultTable,
}

impl RunReport {
    /// Gathers what there is to say about a run.
    pub fn new(run: &RunDir, results: &Results) -> Self {
        Self {
            path: run.path().to_owned(),
            manifest: run.manifest().clone(),
            finished: results.untried() == 0,
            lock: run.lock().clone(),
            playbook: run.playbook().clone(),
            topology: run.topology().clone(),
            results: ResultTable::new(results),
        }
    }

    /// Draws it, at most `width` columns wide where that is known.
    pub fn text(&self, width: Option<u16>) -> String {
        let state = if self.finished {
            "finished"
        } else {
            "unfinished: running on it goes on with the rest"
        };
        let leaf = |name: &str| {
            self.lock
                .leaves
                .get(name)
                .map_or("not recorded", String::as_str)
        };
        let mut lines = vec![
            ("Run", format!("{} ({state})", self.playbook.name)),
            ("Created", self.origin()),
            ("Asked", self.asked()),
            (
                "Lab",
                format!("{}: {}", self.topology.lab.name, domains(&self.topology)),
            ),
            (
                "Guests by",
                format!("{} on {}", leaf(ACCELERATION), leaf(CPU)),
            ),
            ("Lock", self.lock.root.to_string()),
            ("Archive", self.path.display().to_string()),
            (
                "Raw output",
                "trials/NUMBER-LEVELS/attempt-N/ in the archive".to_owned(),
            ),
        ];
        if let Some(origin) = &self.manifest.derived_from {
            lines.insert(
                2,
                (
                    "Repeats",
                    format!("{} (lock {}…)", origin.path, origin.root.short(12)),
                ),
            );
        }
        let mut text = String::new();
        for (head, content) in lines {
            let _ = writeln!(text, "{head:<11}{}", plain(&content));
        }
        text.push('\n');
        text + &self.results.text(width)
    }

    fn origin(&self) -> String {
        let Manifest {
            tool,
            created,
            host,
            user,
            ..
        } = &self.manifest;
        let mut text = created.strftime("%Y-%m-%d %H:%M:%S UTC").to_string();
        if let Some(user) = user {
            let _ = write!(text, " by {user}");
        }
        if let Some(host) = host {
            let _ = write!(text, " on {host}");
        }
        let _ = write!(text, " with {} {}", tool.name, tool.version);
        text
    }

    fn asked(&self) -> String {
        let mut parts: Vec<String> = Vec::new();
        for factor in &self.playbook.factors {
            let levels: Vec<_> = factor.levels.iter().map(ToString::to_string).collect();
            parts.push(format!("{}: {}", factor.name, levels.join(", ")));
        }
        let design = &self.playbook.design;
        let trials = self.results.cells.iter().map(|cell| cell.planned).sum();
        let repetitions = count(design.repetitions as usize, "repetition");
        parts.push(format!(
            "{repetitions} in shuffled blocks (seed {}): {}",
            design.seed,
            count(trials, "trial")
        ));
        parts.join("; ")
    }
}

/// Domains by group, as `4 x dom (4 vCPUs, 16GiB, web)`.
fn domains(topology: &Topology) -> String {
    let mut groups: Vec<(&Domain, usize)> = Vec::new();
    for domain in &topology.domains {
        match groups
            .iter_mut()
            .find(|(first, _)| first.group == domain.group)
        {
            Some((_, n)) => *n += 1,
            None => groups.push((domain, 1)),
        }
    }
    let describe = |(domain, n): (&Domain, usize)| {
        let name = if n == 1 {
            domain.name.to_string()
        } else {
            format!("{n} x {}", domain.group)
        };
        let mut facts = Vec::new();
        if let Some(split) = &domain.split {
            facts.push(count(split.vcpus as usize, "vCPU"));
            facts.push(split.memory.to_string());
        }
        facts.push(match domain.guest() {
            Some(guest) => guest.image.to_string(),
            None => domain.kind.word().to_owned(),
        });
        format!("{name} ({})", facts.join(", "))
    };
    groups
        .into_iter()
        .map(describe)
        .collect::<Vec<_>>()
        .join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::archive::DerivedFrom;
    use crate::archive::testing::{bad, commit, create, good, playbook, writer};
    use crate::model::{Digest, Level};

    #[test]
    fn a_run_is_told_from_the_question_to_the_raw_data() {
        let root = tempfile::tempdir().unwrap();
        let run = create(root.path(), &playbook(&[Level::Int(1), Level::Int(4)], 1));
        let writer = writer(&run);
        commit(&writer, &run.trials()[0], |attempt| {
            good(attempt, 31.8, 62.5)
        });
        let mut report = RunReport::new(&run, &run.results().unwrap());
        assert!(report.text(None).contains("unfinished"));

        commit(&writer, &run.trials()[1], |attempt| {
            bad(attempt, "the connection broke")
        });
        report = RunReport::new(&run, &run.results().unwrap());
        let origin = DerivedFrom {
            path: "/elsewhere".to_owned(),
            root: Digest::of("x"),
        };
        report.manifest.derived_from = Some(origin);
        report.manifest.user = Some("alice".to_owned());
        report.manifest.host = Some("bench".to_owned());
        report.path = "/runs/oltp/20261201T101500Z-7f3a9c".into();
        let mut settings = insta::Settings::clone_current();
        let version = env!("CARGO_PKG_VERSION").replace('.', r"\.");
        settings.add_filter(&format!("labrig {version}"), "labrig VERSION");
        settings.bind(|| insta::assert_snapshot!(report.text(None)));

        let json = serde_json::to_value(&report).unwrap();
        assert_eq!(json["lock"]["root"], report.lock.root.to_string());
        assert_eq!(json["results"]["failures"][0]["failure"]["kind"], "tool");
    }
}
