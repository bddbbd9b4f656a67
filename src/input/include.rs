//! Included files: what a topology is laid over.

use std::path::{Path, PathBuf};

use super::expressions::is_expression;
use super::files::{InputFile, read_tree};
use super::merge::merge;
use super::read::{At, Doc, Written};
use super::tree::{Kind, Node};

/// Files that one topology may be made of.
const MOST: usize = 64;

/// Reads the document's file and all that it includes; gives the files, the document's own first, and
/// the tree that they make together. What is wrong is noted.
///
/// A file that several others include is laid down once, where it is first named: so what one of them
/// says over it is not undone by the next.
pub(super) fn read_with_includes(doc: &Doc) -> Option<(Vec<InputFile>, Node)> {
    let mut reader = Reader {
        doc,
        inputs: Vec::new(),
        open: Vec::new(),
        done: Vec::new(),
    };
    let root = reader.read(&doc.file, 0)?;
    Some((reader.inputs, root))
}

struct Reader<'a> {
    doc: &'a Doc,
    inputs: Vec<InputFile>,
    /// Files that are being read, from the document's own to the innermost.
    open: Vec<PathBuf>,
    /// Files that were read.
    done: Vec<PathBuf>,
}

impl Reader<'_> {
    fn read(&mut self, file: &Path, number: u16) -> Option<Node> {
        let (input, mut root) = read_tree(self.doc, file, number)?;
        self.inputs.push(input);
        self.open.push(real(file));
        let mut base: Option<Node> = None;
        for written in take_includes(self.doc, &mut root) {
            if let Some(included) = self.include(&written) {
                base = Some(match base {
                    Some(base) => merge(base, included),
                    None => included,
                });
            }
        }
        self.done.extend(self.open.pop());
        Some(match base {
            Some(base) => merge(base, root),
            None => root,
        })
    }

    fn include(&mut self, written: &Written<PathBuf>) -> Option<Node> {
        let doc = self.doc;
        let file = doc.beside(written);
        let wrong = |message: &str, hint: &str| {
            doc.push(doc.error(&written.spot, message).hint(hint));
            None
        };
        if is_expression(&written.value.to_string_lossy()) {
            return wrong(
                "the name of an included file holds no expression",
                "expressions are filled in when all files are read: name the file",
            );
        }
        if written.value.is_absolute() {
            return wrong(
                "an absolute path cannot be kept with the experiment",
                "name the file relative to this one, as in common.yaml",
            );
        }
        if self.open.contains(&real(&file)) {
            return wrong("a file cannot include itself", "leave one of the two out");
        }
        if self.done.contains(&real(&file)) {
            return None;
        }
        if self.inputs.len() >= MOST {
            return wrong("too many files are included", "at most 64 make a topology");
        }
        if let Err(e) = std::fs::metadata(&file) {
            return wrong(
                &format!("{} cannot be read: {e}", file.display()),
                "the path is relative to the file that names it",
            );
        }
        let number = doc.add_file(&file);
        self.read(&file, number)
    }
}

/// A file's one true path, as far as it can be known.
fn real(file: &Path) -> PathBuf {
    file.canonicalize().unwrap_or_else(|_| file.to_owned())
}

/// Takes the key `include` out of a file's tree.
fn take_includes(doc: &Doc, root: &mut Node) -> Vec<Written<PathBuf>> {
    let files = At::top(doc, root)
        .section("include")
        .map(|include| include.items("common.yaml"))
        .unwrap_or_default()
        .iter()
        .filter_map(|at| at.text("common.yaml"))
        .map(|text| Written {
            value: PathBuf::from(text.value),
            spot: text.spot,
        })
        .collect();
    if let Kind::Map(map) = &mut root.kind {
        map.take("include");
    }
    files
}
