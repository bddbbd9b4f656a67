//! Included files: what a topology is laid over.

use std::path::{Path, PathBuf};

use super::files::{InputFile, read_tree};
use super::merge::merge;
use super::read::{At, Doc};
use super::tree::{Kind, Mapping, Node};

/// Files that one topology may be made of.
const MOST: usize = 64;

/// Reads the document's file and all that it includes; gives the files, the document's own first, and
/// the tree that they make together. What is wrong is noted.
pub(super) fn read_with_includes(doc: &Doc) -> Option<(Vec<InputFile>, Node)> {
    let mut reader = Reader {
        doc,
        inputs: Vec::new(),
        open: Vec::new(),
    };
    let root = reader.read(&doc.file, 0)?;
    Some((reader.inputs, root))
}

struct Reader<'a> {
    doc: &'a Doc,
    inputs: Vec<InputFile>,
    /// Files that are being read, from the document's own to the innermost.
    open: Vec<PathBuf>,
}

impl Reader<'_> {
    fn read(&mut self, file: &Path, number: u16) -> Option<Node> {
        let (input, mut root) = read_tree(self.doc, file, number)?;
        self.inputs.push(input);
        self.open.push(real(file));
        let mut base: Option<Node> = None;
        for included in take_includes(self.doc, &mut root) {
            let included = self.include(&included);
            base = match (base, included) {
                (Some(base), Some(included)) => Some(merge(&base, included)),
                (base, included) => base.or(included),
            };
        }
        self.open.pop();
        Some(match base {
            Some(base) => merge(&base, root),
            None => root,
        })
    }

    fn include(&mut self, written: &super::read::Written<PathBuf>) -> Option<Node> {
        let doc = self.doc;
        let file = doc.beside(written);
        let wrong = if self.open.contains(&real(&file)) {
            Some(("a file cannot include itself", "leave one of the two out"))
        } else if self.inputs.len() >= MOST {
            Some(("too many files are included", "at most 64 make a topology"))
        } else {
            None
        };
        if let Some((message, hint)) = wrong {
            doc.push(doc.error(&written.spot, message).hint(hint));
            return None;
        }
        if let Err(e) = std::fs::metadata(&file) {
            let message = format!("{} cannot be read: {e}", file.display());
            let hint = "the path is relative to the file that names it";
            doc.push(doc.error(&written.spot, message).hint(hint));
            return None;
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
fn take_includes(doc: &Doc, root: &mut Node) -> Vec<super::read::Written<PathBuf>> {
    let at = At::top(doc, root);
    let Some(include) = at.section("include") else {
        return Vec::new();
    };
    let items = include.items("common.yaml");
    let texts = items.iter().filter_map(|at| at.text("common.yaml"));
    let files = texts.map(|text| super::read::Written {
        value: PathBuf::from(text.value),
        spot: text.spot,
    });
    let files = files.collect();
    if let Kind::Map(map) = &mut root.kind {
        let rest = map.entries().iter().filter(|entry| entry.key != "include");
        let mut kept = Mapping::default();
        rest.cloned().for_each(|entry| kept.set(entry));
        *map = kept;
    }
    files
}
