//! What files, groups, variables and expressions make of a topology, together.

#![allow(clippy::unwrap_used, reason = "a test may fail")]

use std::fs;
use std::path::Path;

use labrig::diag::Notes;
use labrig::input::{self, Loaded, Options};
use labrig::model::{Domain, Topology};

/// Everything that a lab of one domain needs, in one line each, beside `domains`.
const COMMON: &str = "\
version: 1
name: lab
images: {micro: {build: {micro: {}}}}
vswitches: {data: {subnet: 10.10.0.0/24}}
";

/// Lays files into a new directory and loads the first.
fn load_with(files: &[(&str, &str)], options: &Options) -> Result<Loaded<Topology>, Notes> {
    let directory = tempfile::tempdir().unwrap();
    lay(directory.path(), files);
    input::load_topology(&directory.path().join(files[0].0), options)
}

fn lay(directory: &Path, files: &[(&str, &str)]) {
    for (name, content) in files {
        let path = directory.join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
    }
}

#[track_caller]
fn load(files: &[(&str, &str)]) -> Loaded<Topology> {
    load_with(files, &Options::default()).unwrap_or_else(|notes| panic!("{notes}"))
}

#[track_caller]
fn wrong(files: &[(&str, &str)]) -> String {
    match load_with(files, &Options::default()) {
        Ok(_) => panic!("no notes"),
        Err(notes) => notes.to_string(),
    }
}

fn domain<'a>(topology: &'a Topology, name: &str) -> &'a Domain {
    let mut domains = topology.domains.iter();
    domains.find(|d| d.name.as_str() == name).unwrap()
}

/// MiB of memory of each domain, in order.
fn memory(topology: &Topology) -> Vec<u64> {
    let splits = topology.domains.iter().map(|d| d.split.as_ref().unwrap());
    splits.map(|split| split.memory.0 >> 20).collect()
}

/// A topology with these keys beside [`COMMON`].
fn with(rest: &str) -> String {
    format!("{COMMON}{rest}")
}

#[test]
fn a_file_lies_over_what_it_includes_in_order() {
    let files = [
        (
            "top.yaml",
            "include: [a.yaml, b.yaml]\nname: top\ndomains: {d: {boot_timeout: ~}}\n",
        ),
        (
            "a.yaml",
            &with(
                "vars: {x: 1, y: 1}\ndomains: {d: {image: micro, split: {cpus: 1, memory: 64MiB}, vnets: [{vswitch: data}], boot_timeout: 1m}}\n",
            ),
        ),
        (
            "b.yaml",
            "name: b\nvars: {y: 2}\ndomains: {d: {split: {memory: 96MiB}}}\n",
        ),
    ];
    let topology = load(&files).value;
    assert_eq!(topology.lab.name.as_str(), "top");
    assert_eq!(topology.vars["x"], 1);
    assert_eq!(topology.vars["y"], 2);
    let d = domain(&topology, "d");
    let split = d.split.as_ref().unwrap();
    assert_eq!((split.vcpus, split.memory.0 >> 20), (1, 96));
    assert_eq!(d.boot_timeout.0.as_secs(), 300, "null took it away");
}

#[test]
fn paths_in_an_included_file_are_relative_to_it() {
    let files = [
        (
            "labs/top.yaml",
            "include: [../common/parts.yaml]\ndomains: {d: {image: own, split: {cpus: 1, memory: 64MiB}, vnets: [{vswitch: data}]}}\n",
        ),
        (
            "common/parts.yaml",
            "include: [deeper/net.yaml]\nversion: 1\nname: lab\nimages: {own: {path: disk.img}}\n",
        ),
        (
            "common/deeper/net.yaml",
            "vswitches: {data: {subnet: 10.10.0.0/24}}\n",
        ),
        ("common/disk.img", "content"),
    ];
    let loaded = load(&files);
    assert_eq!(loaded.value.images.len(), 1);
    let names: Vec<_> = loaded
        .inputs
        .iter()
        .map(|input| input.path.display().to_string())
        .collect();
    for (name, wanted) in names.iter().zip([
        "labs/top.yaml",
        "common/parts.yaml",
        "common/deeper/net.yaml",
    ]) {
        assert!(name.ends_with(wanted) && !name.contains(".."), "{names:?}");
    }
    assert_eq!(names.len(), 3);
}

