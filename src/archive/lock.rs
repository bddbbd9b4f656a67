//! `lock.json`: digests and versions of all that went into a run, under one root digest.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::ArchiveError;
use crate::model::{Digest, Digester};

/// What went into a run. Leaf names are dotted paths: `input.topologies/quickstart.yaml`, `seed`,
/// `image.debian-db.content`, `host.cpu`, `qemu`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Lock {
    /// Digest or version by leaf name.
    pub leaves: BTreeMap<String, String>,
    /// Digest over all leaves: names and values in the order of the names, each with its length.
    pub root: Digest,
}

/// What a difference between two locks means for a rerun.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum DifferenceKind {
    /// Part of the experiment itself: with another value it is another experiment.
    Input,
    /// What it ran on: may differ, and then may be why results differ.
    Environment,
}

/// A leaf that two locks do not agree on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Difference {
    /// The leaf's name.
    pub leaf: String,
    /// What it means.
    pub kind: DifferenceKind,
    /// Its value in the first lock; none when it is not there.
    pub before: Option<String>,
    /// Its value in the second lock; none when it is not there.
    pub after: Option<String>,
}

impl DifferenceKind {
    /// The kind of a leaf: `input.…`, `plan.…` and `seed` are inputs, all else is environment.
    pub fn of(leaf: &str) -> Self {
        let is_input = leaf == "seed" || leaf.starts_with("input.") || leaf.starts_with("plan.");
        if is_input {
            Self::Input
        } else {
            Self::Environment
        }
    }
}

impl Lock {
    /// Locks leaves.
    pub fn new(leaves: BTreeMap<String, String>) -> Self {
        let root = Self::digest(&leaves);
        Self { leaves, root }
    }

    /// Checks that the root digest is that of the leaves.
    ///
    /// # Errors
    /// [`ArchiveError::LockRoot`] when it is not.
    pub fn verify(&self) -> Result<(), ArchiveError> {
        let computed = Self::digest(&self.leaves);
        if computed == self.root {
            Ok(())
        } else {
            Err(ArchiveError::LockRoot {
                stored: self.root,
                computed,
            })
        }
    }

    /// Lists the leaves that differ: inputs first, then by name.
    pub fn diff(&self, other: &Self) -> Vec<Difference> {
        let names = self.leaves.keys().chain(
            other
                .leaves
                .keys()
                .filter(|k| !self.leaves.contains_key(*k)),
        );
        let mut differences: Vec<_> = names
            .map(|leaf| Difference {
                leaf: leaf.clone(),
                kind: DifferenceKind::of(leaf),
                before: self.leaves.get(leaf).cloned(),
                after: other.leaves.get(leaf).cloned(),
            })
            .filter(|difference| difference.before != difference.after)
            .collect();
        differences.sort_by(|a, b| (a.kind, &a.leaf).cmp(&(b.kind, &b.leaf)));
        differences
    }

    fn digest(leaves: &BTreeMap<String, String>) -> Digest {
        leaves
            .iter()
            .fold(Digester::default(), |digester, (name, value)| {
                digester.field(name).field(value)
            })
            .finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lock(leaves: &[(&str, &str)]) -> Lock {
        Lock::new(
            leaves
                .iter()
                .map(|(k, v)| ((*k).to_owned(), (*v).to_owned()))
                .collect(),
        )
    }

    #[test]
    fn the_root_covers_names_and_values() {
        let base = lock(&[("qemu", "7.2"), ("seed", "7")]);
        assert!(base.verify().is_ok());
        for other in [
            &[("qemu", "7.2"), ("seed", "8")][..],
            &[("qemu", "7.2"), ("seeds", "7")],
            &[("qemu", "7.2")],
        ] {
            assert_ne!(base.root, lock(other).root, "{other:?}");
        }
        let mut forged = base;
        forged.leaves.insert("seed".to_owned(), "8".to_owned());
        assert!(matches!(
            forged.verify(),
            Err(ArchiveError::LockRoot { .. })
        ));
    }

    #[test]
    fn a_diff_names_each_side_and_puts_inputs_first() {
        let before = lock(&[
            ("host.cpu", "A"),
            ("input.a.yaml", "1"),
            ("qemu", "7.2"),
            ("seed", "7"),
        ]);
        let after = lock(&[
            ("host.cpu", "B"),
            ("input.a.yaml", "1"),
            ("libvirt", "9"),
            ("seed", "8"),
        ]);
        let lines: Vec<_> = before
            .diff(&after)
            .into_iter()
            .map(|d| format!("{:?} {} {:?} {:?}", d.kind, d.leaf, d.before, d.after))
            .collect();
        assert_eq!(
            lines,
            [
                r#"Input seed Some("7") Some("8")"#,
                r#"Environment host.cpu Some("A") Some("B")"#,
                r#"Environment libvirt None Some("9")"#,
                r#"Environment qemu Some("7.2") None"#,
            ]
        );
        assert!(before.diff(&before).is_empty());
    }
}
