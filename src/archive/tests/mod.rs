//! Stories over a whole run directory.

mod disk_full;

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::sync::Arc;

use crate::archive::testing::{
    Stopped, bad, commit, create, good, inputs, lock, name, playbook, stamp, topology, trials,
    writer,
};
use crate::archive::{ArchiveError, DerivedFrom, Journal, Manifest, RunDir, RunState, list};
use crate::model::{Digest, Event, Level};
use crate::ports::Attempts;

const LEVELS: [Level; 2] = [Level::Int(1), Level::Int(4)];

/// Every path below a directory, for a look at the whole.
fn tree(root: &Path) -> BTreeSet<String> {
    walkdir::WalkDir::new(root)
        .min_depth(1)
        .into_iter()
        .map(|entry| {
            entry
                .unwrap()
                .path()
                .strip_prefix(root)
                .unwrap()
                .to_str()
                .unwrap()
                .to_owned()
        })
        .collect()
}

#[test]
fn a_run_reads_back_as_it_was_written() {
    let root = tempfile::tempdir().unwrap();
    let levels = [
        Level::Int(1),
        Level::Float(1.0),
        Level::Text("1".to_owned()),
        Level::Bool(true),
        Level::Float(0.1 + 0.2),
    ];
    let playbook = playbook(&levels, 1);
    let mut manifest = Manifest::new(stamp());
    manifest.host = Some("bench".to_owned());
    manifest.derived_from = Some(DerivedFrom {
        path: "/elsewhere".to_owned(),
        root: Digest::of("x"),
    });
    let created = RunDir::create(
        root.path(),
        &manifest,
        &inputs(),
        &trials(&playbook),
        &playbook,
        &topology(),
        &lock(),
    )
    .unwrap();
    let awkward = [
        0.1 + 0.2,
        5e-324,
        1.797_693_134_862_315_7e308,
        32.123_456_789_012_345,
        -0.0,
    ];
    {
        let writer = writer(&created);
        for (trial, value) in created.trials().iter().zip(awkward) {
            commit(&writer, trial, |attempt| good(attempt, value, 1.5));
        }
    }
    let opened = RunDir::open(created.path()).unwrap();
    assert_eq!(opened.manifest(), &manifest);
    assert_eq!(opened.lock(), &lock());
    assert_eq!(opened.playbook(), &playbook);
    assert_eq!(opened.topology(), &topology());
    assert_eq!(opened.trials(), trials(&playbook));
    assert_eq!(opened.inputs().unwrap(), inputs());
    let results = opened.results().unwrap();
    for ((trial, outcomes), value) in results.trials.iter().zip(awkward) {
        assert_eq!(outcomes, &[good(1, value, 1.5)], "{}", trial.label());
        assert_eq!(outcomes[0].metrics[0].value.to_bits(), value.to_bits());
    }
}

#[test]
fn the_directory_looks_as_documented() {
    let root = tempfile::tempdir().unwrap();
    let run = create(root.path(), &playbook(&LEVELS, 1));
    let relative = run
        .path()
        .strip_prefix(root.path())
        .unwrap()
        .to_str()
        .unwrap();
    assert!(relative.starts_with("oltp/20261201T101500Z-"), "{relative}");
    assert_eq!(relative.len(), "oltp/20261201T101500Z-7f3a9c".len());
    let writer = writer(&run);
    commit(&writer, &run.trials()[1], |attempt| {
        good(attempt, 30.0, 60.0)
    });
    run.index().unwrap();
    let expected = "inputs inputs/topologies inputs/topologies/quickstart.yaml journal journal/main.ndjson \
        lock.json plan.json results.sqlite run.json trials trials/0002-threads=4 \
        trials/0002-threads=4/attempt-1 trials/0002-threads=4/attempt-1/outcome.json \
        trials/0002-threads=4/attempt-1/stdout trials/0002-threads=4/trial.json writer.lock";
    assert_eq!(
        tree(run.path()),
        expected.split_whitespace().map(str::to_owned).collect()
    );
}