#[test]
fn a_file_that_two_include_is_laid_down_once() {
    let files = [
        (
            "top.yaml",
            "include: [a.yaml, b.yaml]\ndomains: {d: {image: micro, split: {cpus: 1, memory: 64MiB}, vnets: [{vswitch: data}]}}\n",
        ),
        ("a.yaml", "include: [base.yaml]\nvars: {x: a}\n"),
        ("b.yaml", "include: [base.yaml]\n"),
        ("base.yaml", &with("vars: {x: base}\n")),
    ];
    let loaded = load(&files);
    assert_eq!(
        loaded.value.vars["x"], "a",
        "b does not undo what a says over base"
    );
    assert_eq!(loaded.inputs.len(), 4);
}

#[test]
fn wrong_includes_are_noted_where_they_are() {
    let domains =
        "domains: {d: {image: micro, split: {cpus: 1, memory: 64MiB}, vnets: [{vswitch: data}]}}\n";
    let top = with(domains);
    let include = |line: &str| format!("{line}\n{top}");
    for (text, other, place, message) in [
        (
            "include: [gone.yaml]",
            "",
            "t.yaml:1:11",
            "gone.yaml cannot be read",
        ),
        (
            "include: [t.yaml]",
            "",
            "t.yaml:1:11",
            "cannot include itself",
        ),
        (
            "include: [o.yaml]",
            "include: [t.yaml]\n",
            "o.yaml:1:11",
            "cannot include itself",
        ),
        (
            "include: [o.yaml]",
            "x: 1\n",
            "o.yaml:1:1",
            "unknown key \"x\"",
        ),
        (
            "include: [o.yaml]",
            "a: 1\n b: 2\n",
            "o.yaml:2:",
            "not valid YAML",
        ),
        (
            "include: [o.yaml]",
            "defaults: {boot_timeout: 3}\n",
            "o.yaml:1:26",
            "3 has no unit",
        ),
        ("include: [o.yaml]", "", "o.yaml:1:1", "the file is empty"),
        (
            "include: [/etc/hostname]",
            "",
            "t.yaml:1:11",
            "absolute path",
        ),
        (
            "include: [\"{{ vars.x }}.yaml\"]",
            "",
            "t.yaml:1:11",
            "holds no expression",
        ),
        ("include: o.yaml", "", "t.yaml:1:10", "a list is wanted"),
        ("include: [1]", "", "t.yaml:1:11", "a text is wanted"),
        ("include: [.]", "", "", "it is a directory"),
    ] {
        let notes = wrong(&[("t.yaml", &include(text)), ("o.yaml", other)]);
        assert!(
            notes.contains(place) && notes.contains(message),
            "{text} {other}: {notes}"
        );
    }
    let many: Vec<_> = (0..70).map(|i| format!("f{i}.yaml")).collect();
    let mut files = vec![(
        "t.yaml",
        include(&format!("include: [{}]", many.join(", "))),
    )];
    files.extend(
        many.iter()
            .map(|name| (name.as_str(), "name: x\n".to_owned())),
    );
    let files: Vec<_> = files
        .iter()
        .map(|(name, text)| (*name, text.as_str()))
        .collect();
    assert!(wrong(&files).contains("too many files are included"));
}

