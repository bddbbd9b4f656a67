//! The JSON Schemas and the reference in the documentation: made of the tables of keys, and true.

#![allow(clippy::unwrap_used, reason = "a test may fail")]

use std::fs;
use std::path::{Path, PathBuf};

use labrig::input::Language;
use serde_json::Value;

/// Begins the part of a documentation page that is made of the tables of keys.
const MARK: &str =
    "<!-- All below is made by `make docs` of the tables that labrig reads files with. -->\n";

/// Files of the language that are shipped or serve as good examples.
fn files(language: Language) -> Vec<PathBuf> {
    let (directories, also) = match language {
        Language::Topology => (
            ["topologies", "topologies/parts"],
            [
                "tests/input/good/topology.yaml",
                "benches/labs/four.yaml",
                "benches/labs/chatty.yaml",
            ],
        ),
        Language::Playbook => (
            ["playbooks", "playbooks/parts"],
            [
                "tests/input/good/playbook.yaml",
                "benches/labs/chatty-playbook.yaml",
                "tests/input/good/playbook.yaml",
            ],
        ),
    };
    let entries = directories
        .iter()
        .filter_map(|d| fs::read_dir(d).ok())
        .flatten();
    let mut files: Vec<_> = entries
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|e| e == "yaml"))
        .collect();
    assert!(!files.is_empty());
    files.extend(also.map(PathBuf::from));
    files
}

fn parse(text: &str) -> Value {
    serde_yaml::from_str(text).unwrap()
}

fn errors(schema: &Value, value: &Value) -> Vec<String> {
    let validator = jsonschema::draft202012::new(schema).unwrap();
    let errors = validator.iter_errors(value);
    errors
        .map(|e| format!("{}: {e}", e.instance_path()))
        .collect()
}

#[test]
fn the_schemas_are_schemas() {
    for language in [Language::Topology, Language::Playbook] {
        let schema = language.schema();
        assert!(
            jsonschema::draft202012::meta::is_valid(&schema),
            "{language}"
        );
    }
}

#[test]
fn all_good_files_validate() {
    for language in [Language::Topology, Language::Playbook] {
        let schema = language.schema();
        for file in files(language) {
            let value = parse(&fs::read_to_string(&file).unwrap());
            assert_eq!(errors(&schema, &value), [""; 0], "{}", file.display());
        }
    }
}

#[test]
fn wrong_files_do_not() {
    let topology = fs::read_to_string("tests/input/good/topology.yaml").unwrap();
    let playbook = fs::read_to_string("tests/input/good/playbook.yaml").unwrap();
    for (language, good, old, new, place) in [
        (Language::Topology, &topology, "vswitches:", "vswitch:", ""),
        (
            Language::Topology,
            &topology,
            "memory: 1GiB",
            "memory: 1024",
            "memory",
        ),
        (
            Language::Topology,
            &topology,
            "mode: nat",
            "mode: nats",
            "mode",
        ),
        (
            Language::Topology,
            &topology,
            "count: 2",
            "count: two",
            "count",
        ),
        (Language::Topology, &topology, "mtu: 9000", "mtu: 12", "mtu"),
        (
            Language::Topology,
            &topology,
            "    vnets: [{vswitch: data}, {",
            "    vnets: [{}, {",
            "vnets/0",
        ),
        (
            Language::Topology,
            &topology,
            "  client:",
            "  Client:",
            "domains",
        ),
        (Language::Playbook, &playbook, "factors:", "factor:", ""),
        (
            Language::Playbook,
            &playbook,
            "better: higher",
            "better: more",
            "better",
        ),
        (
            Language::Playbook,
            &playbook,
            "port: 3306",
            "port: 99999",
            "port",
        ),
        (
            Language::Playbook,
            &playbook,
            "port: 3306",
            "port: \"{{ threads }}\"",
            "port",
        ),
        (
            Language::Playbook,
            &playbook,
            "topology: topology.yaml\n",
            "",
            "",
        ),
        (
            Language::Playbook,
            &playbook,
            "expect: 10s",
            "expect: 10",
            "expect",
        ),
    ] {
        assert!(good.contains(old), "{old}");
        let found = errors(&language.schema(), &parse(&good.replacen(old, new, 1)));
        assert!(
            found.iter().any(|error| error.contains(place)),
            "{new}: {found:?}"
        );
    }
}

#[test]
fn expressions_and_nulls_validate_where_they_are_read() {
    let text = "\
vars: {n: 1, secret: {env: X}}
defaults: {boot_timeout: ~, split: {cpus: \"{{ vars.n }}\"}}
groups: {web: {count: \"{{ vars.n }}\", disks: ~}}
domains: {a: {groups: [\"{{ vars.n }}\"], split: ~}, b: ~}
";
    assert_eq!(errors(&Language::Topology.schema(), &parse(text)), [""; 0]);
}

#[test]
fn every_key_is_told_what_it_is_for() {
    let reference = Language::Topology.reference() + &Language::Playbook.reference();
    let rows: Vec<_> = reference
        .lines()
        .filter(|line| line.starts_with("| `"))
        .collect();
    assert!(rows.len() > 50, "{}", rows.len());
    for row in rows {
        let cells: Vec<_> = row.split(" | ").collect();
        assert!(cells.len() == 3 && cells[2].ends_with(". |"), "{row}");
    }
    assert!(reference.contains("The keys are those of `domains.NAME`, without `groups`."));
}

/// `LABRIG_WRITE_DOCS=1` writes what is compared: `make docs` sets it.
#[test]
fn the_documentation_lists_all_keys() {
    for language in [Language::Topology, Language::Playbook] {
        let file = Path::new("docs").join(format!("{language}.md"));
        let page = fs::read_to_string(&file).unwrap();
        let (introduction, keys) = page.split_once(MARK).unwrap();
        let wanted = language.reference();
        if std::env::var_os("LABRIG_WRITE_DOCS").is_some() {
            fs::write(&file, format!("{introduction}{MARK}{wanted}")).unwrap();
        } else {
            assert!(
                keys == wanted,
                "{} is not what the tables say: `make docs` writes it",
                file.display()
            );
        }
    }
}
