//! `results.sqlite`: a run's results for queries. It holds nothing that the trial directories do
//! not; deleting it loses nothing.

use std::path::Path;

use rusqlite::{Connection, params};

use super::{ArchiveError, Results, RunDir, durable};

/// The tables, as `docs/archive-format.md` describes them.
const SCHEMA: &str = "
CREATE TABLE runs (
    path TEXT NOT NULL, playbook TEXT NOT NULL, created TEXT NOT NULL, tool_version TEXT NOT NULL,
    lock_root TEXT NOT NULL, margin REAL NOT NULL
);
CREATE TABLE trials (
    trial INTEGER PRIMARY KEY, block INTEGER NOT NULL, label TEXT NOT NULL, levels TEXT NOT NULL,
    identity TEXT NOT NULL
);
CREATE TABLE attempts (
    trial INTEGER NOT NULL REFERENCES trials, attempt INTEGER NOT NULL, started TEXT NOT NULL,
    ended TEXT NOT NULL, counts INTEGER NOT NULL, failure_kind TEXT, failure_step TEXT,
    failure TEXT, PRIMARY KEY (trial, attempt)
);
CREATE TABLE steps (
    trial INTEGER NOT NULL, attempt INTEGER NOT NULL, position INTEGER NOT NULL,
    step TEXT NOT NULL, domain TEXT NOT NULL, seconds REAL NOT NULL, exit INTEGER,
    PRIMARY KEY (trial, attempt, position), FOREIGN KEY (trial, attempt) REFERENCES attempts
);
CREATE TABLE metrics (
    trial INTEGER NOT NULL, attempt INTEGER NOT NULL, name TEXT NOT NULL, value REAL NOT NULL,
    unit TEXT NOT NULL, FOREIGN KEY (trial, attempt) REFERENCES attempts
);
CREATE INDEX metrics_by_name ON metrics (name, trial);
";

/// Writes the index beside `file` and puts it in its place.
pub(super) fn write(file: &Path, run: &RunDir, results: &Results) -> Result<(), ArchiveError> {
    let failed = || ArchiveError::io("write the results index");
    let directory = file.parent().unwrap_or(Path::new("."));
    let draft = tempfile::Builder::new()
        .prefix(".index-")
        .permissions(std::os::unix::fs::PermissionsExt::from_mode(0o644))
        .tempfile_in(directory)
        .map_err(failed())?;
    fill(draft.path(), run, results).map_err(|source| ArchiveError::Index {
        file: file.to_owned(),
        source,
    })?;
    draft.as_file().sync_all().map_err(failed())?;
    // An index is no record: the old one may be replaced.
    draft.persist(file).map_err(|error| failed()(error.error))?;
    durable::sync_directory(directory).map_err(failed())
}

fn fill(file: &Path, run: &RunDir, results: &Results) -> rusqlite::Result<()> {
    let mut database = Connection::open(file)?;
    // The file is thrown away when this fails: a rollback journal would only cost time.
    database.pragma_update(None, "journal_mode", "OFF")?;
    let transaction = database.transaction()?;
    transaction.execute_batch(SCHEMA)?;
    let manifest = run.manifest();
    transaction.execute(
        "INSERT INTO runs VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
        params![
            run.path().to_string_lossy(),
            results.playbook.name.as_str(),
            manifest.created.to_string(),
            manifest.tool.version,
            run.lock().root.to_string(),
            results.playbook.margin,
        ],
    )?;
    {
        let mut add_trial =
            transaction.prepare("INSERT INTO trials VALUES (?1, ?2, ?3, ?4, ?5)")?;
        let mut add_attempt =
            transaction.prepare("INSERT INTO attempts VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)")?;
        let mut add_step =
            transaction.prepare("INSERT INTO steps VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)")?;
        let mut add_metric =
            transaction.prepare("INSERT INTO metrics VALUES (?1, ?2, ?3, ?4, ?5)")?;
        for (trial, outcomes) in &results.trials {
            let levels: serde_json::Map<_, _> = trial
                .levels
                .iter()
                .map(|(name, level)| (name.to_string(), serde_json::json!(level)))
                .collect();
            add_trial.execute(params![
                trial.number,
                trial.block,
                trial.label(),
                serde_json::Value::Object(levels).to_string(),
                trial.identity.to_string(),
            ])?;
            let counts = Results::good(outcomes).map(|outcome| outcome.attempt);
            for outcome in outcomes {
                let failure = outcome.failure.as_ref();
                add_attempt.execute(params![
                    trial.number,
                    outcome.attempt,
                    outcome.started.to_string(),
                    outcome.ended.to_string(),
                    counts == Some(outcome.attempt),
                    failure.map(|f| f.kind.to_string()),
                    failure.map(|f| &f.step),
                    failure.map(|f| &f.message),
                ])?;
                for (position, step) in (1_i64..).zip(&outcome.steps) {
                    add_step.execute(params![
                        trial.number,
                        outcome.attempt,
                        position,
                        step.step,
                        step.domain.as_str(),
                        step.seconds,
                        step.exit,
                    ])?;
                }
                for metric in &outcome.metrics {
                    add_metric.execute(params![
                        trial.number,
                        outcome.attempt,
                        metric.name,
                        metric.value,
                        metric.unit,
                    ])?;
                }
            }
        }
    }
    transaction.commit()
}
