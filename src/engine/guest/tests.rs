//! The runner on real shells, over connections that break.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use super::*;
use crate::engine::testing::{FakeGuest, FakeRemote, FastClock, Fault, Shell};
use crate::engine::unit::{Keep, Why};

/// A guest of a test, with a place for what it prints.
struct Bench {
    fake: Arc<FakeGuest>,
    guest: Guest,
    boot: String,
    output: tempfile::TempDir,
}

impl Bench {
    fn new(shell: Shell) -> Self {
        let fake = FakeGuest::new(shell);
        let guest = Guest {
            remote: Arc::new(FakeRemote([("db".to_owned(), Arc::clone(&fake))].into())),
            clock: FastClock::new(),
            cancel: Cancel::default(),
            target: Target {
                domain: "db".parse().unwrap(),
                address: [127, 0, 0, 1].into(),
            },
            base: fake.base(),
        };
        let boot = guest.sweep("setup").unwrap().boot;
        Self {
            fake,
            guest,
            boot,
            output: tempfile::tempdir().unwrap(),
        }
    }

    fn unit(&self, place: &str) -> UnitId {
        UnitId::new(
            Keep::UntilTrialEnds,
            "run",
            "session",
            place,
            &self.guest.target.domain,
        )
    }

    fn capture(&self) -> Capture {
        Capture {
            stdout: self.output.path().join("stdout"),
            stderr: self.output.path().join("stderr"),
        }
    }

    fn run(&self, place: &str, command: &str, deadline: u64) -> Result<Report, GuestError> {
        let deadline = Duration::from_secs(deadline);
        self.guest.run(
            &self.unit(place),
            command,
            deadline,
            &self.boot,
            &self.capture(),
        )
    }

    fn stdout(&self) -> Vec<u8> {
        fs::read(self.capture().stdout).unwrap()
    }

    /// Whether the process that wrote its number into a file of the guest is alive.
    fn lives(&self, pid_file: &str) -> bool {
        let pid = fs::read_to_string(self.fake.path(pid_file)).unwrap();
        let state = fs::read_to_string(format!("/proc/{}/stat", pid.trim())).unwrap_or_default();
        // A zombie that nobody has waited for yet is dead.
        !state.is_empty() && !state.contains(") Z ")
    }
}

#[test]
fn keeps_every_byte_and_the_exit_status() {
    for shell in Shell::ALL {
        let bench = Bench::new(shell);
        let report = bench
            .run(
                "1",
                r#"printf 'a\000\377\n\nb'; echo "it's" >&2; exit 3"#,
                30,
            )
            .unwrap();
        assert_eq!(
            (report.why, report.exit, report.left.as_str()),
            (Why::Exit, 3, ""),
            "{shell:?}"
        );
        assert_eq!(bench.stdout(), b"a\0\xff\n\nb", "{shell:?}");
        assert_eq!(
            fs::read(bench.capture().stderr).unwrap(),
            b"it's\n",
            "{shell:?}"
        );

        let signal = bench.run("2", "kill -KILL $$", 30).unwrap();
        assert_eq!((signal.why, signal.exit), (Why::Exit, 137), "{shell:?}");
    }
}

