//! Where things stand in a file that was read.

use std::path::PathBuf;

use super::tree::{Kind, Node, Span};
use crate::diag::Place;

/// Finds the place of a path in a file.
#[derive(Debug)]
pub struct SourceMap {
    files: Vec<PathBuf>,
    root: Node,
}

impl SourceMap {
    /// Of the tree that was made from `files`.
    pub(super) fn new(files: Vec<PathBuf>, root: Node) -> Self {
        Self { files, root }
    }

    /// The place of a path, as in `domains.db.vnets[0].ip`: of its value, or of its key when the
    /// value is a list or map. A path that is not in the file (a default) has the place of the
    /// nearest part above it that is. A domain's part is `domains.GROUP`.
    pub fn place(&self, path: &str) -> Option<Place> {
        let (mut node, mut found, mut rest) = (&self.root, None, path);
        while !rest.is_empty() {
            let Some((next, key, after)) = step(node, rest) else {
                break;
            };
            node = next;
            found = Some(match (&node.kind, key) {
                (Kind::Scalar { .. }, _) | (_, None) => node.span,
                (_, Some(key)) => key,
            });
            rest = after;
        }
        found.map(|span| place(&self.files, span))
    }
}

/// Goes one step down: the node, the place of its key, and the rest of the path.
fn step<'n, 'p>(node: &'n Node, path: &'p str) -> Option<(&'n Node, Option<Span>, &'p str)> {
    match &node.kind {
        Kind::Scalar { .. } | Kind::Unknown => None,
        Kind::List(items) => {
            let (number, rest) = path.strip_prefix('[')?.split_once(']')?;
            let item = items.get(number.parse::<usize>().ok()?)?;
            Some((item, None, rest.strip_prefix('.').unwrap_or(rest)))
        }
        // Keys may hold dots and brackets: the shortest beginning that is a key is meant.
        Kind::Map(map) => path
            .match_indices(['.', '['])
            .map(|(at, _)| at)
            .chain([path.len()])
            .find_map(|end| map.get(&path[..end]).map(|entry| (entry, &path[end..])))
            .map(|(entry, rest)| {
                (
                    &entry.value,
                    Some(entry.key_span),
                    rest.strip_prefix('.').unwrap_or(rest),
                )
            }),
    }
}

/// A place in one of the files.
pub(super) fn place(files: &[PathBuf], span: Span) -> Place {
    Place {
        file: files[usize::from(span.file)].clone(),
        line: span.line,
        column: span.column,
        start: span.start,
        end: span.end,
    }
}

#[cfg(test)]
mod tests {
    use super::super::tree;
    use super::*;

    #[test]
    fn finds_paths_and_the_nearest_part_above() {
        let text = "domains:\n  db:\n    split: {cpus: 1}\n    vnets:\n      - {a.b: 1}\n";
        let map = SourceMap::new(vec!["f.yaml".into()], tree::parse(text, 0).0.unwrap());
        let at = |path| map.place(path).map(|p| (p.line, p.column));
        assert_eq!(at("domains.db.split.cpus"), Some((3, 19)));
        assert_eq!(at("domains.db.split.memory"), Some((3, 5)));
        assert_eq!(at("domains.db.vnets[0].a.b"), Some((5, 15)));
        assert_eq!(at("domains.db.vnets[7].ip"), Some((4, 5)));
        assert_eq!(at("nothing"), None);
    }
}