#[test]
fn own_keys_win_over_groups_over_defaults() {
    let text = with("\
defaults: {image: micro, split: {cpus: 1, memory: 64MiB}, vnets: [{vswitch: data}], boot_timeout: 1m}
groups:
  big: {split: {memory: 128MiB}, boot_timeout: 2m}
  bigger: {split: {memory: 256MiB}}
domains:
  none: {}
  one: {groups: [big]}
  both: {groups: [big, bigger]}
  turned: {groups: [bigger, big]}
  own: {groups: [big], split: {memory: 32MiB}, boot_timeout: 3m}
  less: {groups: [big], boot_timeout: ~}
");
    let topology = load(&[("t.yaml", &text)]).value;
    let timeouts: Vec<_> = topology
        .domains
        .iter()
        .map(|d| d.boot_timeout.0.as_secs() / 60)
        .collect();
    assert_eq!(memory(&topology), [64, 128, 256, 128, 32, 128]);
    assert_eq!(timeouts, [1, 2, 2, 2, 3, 5]);
}

#[test]
fn groups_may_count_and_hold_expressions() {
    let text = with(
        "\
vars: {many: 2, role: web}
defaults: {image: micro, vnets: [{vswitch: data}]}
groups:
  web: {count: \"{{ vars.many }}\", split: {cpus: \"{{ index }}\", memory: \"{{ 64 * count }}MiB\"}}
  idle: {image: micro}
domains:
  w: {groups: [\"{{ vars.role }}\"]}
",
    );
    let loaded = load(&[("t.yaml", &text)]);
    let topology = &loaded.value;
    let cpus: Vec<_> = topology
        .domains
        .iter()
        .map(|d| (d.name.as_str(), d.split.as_ref().unwrap().vcpus))
        .collect();
    assert_eq!(cpus, [("w1", 1), ("w2", 2)]);
    assert_eq!(memory(topology), [128, 128]);
    let warnings = loaded.warnings.to_string();
    assert!(
        warnings.contains("t.yaml:9:3") && warnings.contains("no domain is in group \"idle\""),
        "{warnings}"
    );
    assert_eq!(loaded.warnings.0.len(), 1);
}

#[test]
fn expressions_keep_what_their_values_are() {
    let text = with("\
vars: {cpus: 2, mode: \"0600\", mac: \"525400000001\", size: 64M}
domains:
  a:
    image: micro
    split: {cpus: \"{{ vars.cpus + 1 }}\", memory: 64MiB}
    vnets: [{vswitch: \"{% if index == 1 %}data{% endif %}\", ip: \"10.10.0.{{ 10 + index }}\"}]
    files:
      - {template: a.tera, to: \"/etc/{{ name }}-{{ lab.name }}\", mode: \"{{ vars.mode }}\", vars: {settings: \"{{ domain.name }}\", of: \"{{ count }}\"}}
");
    // `vars` of a file is filled in later, with what template files see: no `count`.
    let notes = wrong(&[("t.yaml", &text), ("templates/a.tera", "x")]);
    assert!(
        notes.contains("undefined template variable \"count\" in vars.of"),
        "{notes}"
    );
    let text = text.replace(", of: \"{{ count }}\"", "");
    let topology = load(&[
        ("t.yaml", &text),
        ("templates/a.tera", "{{ vars.settings }}{{ vars.size }}"),
    ])
    .value;
    let a = domain(&topology, "a");
    assert_eq!(a.split.as_ref().unwrap().vcpus, 3);
    assert_eq!(
        (a.files[0].to.as_str(), a.files[0].mode),
        ("/etc/a-lab", 0o600)
    );
    assert_eq!(a.files[0].vars["settings"], "{{ domain.name }}");
    assert_eq!(serde_json::to_value(a.vnets[0].ip).unwrap(), "10.10.0.11");
    // A text that looks like a number stays a text.
    let text = text.replace(
        "ip: \"10.10.0.{{ 10 + index }}\"",
        "mac: \"{{ vars.mac }}\"",
    );
    let notes = wrong(&[("t.yaml", &text), ("templates/a.tera", "x")]);
    assert!(notes.contains("six pairs"), "{notes}");
}

#[test]
fn names_like_keys_that_are_filled_in_later_are_names() {
    let text = "\
version: 1
name: lab
vars: {n: 1}
images: {vars: {build: {micro: {}}}}
vswitches: {settings: {subnet: \"10.10.{{ vars.n }}.0/24\"}}
domains:
  settings: {image: vars, split: {cpus: \"{{ vars.n }}\", memory: 64MiB}, vnets: [{vswitch: settings}]}
";
    assert_eq!(memory(&load(&[("t.yaml", text)]).value), [64]);
}

#[test]
fn variables_are_set_from_the_command_line() {
    let text = with("\
vars: {cpus: 1, title: x, secret: {env: CARGO_MANIFEST_DIR}}
domains: {d: {image: micro, split: {cpus: \"{{ vars.cpus }}\", memory: 64MiB}, vnets: [{vswitch: data}]}}
");
    let set = |name: &str, value: &str| {
        let set = [(name.to_owned(), input::value_of(value))].into();
        let options = Options {
            set,
            ..Options::default()
        };
        load_with(&[("t.yaml", &text)], &options).map_err(|notes| {
            let hints = notes.0.iter().filter_map(|note| note.hint.clone());
            format!("{notes} {}", hints.collect::<Vec<_>>().join(" "))
        })
    };
    let loaded = set("cpus", "4").unwrap_or_else(|e| panic!("{e}"));
    assert_eq!(loaded.value.domains[0].split.as_ref().unwrap().vcpus, 4);
    assert_eq!(loaded.value.vars["cpus"], 4);
    assert_eq!(
        set("title", "").map(|l| l.value.vars["title"].clone()),
        Ok("".into())
    );
    for (name, value, message) in [
        ("cpu", "4", "did you mean \"cpus\"?"),
        (
            "secret",
            "4",
            "environment variable CARGO_MANIFEST_DIR gives it",
        ),
        ("cpus", "four", "\"four\" is no part"),
    ] {
        let notes = set(name, value).map(|_| ()).unwrap_err();
        assert!(notes.contains(message), "{name}: {notes}");
    }
}

#[test]
fn secrets_are_seen_in_template_files_and_nowhere_else() {
    let text = with(
        "\
vars: {password: {env: CARGO_MANIFEST_DIR}, plain: x}
domains:
  d:
    image: micro
    split: {cpus: 1, memory: 64MiB}
    vnets: [{vswitch: data}]
    files: [{template: a.tera, to: /etc/a}]
",
    );
    let template = ("templates/a.tera", "{{ vars.password }}");
    let loaded = load(&[("t.yaml", &text), template]);
    let secret = env!("CARGO_MANIFEST_DIR");
    assert_eq!(loaded.secrets.reveal()["password"], secret);
    assert!(
        !serde_json::to_string(&loaded.value)
            .unwrap()
            .contains(secret)
    );
    assert!(!format!("{:?}", loaded.secrets).contains(secret));
    for (old, new, message) in [
        (
            "to: /etc/a",
            "to: \"/etc/{{ vars.password }}\"",
            "it is a secret",
        ),
        (
            "cpus: 1",
            "cpus: \"{% if vars.password %}1{% endif %}\"",
            "it is a secret",
        ),
        (
            "env: CARGO_MANIFEST_DIR",
            "env: LABRIG_NO_SUCH_VARIABLE",
            "is not set",
        ),
        (
            "env: CARGO_MANIFEST_DIR",
            "env: X, or: Y",
            "unknown key \"or\"",
        ),
        ("env: CARGO_MANIFEST_DIR", "env: 7", "a text is wanted"),
    ] {
        let Err(notes) = load_with(
            &[("t.yaml", &text.replace(old, new)), template],
            &Options::default(),
        ) else {
            panic!("{new}: no notes")
        };
        let hints: Vec<_> = notes
            .0
            .iter()
            .filter_map(|note| note.hint.clone())
            .collect();
        let all = format!("{notes}\n{}", hints.join("\n"));
        assert!(
            all.contains(message) && !all.contains(secret),
            "{new}: {all}"
        );
    }
    // Nor does a template's own error tell it.
    let notes = wrong(&[
        ("t.yaml", &text),
        ("templates/a.tera", "{{ vars.password | abs }}"),
    ]);
    assert!(!notes.contains(secret), "{notes}");
    assert!(notes.contains("a.tera:1:"), "{notes}");
}

#[test]
fn a_template_is_looked_for_whatever_else_is_wrong_with_its_entry() {
    let text = with(
        "\
domains:
  d:
    image: micro
    split: {cpus: 1, memory: 64MiB}
    vnets: [{vswitch: data}]
    files: [{template: gone.tera, to: etc/a}]
",
    );
    for text in [text.clone(), text.replace("name: lab\n", "")] {
        let notes = wrong(&[("t.yaml", &text), ("templates/a.tera", "x")]);
        assert!(notes.contains("\"gone.tera\" is not in"), "{notes}");
        assert!(notes.contains("is not absolute"), "{notes}");
    }
}

#[test]
fn a_file_of_the_other_language_is_one_note() {
    let good = Path::new("tests/input/good");
    let Err(notes) = input::load_topology(&good.join("playbook.yaml"), &Options::default()) else {
        panic!()
    };
    assert_eq!(notes.0.len(), 1, "{notes}");
    assert!(
        notes.to_string().contains("playbook.yaml:12:1")
            && notes.to_string().contains("this is a playbook"),
        "{notes}"
    );
    let Err(notes) = input::load_playbook(&good.join("topology.yaml"), &Options::default()) else {
        panic!()
    };
    assert_eq!(notes.0.len(), 1, "{notes}");
    assert!(notes.to_string().contains("this is a topology"), "{notes}");
}
