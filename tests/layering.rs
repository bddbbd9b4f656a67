//! A module imports only from layers below its own: the rule of ARCHITECTURE.md, read off the source.

#![allow(clippy::unwrap_used, reason = "a test may fail")]

use std::fs;
use std::ops::Range;
use std::path::{Path, PathBuf};

/// Modules by layer, lowest first. Modules of one layer do not know each other.
const LAYERS: [&[&str]; 9] = [
    &["diag"],
    &["model"],
    &["databases"],
    &["ports", "stats", "adapters", "render"],
    &["input"],
    &["plan", "design"],
    &["backend", "engine", "archive"],
    &["analyse"],
    &["report"],
];
/// The top: may import everything.
const TOP: &str = "cli";

fn layer_of(module: &str) -> Option<usize> {
    LAYERS.iter().position(|layer| layer.contains(&module))
}

fn sources(directory: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(sources(&path));
        } else if path.extension().is_some_and(|e| e == "rs") {
            found.push(path);
        }
    }
    found
}

/// Modules that a source names by `crate::MODULE`, with the line; `crate::{a, b::{c, d}}` is looked
/// into, over as many lines as it has.
fn imports(source: &str) -> Vec<(usize, String)> {
    const CRATE: &str = "crate::";
    let code: Vec<_> = source
        .lines()
        .map(|line| match line.trim_start().starts_with("//") {
            true => "",
            // Not at a bare `//`: that is in URLs too.
            false => line.split(" // ").next().unwrap_or_default(),
        })
        .collect();
    let code = code.join("\n");
    let mut found = Vec::new();
    for (at, _) in code.match_indices(CRATE) {
        let start = at + CRATE.len();
        for name in first_names(&code[start..]) {
            let line = code[..start + name.start].matches('\n').count() + 1;
            found.push((line, code[start..][name].to_owned()));
        }
    }
    found
}

/// Where the names are that a path begins with: one, or those of a group in braces.
fn first_names(path: &str) -> Vec<Range<usize>> {
    let Some(group) = path.strip_prefix('{') else {
        return name_at(path, 0).into_iter().collect();
    };
    let mut names: Vec<_> = name_at(path, 1).into_iter().collect();
    let mut depth = 1;
    for (i, c) in group.char_indices() {
        match c {
            '{' => depth += 1,
            '}' => depth -= 1,
            ',' if depth == 1 => names.extend(name_at(path, i + 2)),
            _ => {}
        }
        if depth == 0 {
            break;
        }
    }
    names
}

/// The name at a place, after white space; none where there is none.
fn name_at(text: &str, from: usize) -> Option<Range<usize>> {
    let is_name = |c: char| c.is_alphanumeric() || c == '_';
    let start = from + text[from..].find(|c: char| !c.is_whitespace())?;
    let rest = &text[start..];
    let length = rest.find(|c| !is_name(c)).unwrap_or(rest.len());
    (length > 0).then(|| start..start + length)
}

#[test]
fn a_module_imports_only_from_layers_below() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut wrong = Vec::new();
    for path in sources(&root) {
        let inner = path.strip_prefix(&root).unwrap();
        let module = inner
            .components()
            .next()
            .unwrap()
            .as_os_str()
            .to_str()
            .unwrap()
            .trim_end_matches(".rs");
        if ["lib", "main", TOP].contains(&module) {
            continue;
        }
        let own = layer_of(module)
            .unwrap_or_else(|| panic!("{module} is in no layer: put it into LAYERS"));
        for (line, import) in imports(&fs::read_to_string(&path).unwrap()) {
            let allowed = import == module || layer_of(&import).is_some_and(|layer| layer < own);
            if !allowed {
                wrong.push(format!(
                    "{}:{line}: {module} imports {import}",
                    inner.display()
                ));
            }
        }
    }
    assert!(
        wrong.is_empty(),
        "imports against the layers:\n{}",
        wrong.join("\n")
    );
}

#[test]
fn the_reader_of_imports_sees_what_is_there() {
    let source = r#"use crate::model::Name;
let x = ("qemu:///system", crate::cli::main()); // not crate::input
/// crate::report
use crate::{plan, design};
use crate::{
    backend::{self, images},
    // crate::stats
    archive::{
        RunDir, list,
    }, engine,
};
use crate::{diag};
let others = (first, second);
"#;
    let expected = [
        (1, "model"),
        (2, "cli"),
        (4, "plan"),
        (4, "design"),
        (6, "backend"),
        (8, "archive"),
        (10, "engine"),
        (12, "diag"),
    ];
    assert_eq!(
        imports(source),
        expected.map(|(line, module)| (line, module.to_owned()))
    );
}

#[test]
fn every_file_says_what_it_is_for() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let silent: Vec<_> = sources(&root)
        .into_iter()
        .filter(|path| !fs::read_to_string(path).unwrap().starts_with("//!"))
        .collect();
    assert!(silent.is_empty(), "no //! at the top: {silent:?}");
}