#[test]
fn runs_created_at_one_moment_get_directories_of_their_own() {
    let root = tempfile::tempdir().unwrap();
    let playbook = playbook(&LEVELS, 1);
    let paths: BTreeSet<_> = std::thread::scope(|scope| {
        let workers: Vec<_> = (0..8)
            .map(|_| scope.spawn(|| create(root.path(), &playbook).path().to_owned()))
            .collect();
        workers
            .into_iter()
            .map(|worker| worker.join().unwrap())
            .collect()
    });
    assert_eq!(paths.len(), 8);
    for path in &paths {
        RunDir::open(path).unwrap();
    }
    // No drafts are left either.
    assert_eq!(fs::read_dir(root.path().join("oltp")).unwrap().count(), 8);
}

#[test]
fn a_killed_writer_loses_its_open_attempt_and_nothing_else() {
    let root = tempfile::tempdir().unwrap();
    let run = create(root.path(), &playbook(&LEVELS, 2));
    let [first, second, ..] = run.trials() else {
        panic!("{:?}", run.trials())
    };
    {
        let writer = writer(&run);
        commit(&writer, first, |attempt| good(attempt, 30.0, 60.0));
        let attempt = writer.begin(second).unwrap();
        fs::write(attempt.directory.join("stdout"), "partial").unwrap();
        writer.record(&Event::PlanDone { seconds: 1.0 }).unwrap();
        // Dropped here, as by a kill: no commit.
    }
    let journal = run.path().join("journal/main.ndjson");
    let mut bytes = fs::read(&journal).unwrap();
    bytes.truncate(bytes.len() - 5);
    fs::write(&journal, bytes).unwrap();

    let run = RunDir::open(run.path()).unwrap();
    assert_eq!(run.results().unwrap().done(), 1);
    let writer = writer(&run);
    assert!(writer.is_done(first));
    assert!(!writer.is_done(second));
    let aside = run
        .path()
        .join("trials/0002-threads=4/attempt-1.abandoned/stdout");
    assert_eq!(fs::read_to_string(aside).unwrap(), "partial");
    let attempt = writer.begin(second).unwrap();
    assert_eq!(attempt.number, 2, "an abandoned number is not used again");
    let outcome = good(2, 31.0, 61.0);
    writer.commit(second, attempt, &outcome).unwrap();
    assert!(writer.is_done(second));
    // The journal says what was found.
    let warnings: Vec<_> = Journal::read(&journal)
        .unwrap()
        .entries
        .into_iter()
        .filter_map(|entry| match entry.event {
            Event::Message { text, .. } => Some(text),
            _ => None,
        })
        .collect();
    assert!(warnings.iter().any(|w| w.contains("torn")), "{warnings:?}");
    assert!(
        warnings.iter().any(|w| w.contains("attempt-1.abandoned")),
        "{warnings:?}"
    );
}

#[test]
fn a_failed_trial_is_tried_again_beside_its_failure() {
    let root = tempfile::tempdir().unwrap();
    let run = create(root.path(), &playbook(&LEVELS, 1));
    let writer = writer(&run);
    let trial = &run.trials()[0];
    commit(&writer, trial, |attempt| bad(attempt, "no such table"));
    assert!(!writer.is_done(trial));
    assert_eq!(run.results().unwrap().failed(), 1);
    // An attempt that its caller gave up is no commit and does not block the next.
    writer.begin(trial).unwrap();
    commit(&writer, trial, |attempt| good(attempt, 30.0, 60.0));
    let results = run.results().unwrap();
    let attempts: Vec<_> = results.trials[0]
        .1
        .iter()
        .map(|o| (o.attempt, o.is_good()))
        .collect();
    assert_eq!(attempts, [(1, false), (3, true)]);
    let raw = run.path().join("trials/0001-threads=1/attempt-3/stdout");
    assert_eq!(fs::read(raw).unwrap(), b"raw \xff output");
}

