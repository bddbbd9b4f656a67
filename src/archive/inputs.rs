//! Input files keep their places relative to each other, so that a copy of them works like them.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Component, Path, PathBuf};

use super::ArchiveError;

/// Finds the deepest directory that holds all files, and the files relative to it, sorted. `.`
/// and `..` are resolved in the text of the paths; a file that is named twice is kept once.
///
/// The paths must be absolute. Without files the root is `/`.
pub fn relative_layout(files: &[(PathBuf, Vec<u8>)]) -> (PathBuf, Vec<(PathBuf, Vec<u8>)>) {
    let files: BTreeMap<Vec<OsString>, &Vec<u8>> = files
        .iter()
        .map(|(path, content)| (components(path), content))
        .collect();
    let mut parents = files
        .keys()
        .map(|path| &path[..path.len().saturating_sub(1)]);
    let first = parents.next().unwrap_or_default();
    let shared = parents.fold(first.len(), |shared, parent| {
        first[..shared]
            .iter()
            .zip(parent)
            .take_while(|(a, b)| a == b)
            .count()
    });
    let root = Path::new("/").join(first[..shared].iter().collect::<PathBuf>());
    let relative = files
        .into_iter()
        .map(|(path, content)| (path[shared..].iter().collect(), content.clone()))
        .collect();
    (root, relative)
}

/// The names on the way to a file, from the file system's root.
fn components(path: &Path) -> Vec<OsString> {
    let mut names = Vec::new();
    for component in path.components() {
        match component {
            Component::Normal(name) => names.push(name.to_owned()),
            Component::ParentDir => drop(names.pop()),
            Component::RootDir | Component::CurDir | Component::Prefix(_) => {}
        }
    }
    names
}

/// Checks that inputs stay below the directory they are written to, and apart from each other.
pub(super) fn check(inputs: &[(PathBuf, Vec<u8>)]) -> Result<(), ArchiveError> {
    let wrong = |path: &Path, why| ArchiveError::InputPath {
        path: path.to_owned(),
        why,
    };
    let mut paths: Vec<&Path> = Vec::new();
    for (path, _) in inputs {
        if path.as_os_str().is_empty()
            || !path.components().all(|c| matches!(c, Component::Normal(_)))
        {
            return Err(wrong(path, "it must lie below the inputs directory"));
        }
        if path.to_str().is_none() {
            return Err(wrong(path, "it is not UTF-8"));
        }
        paths.push(path);
    }
    paths.sort();
    for pair in paths.windows(2) {
        if pair[1].starts_with(pair[0]) {
            return Err(wrong(
                pair[0],
                "another input has the same path, or one below it",
            ));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn files(paths: &[&str]) -> Vec<(PathBuf, Vec<u8>)> {
        paths
            .iter()
            .map(|p| (PathBuf::from(p), p.as_bytes().to_vec()))
            .collect()
    }

    #[test]
    fn files_keep_their_places_to_each_other() {
        let cases: [(&[&str], &str, &[&str]); 5] = [
            (
                &["/p/books/a.yaml", "/p/books/../tops/b.yaml"],
                "/p",
                &["books/a.yaml", "tops/b.yaml"],
            ),
            (&["/p/a.yaml"], "/p", &["a.yaml"]),
            (&["/p/a.yaml", "/p/./a.yaml"], "/p", &["a.yaml"]),
            // A common prefix of the text is not a common directory.
            (&["/p/ab/x", "/p/ac/x"], "/p", &["ab/x", "ac/x"]),
            (&["/a", "/b/c"], "/", &["a", "b/c"]),
        ];
        for (paths, root, relative) in cases {
            let (found, laid) = relative_layout(&files(paths));
            assert_eq!(found, Path::new(root), "{paths:?}");
            let laid: Vec<_> = laid
                .iter()
                .map(|(path, _)| path.to_str().unwrap())
                .collect();
            assert_eq!(laid, relative, "{paths:?}");
        }
        assert_eq!(relative_layout(&[]), (PathBuf::from("/"), Vec::new()));
    }

    #[test]
    fn inputs_cannot_leave_the_archive_or_collide() {
        for bad in [
            &["/etc/x"][..],
            &["../x"],
            &["a/../../x"],
            &[""],
            &["a", "a"],
            &["a", "a/b"],
        ] {
            assert!(
                matches!(check(&files(bad)), Err(ArchiveError::InputPath { .. })),
                "{bad:?}"
            );
        }
        assert!(check(&files(&["a", "ab", "b/c"])).is_ok());
    }
}
