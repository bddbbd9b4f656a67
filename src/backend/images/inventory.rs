//! What is in the store, and what of it nobody needs.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::TryLockError;
use std::io;
use std::path::Path;

use jiff::Timestamp;

use super::manifest::{FILE_NAME, Manifest, Part};
use super::store::{Store, names_in};
use crate::backend::files::remove_if_there;
use crate::model::{Bytes, Digest, ImageRecipe};
use crate::ports::{ErrorKind, PortError, chain};

/// Nothing is collected from the store while it is held.
pub struct Hold(#[expect(dead_code, reason = "the lock ends with it")] std::fs::File);

/// One content of the store.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredContent {
    /// Its digest.
    pub digest: Digest,
    /// What it is found by; empty when nothing leads to it.
    pub keys: BTreeSet<Digest>,
    /// Whether this version of labrig finds it; another one may have built it.
    pub is_current: bool,
    /// How it was built; none when it was imported or downloaded.
    pub recipe: Option<ImageRecipe>,
    /// Size of its files.
    pub size: Bytes,
    /// When it was made.
    pub made: Option<Timestamp>,
    /// What is wrong with it.
    pub damage: Option<String>,
}

/// Something that was removed, or would be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Collected {
    /// What it is: the digest of a content, else the name of a file in the store.
    pub name: String,
    /// What that frees.
    pub size: Bytes,
}

impl Store {
    /// Holds the store: an image that is found or made stays until the value is dropped, so that it
    /// can be linked into a lab.
    ///
    /// # Errors
    /// When the store cannot be written to.
    pub fn hold(&self) -> Result<Hold, PortError> {
        let file = self.lock_file()?;
        file.lock_shared()
            .map_err(|e| PortError::fatal(format!("lock {}", self.root.display()), e))?;
        Ok(Hold(file))
    }

    fn lock_file(&self) -> Result<std::fs::File, PortError> {
        fs_err::create_dir_all(&self.root)?;
        let file = fs_err::OpenOptions::new()
            .create(true)
            .append(true)
            .open(self.root.join("lock"))?;
        Ok(file.into_file())
    }

    /// All that is in the store, by digest. With `all`, every file is read and its digest compared;
    /// else only those that look changed.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub fn contents(&self, all: bool) -> Result<Vec<StoredContent>, PortError> {
        let mut keys: BTreeMap<Digest, BTreeSet<Digest>> = BTreeMap::new();
        let mut current = BTreeSet::new();
        for name in names_in(&self.root.join("keys"))? {
            let key = name.get(..64).and_then(|text| text.parse::<Digest>().ok());
            let (Some(key), Some(directory)) = (key, self.content_named_by(&name)?) else {
                continue;
            };
            let Some(digest) = digest_of(&directory) else {
                continue;
            };
            keys.entry(digest).or_default().insert(key);
            if self.key_names(key).contains(&name) {
                current.insert(digest);
            }
        }
        let mut contents = Vec::new();
        for name in names_in(&self.root.join("content"))? {
            let Ok(digest) = name.parse::<Digest>() else {
                continue;
            };
            let directory = self.content_directory(digest);
            let manifest = Manifest::read(&directory).ok();
            contents.push(StoredContent {
                digest,
                keys: keys.remove(&digest).unwrap_or_default(),
                is_current: current.contains(&digest),
                size: size_of(&directory, manifest.as_ref())?,
                made: made(&directory),
                recipe: manifest.and_then(|manifest| manifest.recipe),
                damage: Manifest::verified(&directory, all)
                    .err()
                    .map(|error| chain(&error)),
            });
        }
        Ok(contents)
    }

    /// Removes all but the contents that `keep` names, which it is asked while nobody holds the store:
    /// other contents, keys that lead nowhere, what killed builds left, and parts of downloads. With
    /// `dry_run`, only says what that is.
    ///
    /// # Errors
    /// When somebody holds the store, something cannot be removed, or `keep` fails.
    pub fn collect<E: From<PortError>>(
        &self,
        keep: impl FnOnce() -> Result<BTreeSet<Digest>, E>,
        dry_run: bool,
    ) -> Result<Vec<Collected>, E> {
        let lock = self.lock_file()?;
        match lock.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                let what = "collect images: another labrig is making some or linking them";
                let error = PortError::new(ErrorKind::NotYet, what);
                return Err(error.hint("try again when it is done").into());
            }
            Err(TryLockError::Error(e)) => return Err(PortError::from(e).into()),
        }
        let keep = keep()?;
        Ok(self.remove_all_but(&keep, dry_run)?)
    }

    fn remove_all_but(
        &self,
        keep: &BTreeSet<Digest>,
        dry_run: bool,
    ) -> Result<Vec<Collected>, PortError> {
        let mut collected = Vec::new();
        for content in self.contents(false)? {
            if keep.contains(&content.digest) {
                continue;
            }
            collected.push(Collected {
                name: content.digest.to_string(),
                size: content.size,
            });
            if !dry_run {
                self.remove_content(content.digest)?;
            }
        }
        for name in names_in(&self.root.join("keys"))? {
            let leads_to = self.content_named_by(&name)?;
            if !dry_run && leads_to.is_none_or(|directory| !directory.exists()) {
                remove_if_there(&self.root.join("keys").join(name))?;
            }
        }
        for name in names_in(&self.root.join("work"))? {
            let path = self.root.join("work").join(&name);
            let size = Bytes(fs_err::metadata(&path).map_or(0, |facts| facts.len()));
            if name.ends_with(".part") {
                collected.push(Collected { name, size });
            }
            if !dry_run {
                if path.is_dir() {
                    self.builder.discard(&path)?;
                } else {
                    remove_if_there(&path)?;
                }
            }
        }
        Ok(collected)
    }

    /// Removes a content, out of sight at once, so that nobody finds half of it.
    fn remove_content(&self, digest: Digest) -> Result<(), PortError> {
        let work = self.work_directory(digest);
        self.builder.discard(&work)?;
        fs_err::create_dir_all(&work)?;
        match fs_err::rename(self.content_directory(digest), work.join("removed")) {
            Err(e) if e.kind() != io::ErrorKind::NotFound => Err(e.into()),
            _ => Ok(self.builder.discard(&work)?),
        }
    }
}

fn digest_of(directory: &Path) -> Option<Digest> {
    directory.file_name()?.to_str()?.parse().ok()
}

fn made(directory: &Path) -> Option<Timestamp> {
    let facts = fs_err::metadata(directory.join(FILE_NAME)).ok()?;
    Timestamp::try_from(facts.modified().ok()?).ok()
}

fn size_of(directory: &Path, manifest: Option<&Manifest>) -> io::Result<Bytes> {
    if let Some(manifest) = manifest {
        return Ok(Bytes(manifest.parts.values().map(Part::size).sum()));
    }
    let sizes = names_in(directory)?
        .into_iter()
        .map(|name| fs_err::metadata(directory.join(name)).map_or(0, |facts| facts.len()));
    Ok(Bytes(sizes.sum()))
}