#[test]
fn a_commit_overwrites_nothing_and_fails_whole() {
    let root = tempfile::tempdir().unwrap();
    let run = create(root.path(), &playbook(&LEVELS, 1));
    let trial = run.trials()[0].clone();
    let writer = writer(&run);
    let attempt = writer.begin(&trial).unwrap();
    let taken = run.path().join("trials/0001-threads=1/attempt-1");
    fs::create_dir(&taken).unwrap();
    fs::write(taken.join("precious"), "x").unwrap();
    assert!(
        writer
            .commit(&trial, attempt, &good(1, 30.0, 60.0))
            .is_err()
    );
    assert!(!writer.is_done(&trial));
    assert_eq!(fs::read_to_string(taken.join("precious")).unwrap(), "x");

    let attempt = writer.begin(&trial).unwrap();
    assert_eq!(attempt.number, 2);
    let error = writer
        .commit(&trial, attempt, &good(1, 30.0, 60.0))
        .unwrap_err();
    assert!(error.what.contains("says it is attempt 1"), "{error}");

    let attempt = writer.begin(&trial).unwrap();
    let error = writer
        .commit(&trial, attempt, &good(3, f64::NAN, 60.0))
        .unwrap_err();
    assert!(error.what.contains("would not read back"), "{error}");
    assert!(
        RunDir::open(run.path()).is_ok_and(|run| run.results().is_err()),
        "attempt-1 is no attempt"
    );

    let mut stranger = trial;
    stranger.identity = Digest::of("another experiment");
    let error = writer.begin(&stranger).unwrap_err();
    assert!(error.what.contains("trial 1 is not in the plan"), "{error}");
    assert!(!writer.is_done(&stranger));
}

#[test]
fn there_is_one_writer_and_a_gone_one_holds_nothing() {
    let root = tempfile::tempdir().unwrap();
    let run = create(root.path(), &playbook(&LEVELS, 1));
    let first = writer(&run);
    let Err(error) = run.writer(&name("other"), Arc::new(Stopped)) else {
        panic!("two writers")
    };
    assert!(matches!(error, ArchiveError::InUse { .. }));
    assert!(
        error
            .to_string()
            .contains(&format!("process {}", std::process::id())),
        "{error}"
    );
    drop(first);
    drop(run.writer(&name("other"), Arc::new(Stopped)).unwrap());
    assert!(run.path().join("writer.lock").exists());
    for writer in ["main", "other"] {
        Journal::read(&run.path().join(format!("journal/{writer}.ndjson"))).unwrap();
    }
}

#[test]
fn hostile_levels_stay_inside_the_trials_directory() {
    let root = tempfile::tempdir().unwrap();
    let texts = [
        "../../../tmp/x",
        "/etc/passwd",
        "a\nb\0c",
        &"ü".repeat(4000),
        ".",
        "",
    ];
    let levels: Vec<_> = texts
        .iter()
        .map(|text| Level::Text((*text).to_owned()))
        .collect();
    let run = create(root.path(), &playbook(&levels, 1));
    {
        let writer = writer(&run);
        for trial in run.trials() {
            commit(&writer, trial, |attempt| good(attempt, 30.0, 60.0));
        }
    }
    assert_eq!(
        fs::read_dir(run.path().join("trials")).unwrap().count(),
        texts.len()
    );
    let results = RunDir::open(run.path()).unwrap().results().unwrap();
    assert_eq!(results.done(), texts.len());
    for ((trial, _), level) in results.trials.iter().zip(&levels) {
        assert_eq!(&trial.levels[0].1, level, "the identity is kept whole");
    }
}

#[test]
fn what_does_not_fit_together_is_refused() {
    let root = tempfile::tempdir().unwrap();
    let damage = |file: &str, change: &dyn Fn(String) -> String| {
        let run = create(root.path(), &playbook(&LEVELS, 1));
        commit(&writer(&run), &run.trials()[0], |attempt| {
            good(attempt, 30.0, 60.0)
        });
        let path = run.path().join(file);
        fs::write(&path, change(fs::read_to_string(&path).unwrap())).unwrap();
        let read =
            RunDir::open(run.path()).and_then(|run| run.inputs().and_then(|_| run.results()));
        read.err().unwrap_or_else(|| panic!("{file} is taken"))
    };
    let replace =
        |from: &'static str, to: &'static str| move |text: String| text.replacen(from, to, 1);
    use ArchiveError as E;
    assert!(matches!(
        damage(
            "run.json",
            &replace("\"major\": 1", "\"major\": 2, \"shape\": \"new\"")
        ),
        E::OtherFormat {
            found: 2,
            known: 1,
            ..
        }
    ));
    assert!(matches!(
        damage("run.json", &|text| text[..20].to_owned()),
        E::Json { .. }
    ));
    assert!(matches!(
        damage("lock.json", &replace("emulation", "kvm")),
        E::LockRoot { .. }
    ));
    assert!(matches!(
        damage("plan.json", &|_| "{}".to_owned()),
        E::Json { .. }
    ));
    let input = "inputs/topologies/quickstart.yaml";
    assert!(matches!(
        damage(input, &|text| text + "#"),
        E::Inconsistent { .. }
    ));
    let trial = "trials/0001-threads=1/trial.json";
    assert!(matches!(
        damage(trial, &replace("\"block\": 1", "\"block\": 2")),
        E::Inconsistent { .. }
    ));
    let outcome = "trials/0001-threads=1/attempt-1/outcome.json";
    assert!(matches!(
        damage(outcome, &replace("\"attempt\": 1", "\"attempt\": 2")),
        E::Inconsistent { .. }
    ));
    assert!(matches!(RunDir::open(root.path()), Err(E::NotARun(_))));
}

