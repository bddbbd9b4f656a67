//! A fuzzer for the loader: good files, damaged at random, never make it panic or hang, and what is
//! taken is taken alike a second time. It is seeded and knows nothing of coverage, so that it runs
//! wherever the tests do.
//!
//! `LABRIG_FUZZ_SECONDS` says how long; `LABRIG_FUZZ_SEED` begins elsewhere than usual.

#![allow(clippy::unwrap_used, reason = "a test may fail")]

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use labrig::cli::notes;
use labrig::input::{self, Options};
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64;

/// How long it goes on in the suite.
const SECONDS: u64 = 2;

/// Longest time for one file: what is larger has found something that grows too fast.
const PATIENCE: Duration = Duration::from_secs(5);

/// What is put into files: words of the languages, and what YAML and templates trip over.
const WORDS: &[&str] = &[
    "{{ vars.a }}",
    "{{ index }}",
    "{{",
    "}}",
    "{% if vars.a %}",
    "{% for x in [1] %}",
    "~",
    "null",
    "on",
    "0755",
    "1:20",
    "0x10",
    "1e9",
    ".nan",
    "-1",
    "99999999999999999999",
    "&a",
    "*a",
    "<<: ",
    "!!str ",
    "---\n",
    "...\n",
    "\t",
    "\n",
    "\r\n",
    "\"",
    "'",
    "#",
    ": ",
    "- ",
    "[",
    "]",
    "{",
    "}",
    ",",
    "|\n",
    ">-\n",
    "? ",
    "ü",
    "\u{202e}",
    "\u{0}",
    "\u{feff}",
    "include: [t.yaml]\n",
    "include: [other.yaml]\n",
    "count: ",
    "groups: [g]\n",
    "defaults: {image: micro}\n",
    "groups: {g: {}}\n",
    "vars: {a: 1}\n",
    "domains:",
    "  d:\n",
    "512MiB",
    "1/4",
    "25%",
    "10.10.0.0/24",
    "fd00::/64",
    "auto",
    "true",
    "{env: HOME}",
];

/// Good files: all that are shipped and that tests load.
fn corpus() -> Vec<Vec<u8>> {
    let directories = [
        "topologies",
        "playbooks",
        "tests/input/good",
        "tests/input/wrong",
        "benches/labs",
    ];
    let mut files: Vec<PathBuf> = directories
        .iter()
        .flat_map(|directory| fs::read_dir(directory).unwrap())
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|e| e == "yaml"))
        .collect();
    files.sort();
    assert!(files.len() >= 6, "{files:?}");
    files.iter().map(|file| fs::read(file).unwrap()).collect()
}

/// Some damage: parts taken out, doubled, brought in from another file, or put in.
fn damage(random: &mut Pcg64, corpus: &[Vec<u8>]) -> Vec<u8> {
    let mut text = corpus[random.random_range(0..corpus.len())].clone();
    for _ in 0..random.random_range(1..=6) {
        let start = random.random_range(0..=text.len());
        let end = (start + random.random_range(0..40)).min(text.len());
        let part = match random.random_range(0..6) {
            0 => Vec::new(),
            1 => vec![random.random()],
            2 => [&text[start..end], &text[start..end]].concat(),
            3 => {
                let other = &corpus[random.random_range(0..corpus.len())];
                let from = random.random_range(0..other.len());
                other[from..(from + random.random_range(0..80)).min(other.len())].to_vec()
            }
            _ => WORDS[random.random_range(0..WORDS.len())]
                .as_bytes()
                .to_vec(),
        };
        // Half of the time nothing is lost.
        let end = if random.random() { end } else { start };
        text.splice(start..end, part);
    }
    text
}

/// What comes of a file: its topology, or the notes about it.
fn load(file: &Path) -> String {
    let loaded = match input::is_playbook(file) {
        true => input::load_playbook(file, &Options::default())
            .map(|loaded| serde_json::to_string(&loaded.playbook.value).unwrap()),
        false => input::load_topology(file, &Options::default())
            .map(|loaded| serde_json::to_string(&loaded.value).unwrap()),
    };
    loaded.unwrap_or_else(|found| {
        assert!(found.has_errors());
        notes::draw(&found, false)
    })
}

#[test]
fn no_damage_makes_the_loader_panic_or_hang_or_waver() {
    let number = |name: &str| {
        std::env::var(name)
            .ok()
            .map(|text| text.parse::<u64>().unwrap())
    };
    let seconds = Duration::from_secs(number("LABRIG_FUZZ_SECONDS").unwrap_or(SECONDS));
    let seed = number("LABRIG_FUZZ_SEED").unwrap_or(1);
    let corpus = corpus();
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("t.yaml");
    fs::create_dir(directory.path().join("templates")).unwrap();
    fs::write(directory.path().join("templates/a.tera"), "{{ vars.a }}").unwrap();
    for (name, content) in [("other.yaml", &corpus[0]), ("topology.yaml", &corpus[0])] {
        fs::write(directory.path().join(name), content).unwrap();
    }
    let (began, mut round) = (Instant::now(), 0);
    while began.elapsed() < seconds {
        // Each round has a seed of its own, so that one can be repeated alone.
        let mut random = Pcg64::seed_from_u64(seed.wrapping_add(round));
        let text = damage(&mut random, &corpus);
        fs::write(&file, &text).unwrap();
        let start = Instant::now();
        let outcome = std::panic::catch_unwind(|| (load(&file), load(&file)));
        let shown = || {
            format!(
                "LABRIG_FUZZ_SEED={}:\n{}",
                seed.wrapping_add(round),
                String::from_utf8_lossy(&text)
            )
        };
        let Ok((first, second)) = outcome else {
            panic!("it panics with {}", shown());
        };
        assert!(first == second, "it wavers with {}", shown());
        assert!(
            start.elapsed() < PATIENCE,
            "it takes {:?} with {}",
            start.elapsed(),
            shown()
        );
        round += 1;
    }
    println!("{round} files in {seconds:?}, from seed {seed}");
    assert!(round > 10);
}