#[test]
fn commands_see_a_utf8_locale_and_no_input() {
    for shell in Shell::ALL {
        let bench = Bench::new(shell);
        bench.run("1", r#"cat; echo "$LC_ALL""#, 30).unwrap();
        assert_eq!(bench.stdout(), b"C.UTF-8\n", "{shell:?}");
    }
}

#[test]
fn a_unit_starts_once_however_the_connection_breaks() {
    for shell in Shell::ALL {
        for fault in [
            Fault::DropBefore,
            Fault::DropAfter,
            Fault::DropDuring,
            Fault::DropInput,
        ] {
            let bench = Bench::new(shell);
            for _ in 0..2 {
                bench.fake.fault("'run'", fault);
            }
            let report = bench
                .run(
                    "1",
                    "echo started >>$GUEST/starts; sleep 0.5; printf done",
                    30,
                )
                .unwrap();
            assert_eq!(report.exit, 0, "{shell:?} {fault:?}");
            assert_eq!(bench.stdout(), b"done", "{shell:?} {fault:?}");
            let starts = fs::read_to_string(bench.fake.path("starts")).unwrap();
            assert_eq!(starts, "started\n", "{shell:?} {fault:?}");
            assert_eq!(bench.fake.calls("'run'"), 3, "{shell:?} {fault:?}");
        }
    }
}

#[test]
fn the_runner_is_put_on_a_guest_once() {
    let bench = Bench::new(Shell::Dash);
    bench.run("1", "true", 30).unwrap();
    bench.run("2", "true", 30).unwrap();
    assert_eq!(bench.fake.calls("mkdir -p"), 1);
}

#[test]
fn the_deadline_ends_the_whole_tree() {
    for shell in Shell::ALL {
        let bench = Bench::new(shell);
        let forked =
            "(setsid sh -c 'echo $$ >$GUEST/forked; exec sleep 300' &); echo begun; sleep 300";
        let report = bench.run("1", forked, 1).unwrap();
        assert_eq!(
            (report.why, report.left.as_str()),
            (Why::Timeout, ""),
            "{shell:?}"
        );
        assert!(report.seconds >= 1.0, "{shell:?}: {}", report.seconds);
        assert_eq!(bench.stdout(), b"begun\n", "{shell:?}");
        assert!(!bench.lives("forked"), "{shell:?}");
    }
}

#[test]
fn the_deadline_ends_what_ignores_term() {
    let bench = Bench::new(Shell::Dash);
    let report = bench
        .run(
            "1",
            "trap '' TERM; echo $$ >$GUEST/deaf; sleep 300 & sleep 301; sleep 302",
            1,
        )
        .unwrap();
    assert_eq!((report.why, report.exit), (Why::Timeout, 137));
    assert!(!bench.lives("deaf"));
}

#[test]
fn the_deadline_holds_without_labrig() {
    for shell in Shell::ALL {
        let bench = Bench::new(shell);
        let directory = bench.guest.unit_directory(&bench.unit("1"));
        let command = "echo $$ >$GUEST/alone; sleep 300";
        let length = command.len().to_string();
        bench.fake.fault("'run'", Fault::DropDuring);
        let arguments = ["run", &directory, "1", "30", &length, &bench.boot];
        let error = bench
            .guest
            .call_once(&arguments, command.as_bytes(), ANSWER)
            .unwrap_err();
        assert_eq!(error.kind, ErrorKind::Connection);
        assert!(bench.lives("alone"), "{shell:?}");
        // Nobody asks for the unit any more; its report appears all the same.
        let begun = Instant::now();
        while !Path::new(&directory).join("done").exists() {
            assert!(
                begun.elapsed() < Duration::from_secs(30),
                "{shell:?}: the deadline did not hold"
            );
            std::thread::sleep(Duration::from_millis(20));
        }
        assert!(!bench.lives("alone"), "{shell:?}");
    }
}

#[test]
fn a_stopped_unit_ends_or_never_starts() {
    for shell in Shell::ALL {
        let bench = Bench::new(shell);
        std::thread::scope(|scope| {
            let waiting = scope.spawn(|| {
                bench
                    .run("1", "echo $$ >$GUEST/begun; sleep 300", 300)
                    .unwrap()
            });
            while !bench.fake.path("begun").exists() {
                std::thread::sleep(Duration::from_millis(5));
            }
            bench.guest.stop(&bench.unit("1")).unwrap();
            assert_eq!(waiting.join().unwrap().why, Why::Stopped, "{shell:?}");
        });
        assert!(!bench.lives("begun"), "{shell:?}");

        bench.guest.stop(&bench.unit("2")).unwrap();
        assert_eq!(
            bench.run("2", "touch $GUEST/never", 30).unwrap().why,
            Why::Stopped,
            "{shell:?}"
        );
        assert!(!bench.fake.path("never").exists(), "{shell:?}");
    }
}

#[test]
fn a_sweep_ends_what_trials_left_and_keeps_what_stays() {
    for shell in Shell::ALL {
        let bench = Bench::new(shell);
        bench.run("1", "sh -c 'echo $$ >$GUEST/left; exec sleep 300' & until [ -s $GUEST/left ]; do :; done", 30).unwrap();
        let kept = UnitId::new(
            Keep::ForGood,
            "run",
            "session",
            "setup",
            &bench.guest.target.domain,
        );
        let server = "sh -c 'echo $$ >$GUEST/server; exec sleep 20' & until [ -s $GUEST/server ]; do :; done";
        bench
            .guest
            .run(
                &kept,
                server,
                Duration::from_secs(30),
                &bench.boot,
                &bench.capture(),
            )
            .unwrap();
        bench.guest.mark("setup").unwrap();

        let sweep = bench.guest.sweep("setup").unwrap();
        assert!(sweep.quiet && sweep.marker, "{shell:?}");
        assert_eq!(sweep.ended.len(), 1, "{shell:?}: {:?}", sweep.ended);
        assert!(
            sweep.ended[0].ends_with(" sleep"),
            "{shell:?}: {:?}",
            sweep.ended
        );
        assert!(!bench.lives("left") && bench.lives("server"), "{shell:?}");
        assert!(
            !Path::new(&bench.guest.units_directory()).exists(),
            "{shell:?}"
        );
        assert_eq!(
            bench.guest.sweep("other").unwrap().ended,
            Vec::<String>::new(),
            "{shell:?}"
        );
        assert!(!bench.guest.sweep("other").unwrap().marker, "{shell:?}");
        bench.guest.stop(&kept).unwrap();
    }
}

#[test]
fn a_sweep_ends_units_of_a_labrig_that_was_killed() {
    for shell in Shell::ALL {
        let bench = Bench::new(shell);
        let directory = bench.guest.unit_directory(&bench.unit("1"));
        let command = "echo $$ >$GUEST/load; sleep 300";
        let length = command.len().to_string();
        bench.fake.fault("'run'", Fault::DropDuring);
        let arguments = ["run", &directory, "300", "300", &length, &bench.boot];
        bench
            .guest
            .call_once(&arguments, command.as_bytes(), ANSWER)
            .unwrap_err();
        assert!(bench.lives("load"), "{shell:?}");

        let sweep = bench.guest.sweep("setup").unwrap();
        assert_eq!(sweep.unfinished, [bench.unit("1").to_string()], "{shell:?}");
        assert!(sweep.quiet && !bench.lives("load"), "{shell:?}");
    }
}

#[test]
fn nothing_starts_in_another_boot() {
    for shell in Shell::ALL {
        let bench = Bench {
            boot: "11111111-2222-3333-4444-555555555555".to_owned(),
            ..Bench::new(shell)
        };
        let error = bench.run("1", "touch $GUEST/never", 30).unwrap_err();
        assert!(matches!(error, GuestError::Rebooted), "{shell:?}: {error}");
        assert!(!bench.fake.path("never").exists(), "{shell:?}");
    }
}

#[test]
fn a_killed_supervisor_is_noticed() {
    for shell in Shell::ALL {
        let bench = Bench::new(shell);
        // The command's parent is the supervisor's other half, whose parent is the supervisor.
        let command =
            "read -r _ _ _ supervisor _ </proc/$PPID/stat; kill -KILL $supervisor; exec sleep 300";
        let error = bench.run("1", command, 300).unwrap_err();
        assert!(matches!(error, GuestError::Lost), "{shell:?}: {error}");
        assert!(bench.guest.sweep("setup").unwrap().quiet, "{shell:?}");
    }
}

#[test]
fn much_output_is_fetched_whole_over_a_breaking_connection() {
    for shell in Shell::ALL {
        let bench = Bench::new(shell);
        bench.fake.fault("head -c", Fault::DropDuring);
        let report = bench
            .run(
                "1",
                "head -c 3000000 /dev/urandom | tee $GUEST/copy; echo few >&2",
                30,
            )
            .unwrap();
        assert_eq!((report.stdout, report.stderr), (3_000_000, 4), "{shell:?}");
        assert!(
            bench.stdout() == fs::read(bench.fake.path("copy")).unwrap(),
            "{shell:?}"
        );
        assert_eq!(
            fs::read(bench.capture().stderr).unwrap(),
            b"few\n",
            "{shell:?}"
        );
    }
}

#[test]
fn files_arrive_whole_with_their_mode() {
    for shell in Shell::ALL {
        let bench = Bench::new(shell);
        let content: Vec<u8> = (0..PART * 2 + 5).map(|n| (n % 251) as u8).collect();
        let place = bench.fake.path("etc/new dir/it's.conf");
        let to = place.to_str().unwrap();
        for (length, mode, fault) in [
            (0, 0o600, None),
            (5, 0o644, Some(Fault::DropInput)),
            (PART, 0o755, Some(Fault::DropAfter)),
            (content.len(), 0o640, Some(Fault::DropBefore)),
        ] {
            if let Some(fault) = fault {
                bench.fake.fault("'put'", fault);
            }
            let bytes = &content[..length];
            let put = bench.guest.put(to, mode, &mut &bytes[..], length as u64);
            // A torn part is refused by the runner; the caller puts the file again from its start.
            if fault == Some(Fault::DropInput) && put.is_err() {
                bench
                    .guest
                    .put(to, mode, &mut &bytes[..], length as u64)
                    .unwrap();
            }
            assert!(fs::read(&place).unwrap() == bytes, "{shell:?} {length}");
            assert_eq!(
                fs::metadata(&place).unwrap().permissions().mode() & 0o7777,
                mode,
                "{shell:?} {length}"
            );
            let beside: Vec<_> = fs::read_dir(place.parent().unwrap()).unwrap().collect();
            assert_eq!(
                beside.len(),
                1,
                "{shell:?} {length}: nothing half-made is left"
            );
        }
    }
}

#[test]
fn gives_up_when_the_guest_stays_away() {
    let bench = Bench::new(Shell::Dash);
    for _ in 0..100 {
        bench.fake.fault("'run'", Fault::DropBefore);
    }
    let error = bench.run("1", "true", 30).unwrap_err();
    assert!(
        matches!(&error, GuestError::Port(cause) if cause.kind == ErrorKind::Connection),
        "{error}"
    );
    let tries = bench.fake.calls("'run'");
    assert!((30..=62).contains(&tries), "{tries} tries in a minute");
}