#[test]
fn a_list_shows_broken_runs_with_their_problem() {
    let root = tempfile::tempdir().unwrap();
    assert_eq!(list(&root.path().join("none")).unwrap(), []);
    let playbook = playbook(&LEVELS, 1);
    let finished = create(root.path(), &playbook);
    let unfinished = create(root.path(), &playbook);
    let broken = create(root.path(), &playbook);
    {
        let writer = writer(&finished);
        commit(&writer, &finished.trials()[0], |attempt| {
            good(attempt, 30.0, 60.0)
        });
        commit(&writer, &finished.trials()[1], |attempt| {
            bad(attempt, "died")
        });
    }
    fs::remove_file(broken.path().join("plan.json")).unwrap();
    fs::create_dir(root.path().join("oltp/.new-left")).unwrap();
    let runs = list(root.path()).unwrap();
    assert_eq!(runs.len(), 3);
    let of = |run: &RunDir| {
        runs.iter()
            .find(|summary| summary.path == run.path())
            .unwrap()
    };
    let summary = of(&finished);
    assert_eq!((summary.planned, summary.done, summary.failed), (2, 1, 1));
    assert_eq!(
        (&summary.state, summary.created),
        (&RunState::Finished, Some(stamp()))
    );
    assert_eq!(of(&unfinished).state, RunState::Unfinished);
    let RunState::Broken { problem } = &of(&broken).state else {
        panic!("{:?}", of(&broken))
    };
    assert!(problem.contains("plan.json"), "{problem}");
    assert_eq!(of(&broken).created, Some(stamp()));
}

#[test]
fn the_index_answers_and_can_be_rebuilt() {
    let root = tempfile::tempdir().unwrap();
    let run = create(root.path(), &playbook(&LEVELS, 2));
    let writer = writer(&run);
    commit(&writer, &run.trials()[0], |attempt| bad(attempt, "died"));
    commit(&writer, &run.trials()[0], |attempt| {
        good(attempt, 30.0, 60.0)
    });
    run.index().unwrap();
    commit(&writer, &run.trials()[2], |attempt| {
        good(attempt, 34.0, 50.0)
    });
    let file = run.index().unwrap();
    let database = rusqlite::Connection::open(file).unwrap();
    let query = "SELECT t.levels ->> 'threads', count(*), avg(m.value) FROM metrics m \
        JOIN attempts a USING (trial, attempt) JOIN trials t USING (trial) \
        WHERE a.counts AND m.name = 'tps' GROUP BY 1";
    let row = database
        .query_row(query, [], |row| {
            Ok((
                row.get::<_, i64>(0)?,
                row.get::<_, i64>(1)?,
                row.get::<_, f64>(2)?,
            ))
        })
        .unwrap();
    assert_eq!(row, (1, 2, 32.0));
    let failed: String = database
        .query_row("SELECT failure FROM attempts WHERE NOT counts", [], |row| {
            row.get(0)
        })
        .unwrap();
    assert_eq!(failed, "died");
    let trials: i64 = database
        .query_row("SELECT count(*) FROM trials", [], |row| row.get(0))
        .unwrap();
    assert_eq!(trials, 4);
}
