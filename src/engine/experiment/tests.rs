//! Whole runs on guests that are directories with real shells.

use std::fs;
use std::net::TcpListener;
use std::time::Duration;

use super::*;
use crate::engine::steps::{Content, RenderError, ResolvedStep};
use crate::engine::testing::{FakeArchive, FakeGuest, FakeRemote, FastClock, Fault, ROOT, Shell};
use crate::model::{
    Better, Design, Digest, Factor, Level, MetricSpec, Order, Outcome, Seconds, StepAction, WaitFor,
};

mod bench;

use bench::{Bench, command, load, step};

#[tokio::test]
async fn runs_all_trials_in_order_and_keeps_what_they_gave() {
    let mut bench = Bench::new(&["db"]);
    let config = bench
        .first()
        .path("etc/my.cnf")
        .to_str()
        .unwrap()
        .to_owned();
    let template = StepAction::Template {
        template: "threads = {n}\n".to_owned(),
        to: config.clone(),
        mode: 0o600,
        vars: serde_json::Map::new(),
    };
    bench
        .experiment
        .playbook
        .trial
        .insert(0, step(&["db"], template));
    bench.experiment.playbook.trial.insert(
        1,
        command(
            &["db"],
            "cat $GUEST/etc/my.cnf; echo trial {n} >>$GUEST/log",
        ),
    );
    let heard = bench.bus.subscribe();

    let summary = bench.run().await.unwrap();

    assert_eq!(
        summary,
        Summary {
            good: 4,
            failed: Vec::new()
        }
    );
    assert_eq!(bench.log(), "setup\ntrial 1\ntrial 2\ntrial 1\ntrial 2\n");
    let committed = bench.archive.committed();
    let rates: Vec<_> = committed
        .iter()
        .map(|(.., outcome)| outcome.metrics[0].value)
        .collect();
    assert_eq!(rates, [1.0, 2.0, 1.0, 2.0]);

    let (_, attempt, outcome) = &committed[1];
    let file = |path: &str| fs::read_to_string(attempt.directory.join(path)).unwrap();
    assert_eq!(file("stdout"), "metric rate 2 1/s\n");
    assert_eq!(
        (file("stderr"), file("exit")),
        (String::new(), "0\n".to_owned())
    );
    assert_eq!(file("steps/02-do--it/db.out"), "threads = 2\n");
    assert!(file("timing.json").contains(r#""why": "exit""#));
    assert_eq!(file(&format!("rendered/db{config}")), "threads = 2\n");
    assert_eq!(
        outcome.rendered,
        BTreeMap::from([(format!("db:{config}"), Digest::of("threads = 2\n"))])
    );
    assert_eq!(
        outcome
            .steps
            .iter()
            .map(|step| step.exit)
            .collect::<Vec<_>>(),
        [None, Some(0), Some(0)]
    );

    let told = bench.archive.events();
    assert!(matches!(
        &told[0],
        Event::RunStarted {
            trials: 4,
            done: 0,
            ..
        }
    ));
    assert!(matches!(
        told.last().unwrap(),
        Event::RunDone { good: 4, failed: 0 }
    ));
    assert_eq!(
        heard.try_iter().map(|(_, event)| event).collect::<Vec<_>>(),
        told
    );
}

#[tokio::test]
async fn a_second_call_resumes_and_does_the_setup_no_more() {
    let mut bench = Bench::new(&["db"]);
    bench
        .experiment
        .playbook
        .trial
        .insert(0, command(&["db"], "[ ! -e $GUEST/broken ]"));
    fs::write(bench.first().path("broken"), "").unwrap();
    let summary = bench.run().await.unwrap();
    assert_eq!((summary.good, summary.failed.len()), (0, 4));
    assert_eq!(bench.failures()[0].kind, FailureKind::Tool);

    fs::remove_file(bench.first().path("broken")).unwrap();
    assert_eq!(
        bench.run().await.unwrap(),
        Summary {
            good: 4,
            failed: Vec::new()
        }
    );
    assert_eq!(bench.log(), "setup\n");
    assert_eq!(bench.archive.committed().len(), 8);

    let calls = bench.first().calls("'run'");
    assert_eq!(bench.run().await.unwrap().good, 4);
    assert_eq!(bench.first().calls("'run'"), calls, "nothing is left to do");
}

#[tokio::test]
async fn failures_say_what_and_why_and_the_run_goes_on() {
    let good = "echo metric rate {n} 1/s";
    let cases = [
        (
            "echo 'no table' >&2; exit 3",
            good,
            FailureKind::Tool,
            "exit status 3: no table",
        ),
        (
            "sleep 300",
            good,
            FailureKind::Timeout,
            "did not end within 1s",
        ),
        (
            "true",
            "echo nothing",
            FailureKind::Output,
            "no complete line",
        ),
        (
            "true",
            "echo metric rate 1 1/s; exit 1",
            FailureKind::Output,
            "exit status 1",
        ),
        (
            "true",
            "echo metric rate 1 s",
            FailureKind::Output,
            "not in \"1/s\"",
        ),
        (
            "true",
            "echo metric other 1 1/s",
            FailureKind::Output,
            "no metric rate; it gave other",
        ),
    ];
    for (before, load_command, kind, message) in cases {
        let mut bench = Bench::new(&["db"]);
        let mut first = command(&["db"], &format!("[ {{n}} = 2 ] || {{ {before}; }}"));
        if kind == FailureKind::Timeout {
            first.timeout = Seconds(Duration::from_secs(1));
        }
        let load_command = format!("if [ {{n}} = 2 ]; then {good}; else {load_command}; fi");
        bench.experiment.playbook.design.repetitions = 1;
        bench.experiment.playbook.trial = vec![first, load(&["db"], &load_command)];
        let summary = bench.run().await.unwrap();
        assert_eq!((summary.good, summary.failed.len()), (1, 1), "{message}");
        assert_eq!(bench.outcomes().len(), 2, "{message}: one attempt each");
        let failure = &summary.failed[0].failure;
        assert_eq!(failure.kind, kind, "{failure:?}");
        assert!(failure.message.contains(message), "{failure:?}");
    }
}

#[tokio::test]
async fn a_guest_failure_gets_one_more_attempt() {
    let mut bench = Bench::new(&["db"]);
    bench.experiment.playbook.design.repetitions = 1;
    // Kills its own supervisor in the first attempt only.
    let kill = "[ -e $GUEST/killed ] && exit 0; touch $GUEST/killed
        read -r _ _ _ supervisor _ </proc/$PPID/stat; kill -KILL $supervisor; exec sleep 300";
    bench
        .experiment
        .playbook
        .trial
        .insert(0, command(&["db"], kill));
    assert_eq!(
        bench.run().await.unwrap(),
        Summary {
            good: 2,
            failed: Vec::new()
        }
    );
    let attempts: Vec<_> = bench
        .outcomes()
        .iter()
        .map(|o| (o.attempt, o.failure.as_ref().map(|f| f.kind)))
        .collect();
    assert_eq!(
        attempts,
        [(1, Some(FailureKind::Guest)), (2, None), (1, None)]
    );
}

#[tokio::test]
async fn a_load_starts_once_an_attempt_over_broken_connections() {
    let mut bench = Bench::new(&["db"]);
    bench.experiment.playbook.trial = vec![load(
        &["db"],
        "echo load >>$GUEST/log; sleep 0.4; echo metric rate {n} 1/s",
    )];
    for fault in [
        Fault::DropDuring,
        Fault::DropAfter,
        Fault::DropInput,
        Fault::DropBefore,
    ] {
        bench.first().fault(".t", fault);
    }
    bench.first().fault("'sweep'", Fault::DropAfter);
    assert_eq!(bench.run().await.unwrap().good, 4);
    assert_eq!(bench.log(), "setup\nload\nload\nload\nload\n");
    assert_eq!(bench.outcomes().len(), 4);
}

#[tokio::test]
async fn a_wish_to_stop_ends_the_load_and_a_resume_does_it_again() {
    let mut bench = Bench::new(&["db"]);
    let long = "echo $$ >>$GUEST/pids; [ -e $GUEST/quick ] || sleep 300; echo metric rate {n} 1/s";
    bench.experiment.playbook.trial = vec![load(&["db"], long)];
    let (cancel, pids) = (bench.cancel.clone(), bench.first().path("pids"));
    let stopper = std::thread::spawn(move || {
        while !pids.exists() {
            std::thread::sleep(Duration::from_millis(5));
        }
        cancel.cancel();
    });
    let error = bench.run().await.unwrap_err();
    stopper.join().unwrap();
    assert!(matches!(error, EngineError::Cancelled(_)), "{error}");
    assert_eq!(bench.outcomes(), []);
    let pid = fs::read_to_string(bench.first().path("pids")).unwrap();
    assert!(
        !std::path::Path::new("/proc")
            .join(pid.trim())
            .join("exe")
            .exists(),
        "the load is over"
    );

    fs::write(bench.first().path("quick"), "").unwrap();
    bench.cancel = Cancel::default();
    assert_eq!(bench.run().await.unwrap().good, 4);
    assert_eq!(bench.log(), "setup\n");
}

#[tokio::test]
async fn does_not_go_on_when_a_guest_lost_its_setup() {
    let mut bench = Bench::new(&["db"]);
    // A guest that is started anew forgets all below /run.
    bench.experiment.playbook.trial.push(command(
        &["db"],
        "[ {n} = 1 ] || rm $GUEST/run/labrig/setup-*",
    ));
    let error = bench.run().await.unwrap_err();
    assert!(
        matches!(&error, EngineError::Rebooted { domain } if domain.as_str() == "db"),
        "{error}"
    );
    assert_eq!(bench.outcomes().len(), 2);

    bench.experiment.playbook.trial.pop();
    assert_eq!(bench.run().await.unwrap().good, 4);
    assert_eq!(bench.log(), "setup\nsetup\n");
}

#[tokio::test]
async fn another_run_on_the_guests_ends_what_the_setup_did() {
    let mut bench = Bench::new(&["db"]);
    bench.run().await.unwrap();
    let first = bench.experiment.run.clone();
    for run in ["another".to_owned(), first] {
        bench.experiment.run = run;
        bench.archive = FakeArchive::new();
        bench.run().await.unwrap();
    }
    assert_eq!(bench.log(), "setup\nsetup\nsetup\n");
}

#[tokio::test]
async fn a_failed_setup_or_an_unreachable_guest_ends_the_run() {
    let mut bench = Bench::new(&["db"]);
    bench
        .experiment
        .playbook
        .setup
        .push(command(&["db"], "echo full >&2; false"));
    let error = bench.run().await.unwrap_err();
    assert_eq!(error.to_string(), "set up: Do: it: exit status 1: full");
    assert_eq!(bench.outcomes(), []);

    let mut bench = Bench::new(&["db"]);
    bench.guests.clear();
    let error = bench.run().await.unwrap_err();
    assert!(
        matches!(&error, EngineError::Guest { source, .. } if source.kind == ErrorKind::Connection),
        "{error}"
    );
}

#[tokio::test]
async fn a_text_that_does_not_render_starts_nothing() {
    let mut bench = Bench::new(&["db"]);
    bench
        .experiment
        .playbook
        .trial
        .insert(0, command(&["db"], "unrenderable"));
    let error = bench.run().await.unwrap_err();
    assert!(matches!(error, EngineError::Render { .. }), "{error}");
    assert!(
        bench
            .archive
            .events()
            .iter()
            .all(|event| !matches!(event, Event::TrialStarted { .. }))
    );
}

#[tokio::test]
async fn steps_run_side_by_side_on_all_their_domains() {
    let mut bench = Bench::new(&["one", "two"]);
    let ready = bench.guests["one"]
        .path("ready")
        .to_str()
        .unwrap()
        .to_owned();
    // Each waits for the other: one after the other they would never end.
    let meet = format!(
        "touch {ready}.{{domain}}; until [ -e {ready}.one ] && [ -e {ready}.two ]; do sleep 0.05; done"
    );
    bench.experiment.playbook.trial = vec![
        command(&["one", "two"], &meet),
        load(
            &["one", "two"],
            "echo metric rate 1.5 1/s; echo metric lat $$ ms",
        ),
    ];
    assert_eq!(bench.run().await.unwrap().good, 4);
    let (_, attempt, outcome) = bench.archive.committed().remove(0);
    let rates: Vec<_> = outcome
        .metrics
        .iter()
        .filter(|m| m.unit == "1/s")
        .map(|m| (m.name.as_str(), m.value))
        .collect();
    assert_eq!(rates, [("rate", 3.0), ("one/rate", 1.5), ("two/rate", 1.5)]);
    let times: Vec<_> = outcome
        .metrics
        .iter()
        .filter(|m| m.unit == "ms")
        .map(|m| m.value)
        .collect();
    assert!(
        times[0] >= times[1].max(times[2]),
        "of times the longest counts"
    );
    for domain in ["one", "two"] {
        assert!(attempt.directory.join(domain).join("timing.json").exists());
    }
}

#[tokio::test]
async fn waits_for_ports_and_commands_on_the_guest() {
    for shell in Shell::ALL {
        let mut bench = Bench::new(&["db"]);
        bench.guests.insert("db".to_owned(), FakeGuest::new(shell));
        bench.experiment.playbook.design.repetitions = 1;
        // Bound but not listening until the trial waits for it.
        let port = TcpListener::bind("127.0.0.1:0")
            .unwrap()
            .local_addr()
            .unwrap()
            .port();
        let waited = bench.first().path("waiting");
        let listener = std::thread::spawn(move || {
            while !waited.exists() {
                std::thread::sleep(Duration::from_millis(5));
            }
            std::thread::sleep(Duration::from_millis(200));
            TcpListener::bind(("127.0.0.1", port)).unwrap()
        });
        let wait = |until| step(&["db"], StepAction::Wait { until });
        let never = Step {
            timeout: Seconds(Duration::from_secs(1)),
            ..wait(WaitFor::Command("echo 'not yet'; false".to_owned()))
        };
        bench.experiment.playbook.trial = vec![
            command(&["db"], "touch $GUEST/waiting"),
            wait(WaitFor::Port(port)),
            wait(WaitFor::Command(
                "echo \"it's\" >>$GUEST/log; [ $(wc -l <$GUEST/log) -gt 3 ]".to_owned(),
            )),
            load(&["db"], "echo metric rate {n} 1/s"),
            never,
        ];
        let summary = bench.run().await.unwrap();
        drop(listener.join().unwrap());
        let failure = &summary.failed[0].failure;
        assert_eq!(failure.kind, FailureKind::Timeout, "{shell:?}: {failure:?}");
        assert!(
            failure.message.ends_with("not yet"),
            "{shell:?}: {failure:?}"
        );
        assert!(bench.outcomes()[0].steps[1].seconds >= 0.1, "{shell:?}");
        assert!(bench.log().lines().count() > 3, "{shell:?}");
    }
}
