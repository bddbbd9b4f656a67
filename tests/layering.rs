//! A module imports only from layers below its own: the rule of ARCHITECTURE.md, read off the source.

use std::fs;
use std::path::{Path, PathBuf};

/// Modules by layer, lowest first. Modules of one layer do not know each other.
const LAYERS: [&[&str]; 8] = [
    &["diag"],
    &["model"],
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

/// Modules that a source names by `crate::MODULE`, with the line; `crate::{a, b}` is looked into.
fn imports(source: &str) -> Vec<(usize, String)> {
    let mut found = Vec::new();
    for (i, line) in source.lines().enumerate() {
        if line.trim_start().starts_with("//") {
            continue;
        }
        for part in line.split("crate::").skip(1) {
            let names = part.strip_prefix('{').map_or_else(
                || vec![part],
                |group| {
                    group
                        .split(['}'])
                        .next()
                        .unwrap_or_default()
                        .split(',')
                        .collect()
                },
            );
            for name in names {
                let module: String = name
                    .trim()
                    .chars()
                    .take_while(|c| c.is_alphanumeric() || *c == '_')
                    .collect();
                if !module.is_empty() {
                    found.push((i + 1, module));
                }
            }
        }
    }
    found
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
    let source = "use crate::model::Name;\nlet x = crate::cli::main();\n// crate::report\nuse crate::{plan, design};\n";
    let modules: Vec<_> = imports(source)
        .into_iter()
        .map(|(_, module)| module)
        .collect();
    assert_eq!(modules, ["model", "cli", "plan", "design"]);
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
