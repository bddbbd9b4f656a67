//! A disk that fills up under a run.

use std::fs;
use std::path::Path;

use crate::archive::testing::{
    commit, create, good, inputs, playbook, stamp, writer as open_writer,
};
use crate::archive::{Journal, Manifest, RunDir, list};
use crate::model::{Event, Level};
use crate::ports::{Attempts, PortError};

const LEVELS: [Level; 2] = [Level::Int(1), Level::Int(4)];

/// Set for the copy of this test that runs on a small file system.
const SMALL_DISK: &str = "LABRIG_TEST_SMALL_DISK";

#[test]
fn a_full_disk_leaves_a_run_that_goes_on() {
    if let Some(disk) = std::env::var_os(SMALL_DISK) {
        return fill_a_disk_under_a_run(Path::new(&disk));
    }
    // A file system of 1 MiB, in namespaces that are gone with the process.
    let mount_point = tempfile::tempdir().unwrap();
    let script = r#"mount -t tmpfs -o size=1m small "$1" && exec "$2" --exact "$3" --nocapture"#;
    let output = std::process::Command::new("unshare")
        .args([
            "--user",
            "--map-root-user",
            "--mount",
            "sh",
            "-c",
            script,
            "sh",
        ])
        .arg(mount_point.path())
        .arg(std::env::current_exe().unwrap())
        .arg("archive::tests::disk_full::a_full_disk_leaves_a_run_that_goes_on")
        .env(SMALL_DISK, mount_point.path())
        .output()
        .unwrap();
    let [stdout, stderr] =
        [output.stdout, output.stderr].map(|text| String::from_utf8_lossy(&text).into_owned());
    // A name that matches no test would succeed as well.
    assert!(
        output.status.success() && stdout.contains("1 passed"),
        "{stdout}{stderr}"
    );
}

fn fill_a_disk_under_a_run(disk: &Path) {
    let run = create(disk, &playbook(&LEVELS, 1));
    let writer = open_writer(&run);
    let [first, second] = run.trials() else {
        panic!("{:?}", run.trials())
    };
    commit(&writer, first, |attempt| good(attempt, 30.0, 60.0));
    let attempt = writer.begin(second).unwrap();
    let filler = disk.join("filler");
    fs::write(&filler, vec![0; 2 << 20]).unwrap_err();

    let advice = |error: PortError| error.hint.unwrap_or_default();
    let step = Event::StepStarted {
        trial: Some(2),
        step: "load".to_owned(),
    };
    let error = (0..1000)
        .find_map(|_| writer.record(&step).err())
        .expect("the journal fits no more");
    assert!(advice(error).contains("free some space"));
    let error = writer
        .commit(second, attempt, &good(1, 31.0, 61.0))
        .unwrap_err();
    assert!(advice(error).contains("free some space"));
    assert!(!writer.is_done(second));
    let error = RunDir::create(
        disk,
        &Manifest::new(stamp()),
        &inputs(),
        run.trials(),
        run.playbook(),
        run.topology(),
        run.lock(),
    )
    .unwrap_err();
    assert!(
        error
            .hint()
            .is_some_and(|hint| hint.contains("free some space")),
        "{error:?}"
    );
    assert_eq!(
        list(disk).unwrap().len(),
        1,
        "a run that could not be created is not there"
    );

    fs::remove_file(&filler).unwrap();
    drop(writer);
    let run = RunDir::open(run.path()).unwrap();
    let writer = open_writer(&run);
    assert!(writer.is_done(first));
    commit(&writer, second, |attempt| good(attempt, 31.0, 61.0));
    assert_eq!(run.results().unwrap().done(), 2);
    Journal::read(&run.path().join("journal/main.ndjson")).unwrap();
}
