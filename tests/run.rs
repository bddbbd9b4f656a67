//! Experiments on real guests, through the binary: run, kill, resume, repeat.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test may fail")]

mod common;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use common::{Lab, Running, until};
use nix::sys::signal::Signal;

/// One guest.
const TOPOLOGY: &str = "\
version: 1
name: bench
images:
  micro: {build: {micro: {}}}
vswitches:
  data: {subnet: 10.10.0.0/24}
domains:
  a:
    image: micro
    split: {cpus: 1, memory: 192MiB}
    vnets: [{vswitch: data, ip: 10.10.0.11}]
";

/// Two sizes, each counted three times: the fewest by which equal values can show that they are.
const COUNT: &str = "\
version: 1
name: count
topology: topology.yaml
roles: {load: [a]}
factors: {size: [1, 2]}
design: {repetitions: 3, order: blocks, seed: 3}
setup:
  - {on: load, copy: {from: count.sh, to: /root/count.sh, mode: \"0755\"}}
trial:
  - {on: load, template: {template: size.tera, to: /root/size, vars: {lines: \"{{ size }}000\"}}}
  - {on: load, wait: {port: 22}, timeout: 30s}
  - {on: load, wait: {command: test -x /root/count.sh}, timeout: 30s}
  - {on: load, load: {run: \"/root/count.sh {{ size }}\", adapter: lines, expect: 1s}, timeout: 1m}
metrics: {lines: {primary: true, unit: count, better: higher}}
reproduce: {within: 10%}
";

const SIZE: &str = "{{ vars.lines }}\n";

const COUNT_SH: &str = "\
#!/bin/sh
echo \"size $1\"
echo \"metric lines $(seq \"$(cat /root/size)\" | wc -l) count\"
end=$(($(date +%s) + 1))
rounds=0
while [ \"$(date +%s)\" -lt \"$end\" ]; do rounds=$((rounds + 1)); done
echo \"metric rounds $rounds count\"
";

/// A playbook of one load with these levels of the factor `k`.
fn playbook(levels: &str, load: &str) -> String {
    format!(
        "\
version: 1
name: loads
topology: topology.yaml
roles: {{load: [a]}}
factors: {{k: {levels}}}
design: {{repetitions: 1, order: blocks, seed: 1}}
trial:
  - on: load
    name: work
    load:
      adapter: lines
      expect: 1s
      run: |
        {}
    timeout: 5m
metrics: {{n: {{primary: true, unit: count, better: higher}}}}
",
        load.trim().replace('\n', "\n        ")
    )
}

/// The only run of a playbook below `runs/`.
#[track_caller]
fn only_run(lab: &Lab, runs: &str, playbook: &str) -> PathBuf {
    let entries = fs::read_dir(lab.path(runs).join(playbook)).unwrap();
    let entries: Vec<_> = entries.map(|entry| entry.unwrap().path()).collect();
    assert_eq!(entries.len(), 1, "{entries:?}");
    entries[0].clone()
}

/// Names in a directory, sorted.
#[track_caller]
fn names(directory: &Path) -> Vec<String> {
    let entries = fs::read_dir(directory).unwrap();
    let mut names: Vec<_> = entries
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

#[test]
fn an_experiment_is_archived_and_repeated_from_its_archive() {
    let own_image = "{kernel: image/vmlinuz, initrd: image/initrd}";
    let lab = Lab::new("bench", TOPOLOGY);
    let image = lab.micro_image();
    let (kernel, initrd) = (image.kernel.unwrap(), image.initrd.unwrap());
    lab.write("image/vmlinuz", fs::read(&kernel).unwrap());
    lab.write("image/initrd", fs::read(&initrd).unwrap());
    lab.write(
        "topology.yaml",
        TOPOLOGY.replace("{build: {micro: {}}}", own_image),
    );
    lab.write("count.yaml", COUNT);
    lab.write("count.sh", COUNT_SH);
    lab.write("templates/size.tera", SIZE);

    // It runs, and says what came of it.
    let ran = lab.labrig(["run", "count.yaml"]).exits(0);
    let run = only_run(&lab, "runs", "count");
    let ran = ran.prints(&format!("archive: {}", run.display()));
    for (size, lines) in [("1", "1000"), ("2", "2000")] {
        let is_row = |line: &str| {
            line.split_whitespace().next() == Some(size)
                && line.contains(lines)
                && line.contains("3/3")
        };
        assert!(ran.stdout.lines().any(is_row), "{}", ran.stdout);
    }

    // All that went in and came out is in the archive.
    for input in [
        "count.yaml",
        "topology.yaml",
        "count.sh",
        "templates/size.tera",
    ] {
        assert_eq!(
            fs::read(run.join("inputs").join(input)).unwrap(),
            fs::read(lab.path(input)).unwrap()
        );
    }
    let lock: serde_json::Value =
        serde_json::from_slice(&fs::read(run.join("lock.json")).unwrap()).unwrap();
    assert_eq!(lock["root"].as_str().unwrap().len(), 64);
    assert!(lock["leaves"]["image.micro.content"].is_string());
    let trials = names(&run.join("trials"));
    assert_eq!(trials.len(), 6);
    for trial in &trials {
        let attempt = run.join("trials").join(trial).join("attempt-1");
        let printed = fs::read_to_string(attempt.join("stdout")).unwrap();
        let size = trial.rsplit_once("size=").unwrap().1;
        assert!(printed.starts_with(&format!("size {size}\n")), "{printed}");
        assert!(printed.contains("metric rounds "), "{printed}");
        assert_eq!(fs::read_to_string(attempt.join("exit")).unwrap(), "0\n");
        assert_eq!(
            fs::read_to_string(attempt.join("rendered/a/root/size")).unwrap(),
            format!("{size}000\n")
        );
    }
    lab.labrig(["runs"]).exits(0).prints("count");
    lab.labrig(["show", run.to_str().unwrap()])
        .exits(0)
        .prints("2000");

    // A copy is enough to repeat it when everything else is gone, the image's files too.
    let copy = lab.path("elsewhere/copy");
    fs::create_dir(lab.path("elsewhere")).unwrap();
    let copied = Command::new("cp").arg("-r").arg(&run).arg(&copy).status();
    assert!(copied.unwrap().success());
    for gone in ["runs", "templates", "image"] {
        fs::remove_dir_all(lab.path(gone)).unwrap();
    }
    for gone in ["count.yaml", "count.sh", "topology.yaml"] {
        fs::remove_file(lab.path(gone)).unwrap();
    }
    let again = lab.labrig(["rerun", "elsewhere/copy"]).exits(0);
    again
        .prints("reproduced")
        .says("nothing to do")
        .does_not_say("this is not all as it was");
    let second = only_run(&lab, "runs", "count");
    let manifest = fs::read_to_string(second.join("run.json")).unwrap();
    assert!(
        manifest.contains(lock["root"].as_str().unwrap()),
        "{manifest}"
    );

    // What is not as it was is listed: here somebody brought an image with another byte in it.
    let mut other = fs::read(&initrd).unwrap();
    other.push(0);
    fs::create_dir(copy.join("inputs/image")).unwrap();
    fs::write(
        copy.join("inputs/image/vmlinuz"),
        fs::read(&kernel).unwrap(),
    )
    .unwrap();
    fs::write(copy.join("inputs/image/initrd"), other).unwrap();
    lab.labrig(["rerun", "elsewhere/copy", "--runs", "third"])
        .exits(0)
        .says("this is not all as it was")
        .says("image.micro.content");

    // An archive whose inputs were changed is none.
    fs::write(copy.join("inputs/count.sh"), "true\n").unwrap();
    lab.labrig(["rerun", "elsewhere/copy"])
        .exits(3)
        .says("count.sh")
        .says("not what the lock says");
}

/// Files below a directory that hold a text.
fn holding(directory: &Path, text: &str) -> Vec<PathBuf> {
    let entries = fs::read_dir(directory).unwrap();
    let entries = entries.map(|entry| entry.unwrap().path());
    let found = entries.flat_map(|path| match fs::symlink_metadata(&path).unwrap() {
        facts if facts.is_dir() => holding(&path, text),
        facts if facts.is_file() => {
            let content = fs::read(&path).unwrap();
            let mut windows = content.windows(text.len());
            let holds = windows.any(|window| window == text.as_bytes());
            holds.then_some(path).into_iter().collect()
        }
        _ => Vec::new(),
    });
    found.collect()
}

#[test]
fn an_archive_of_included_files_is_repeated_alone_and_holds_no_secret() {
    const SECRET: &str = "hunter2-correct-horse";
    let common = TOPOLOGY.replace(
        "name: bench\n",
        "vars: {password: {env: LAB_PASSWORD}, size: 1}\n",
    );
    let common = common + "    files: [{template: secret.tera, to: /etc/secret}]\n";
    let mut lab = Lab::new("bench", "include: [../parts/common.yaml]\nname: bench\n");
    lab.set("LAB_PASSWORD", SECRET);
    fs::remove_file(lab.path("topology.yaml")).unwrap();
    lab.write(
        "labs/topology.yaml",
        "include: [../parts/common.yaml]\nname: bench\n",
    );
    lab.write("parts/common.yaml", common);
    lab.write("templates/secret.tera", "password = {{ vars.password }}\n");
    let load =
        "test $(cat /etc/secret | wc -c) -gt 12 && echo metric n {{ vars.size }}{{ k }} count";
    let playbook = playbook("[1]", load).replace("topology.yaml", "../labs/topology.yaml");
    lab.write(
        "books/loads.yaml",
        playbook.replace("repetitions: 1", "repetitions: 3"),
    );

    let check = ["check", "books/loads.yaml", "--set", "size=7"];
    lab.labrig(check).exits(0);
    let plan = lab
        .labrig(["plan", "labs/topology.yaml", "--json", "--exit-code"])
        .exits(1);
    assert!(!plan.stdout.contains(SECRET));
    let ran = lab
        .labrig(["run", "books/loads.yaml", "--set", "size=7", "--json"])
        .exits(0);
    assert!(!format!("{}{}", ran.stdout, ran.stderr).contains(SECRET));
    assert_eq!(
        lab.exec("a", "cat /etc/secret"),
        format!("password = {SECRET}")
    );
    let seeds = holding(&lab.state().join("labs"), SECRET);
    let is_seed = |file: &PathBuf| file.to_str().unwrap().contains("/a-seed-");
    assert!(seeds.len() == 1 && is_seed(&seeds[0]), "{seeds:?}");
    let run = only_run(&lab, "runs", "loads");
    assert_eq!(holding(&run, SECRET), Vec::<PathBuf>::new());
    let stdout = fs::read_to_string(run.join("trials/0001-k=1/attempt-1/stdout")).unwrap();
    assert_eq!(stdout, "metric n 71 count\n");

    // All its files keep their places to each other, and its variables what they were.
    for gone in ["labs", "parts", "books", "templates"] {
        fs::remove_dir_all(lab.path(gone)).unwrap();
    }
    for input in [
        "labs/topology.yaml",
        "parts/common.yaml",
        "books/loads.yaml",
        "templates/secret.tera",
    ] {
        assert!(run.join("inputs").join(input).is_file(), "{input}");
    }
    lab.labrig(["rerun", run.to_str().unwrap(), "--runs", "again"])
        .exits(0)
        .prints("reproduced")
        .says("nothing to do")
        .does_not_say("this is not all as it was");
    assert_eq!(holding(&lab.path("again"), SECRET), Vec::<PathBuf>::new());
}

#[test]
fn a_failing_trial_is_kept_and_shown_and_tried_again() {
    let lab = Lab::new("bench", TOPOLOGY);
    let load = "echo started; test {{ k }} != 2 -o -e /root/mended && echo metric n {{ k }} count";
    lab.write("loads.yaml", playbook("[1, 2, 3]", load));
    lab.labrig(["run", "loads.yaml"])
        .exits(1)
        .says("run over: 2 good, 1 failed")
        .prints("1 failed attempt")
        .prints("step work");
    let run = only_run(&lab, "runs", "loads");
    let trials = names(&run.join("trials"));
    let failed = trials.iter().find(|name| name.ends_with("k=2")).unwrap();
    let attempt = run.join("trials").join(failed).join("attempt-1");
    assert_eq!(
        fs::read_to_string(attempt.join("stdout")).unwrap(),
        "started\n"
    );
    assert_eq!(fs::read_to_string(attempt.join("exit")).unwrap(), "1\n");

    lab.exec("a", "touch /root/mended");
    lab.labrig(["run", run.to_str().unwrap()])
        .exits(0)
        .says("3 trials, 2 done before");
    assert!(attempt.exists(), "nothing is overwritten");
    assert!(attempt.with_file_name("attempt-2").exists());
}

/// Counts its starts, and notes when another one is at work.
const WORK: &str = "\
echo {{ k }} >>/root/starts
exec 9>/root/lock
flock -n 9 || echo {{ k }} >>/root/overlaps
sleep 3
echo metric n {{ k }} count";

/// Runs [`WORK`] until its second load works; gives the run at work, and its directory.
fn run_until_second_load(lab: &Lab) -> (Running, PathBuf) {
    lab.write("loads.yaml", playbook("[1, 2, 3]", WORK));
    let running = lab.start(["run", "loads.yaml"]);
    running.until_it_says("trial 1 k=");
    until("the second load starts", || {
        lab.exec("a", "wc -l </root/starts") == "2"
    });
    (running, only_run(lab, "runs", "loads"))
}

/// Resumes a run and checks that all was done, and nothing beside something else.
#[track_caller]
fn assert_resumes(lab: &Lab, run: &Path) {
    lab.labrig(["run", run.to_str().unwrap()])
        .exits(0)
        .says("3 trials, 1 done before")
        .says("run over: 3 good, 0 failed");
    // Three trials, and one attempt that was cut short.
    assert_eq!(lab.exec("a", "wc -l </root/starts"), "4");
    lab.exec("a", "test ! -e /root/overlaps");
    let trials = run.join("trials");
    let attempts: Vec<_> = names(&trials)
        .iter()
        .map(|trial| {
            let mut attempts = names(&trials.join(trial));
            attempts.retain(|name| name.starts_with("attempt-"));
            attempts
        })
        .collect();
    assert_eq!(
        attempts,
        [
            vec!["attempt-1"],
            vec!["attempt-1.abandoned", "attempt-2"],
            vec!["attempt-1"]
        ]
    );
}

#[test]
fn a_killed_run_resumes() {
    let lab = Lab::new("bench", TOPOLOGY);
    let (running, run) = run_until_second_load(&lab);
    running.signal(Signal::SIGKILL);
    running.end().dies_of(Signal::SIGKILL);
    let first = run
        .join("trials")
        .join(&names(&run.join("trials"))[0])
        .join("attempt-1/outcome.json");
    let committed = fs::read(&first).unwrap();
    assert_resumes(&lab, &run);
    assert_eq!(fs::read(&first).unwrap(), committed);

    // There is nothing more to do.
    lab.labrig(["resume", run.to_str().unwrap()])
        .exits(0)
        .says("3 trials, 3 done before");
    assert_eq!(lab.exec("a", "wc -l </root/starts"), "4");
}

#[test]
fn ctrl_c_stops_a_run_and_its_load_and_it_resumes() {
    let lab = Lab::new("bench", TOPOLOGY);
    let (running, run) = run_until_second_load(&lab);
    running.signal(Signal::SIGINT);
    let name = run.file_name().unwrap().to_str().unwrap();
    running.end().exits(5).says(&format!("{name}` resumes"));
    lab.exec("a", "! pgrep -f 'sleep 3$'");
    assert_resumes(&lab, &run);
}

#[test]
fn a_second_ctrl_c_leaves_at_once_and_says_what_is_left() {
    let lab = Lab::new("bench", TOPOLOGY);
    // The first one ends the load, which takes the seconds between TERM and KILL.
    let load = "trap '' TERM; touch /root/deaf; while :; do sleep 1; done";
    lab.write("loads.yaml", playbook("[1]", load));
    let running = lab.start(["run", "loads.yaml"]);
    until("the load is deaf to TERM", || {
        lab.labrig(["exec", "bench", "a", "--", "test -e /root/deaf"])
            .is_good()
    });
    running.signal(Signal::SIGINT).until_it_says("stopping");
    running.signal(Signal::SIGINT);
    running
        .end()
        .exits(5)
        .says("left at once; `labrig run` on the run's directory resumes");
    assert_eq!(lab.status("a")["state"], "running");
}

#[test]
fn memory_does_not_grow_with_what_a_load_prints() {
    const PRINTED: u64 = 32 << 20;
    let lab = Lab::new("bench", &TOPOLOGY.replace("192MiB", "256MiB"));
    let load = format!("yes 0123456789abcde | head -c {PRINTED}\necho metric n {{{{ k }}}} count");
    lab.write("loads.yaml", playbook("[1]", &load));
    let running = lab.start(["run", "loads.yaml"]);
    let mut peak = 0;
    while let Some(now) = anonymous_kib(running.pid()) {
        peak = peak.max(now);
        std::thread::sleep(std::time::Duration::from_millis(50));
    }
    running.end().exits(0);
    let run = only_run(&lab, "runs", "loads");
    let stdout = run.join("trials/0001-k=1/attempt-1/stdout");
    assert!(fs::metadata(stdout).unwrap().len() > PRINTED);
    assert!(peak > 0 && peak < PRINTED / 1024, "{peak} KiB");
}

/// Memory of a process that is its own, rather than pages of its program, whose size in a debug build
/// says nothing; none when the process is over.
fn anonymous_kib(pid: i32) -> Option<u64> {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let line = status.lines().find(|l| l.starts_with("RssAnon:"))?;
    line.split_whitespace().nth(1)?.parse().ok()
}
