//! The store: `content/DIGEST/` holds an image's files, `keys/KEY` names the digest. An image is
//! made in `work/`, under its key's lock, and published by one rename.

use std::collections::BTreeMap;
use std::io::{self, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use nix::sys::statvfs::statvfs;

use super::builder::{Builder, Built, DebianBuilder};
use super::download::Download;
use super::import::{self, Paths};
use super::manifest::{FILE_NAME, Manifest, Part, Role};
use crate::backend::files::remove_if_there;
use crate::model::{Bytes, Digest, Image, ImageRecipe, ImageSource};
use crate::ports::{ErrorKind, ImageFiles, ImageStore, PortError};

/// Hexadecimal digits of the builder's fingerprint in the name of a key.
const FINGERPRINT_DIGITS: usize = 16;

/// A store in a directory.
pub struct Store {
    pub(super) root: PathBuf,
    pub(super) builder: Box<dyn Builder>,
}

/// An image in the store, for lists.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredImage {
    /// What it is found by.
    pub key: Digest,
    /// Its files.
    pub files: ImageFiles,
    /// How it was built; none when it was imported.
    pub recipe: Option<ImageRecipe>,
    /// Size of its files.
    pub size: Bytes,
}

impl Store {
    /// Opens the store in a directory, which is made when the first image comes.
    pub fn open(root: PathBuf) -> Self {
        Self::with_builder(root, Box::new(DebianBuilder))
    }

    fn with_builder(root: PathBuf, builder: Box<dyn Builder>) -> Self {
        Self { root, builder }
    }

    /// All images that this version of labrig would find, by key; damaged ones are left out.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub fn list(&self) -> Result<Vec<StoredImage>, PortError> {
        let mut images = BTreeMap::new();
        for name in names_in(&self.root.join("keys"))? {
            let Some(key) = name.get(..64).and_then(|text| text.parse::<Digest>().ok()) else {
                continue;
            };
            let Some(directory) = self.directory_of(key)? else {
                continue;
            };
            let Ok(manifest) = Manifest::verified(&directory, false) else {
                continue;
            };
            let size = Bytes(manifest.parts.values().map(Part::size).sum());
            let files = manifest.files(&directory);
            images.insert(
                key,
                StoredImage {
                    key,
                    files,
                    recipe: manifest.recipe,
                    size,
                },
            );
        }
        Ok(images.into_values().collect())
    }

    /// Names a key may have: an import's is the key, a build's has the builder's fingerprint, so
    /// that a changed builder does not find what its elder made.
    pub(super) fn key_names(&self, key: Digest) -> [String; 2] {
        [
            format!(
                "{key}-{}",
                self.builder.fingerprint().short(FINGERPRINT_DIGITS)
            ),
            key.to_string(),
        ]
    }

    fn directory_of(&self, key: Digest) -> Result<Option<PathBuf>, PortError> {
        for name in self.key_names(key) {
            if let Some(directory) = self.content_named_by(&name)? {
                return Ok(Some(directory));
            }
        }
        Ok(None)
    }

    pub(super) fn content_named_by(&self, key_name: &str) -> Result<Option<PathBuf>, PortError> {
        let path = self.root.join("keys").join(key_name);
        let text = match fs_err::read_to_string(&path) {
            Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(None),
            read => read?,
        };
        let digest: Digest = text.trim().parse().map_err(|e| {
            PortError::fatal(format!("read {}", path.display()), e)
                .hint("remove that file; the image is made again")
        })?;
        Ok(Some(self.content_directory(digest)))
    }

    pub(super) fn content_directory(&self, digest: Digest) -> PathBuf {
        self.root.join("content").join(digest.to_string())
    }

    pub(super) fn work_directory(&self, key: Digest) -> PathBuf {
        self.root.join("work").join(key.to_string())
    }

    /// Takes the lock of a key, which ends with the value, or with the process.
    fn lock(
        &self,
        key: Digest,
        progress: &(dyn Fn(&str) + Sync),
    ) -> Result<std::fs::File, PortError> {
        let (file, path) = self.open_lock(key)?;
        if file.try_lock().is_err() {
            progress("waiting for another labrig that makes this image");
            file.lock()
                .map_err(|e| PortError::fatal(format!("lock {}", path.display()), e))?;
        }
        Ok(file)
    }

    fn open_lock(&self, key: Digest) -> Result<(std::fs::File, PathBuf), PortError> {
        let directory = self.root.join("locks");
        fs_err::create_dir_all(&directory)?;
        let path = directory.join(key.to_string());
        let file = fs_err::OpenOptions::new()
            .create(true)
            .append(true)
            .open(&path)?;
        Ok(file.into_parts())
    }

    /// Discards what builds left that were killed. Builds that are going on keep theirs: they hold
    /// their key's lock.
    ///
    /// # Errors
    /// When something cannot be removed.
    pub fn sweep(&self) -> Result<(), PortError> {
        let keys = names_in(&self.root.join("work"))?;
        for key in keys.iter().filter_map(|name| name.parse().ok()) {
            let (file, _) = self.open_lock(key)?;
            if file.try_lock().is_ok() {
                self.builder.discard(&self.work_directory(key))?;
            }
        }
        Ok(())
    }

    /// What came so far of a file that is downloaded.
    fn partial(&self, key: Digest) -> PathBuf {
        self.root.join("work").join(format!("{key}.part"))
    }

    /// The directory of an image, which is made first when it is not there. Locks are taken from a
    /// layer down to what is below it, never the other way.
    fn directory_made(
        &self,
        image: &Image,
        progress: &(dyn Fn(&str) + Sync),
    ) -> Result<Option<PathBuf>, PortError> {
        self.ensure(image, &|step| progress(&format!("the image below: {step}")))?;
        self.directory_of(image.key)
    }

    fn check_space(&self, image: &Image) -> Result<(), PortError> {
        let needed = match &image.source {
            ImageSource::Build(recipe) => self.builder.space(recipe),
            // The server tells how large it is.
            ImageSource::Url { .. } => Bytes(0),
            // A raw disk is there twice while it is converted.
            ImageSource::Path {
                disk,
                kernel,
                initrd,
            } => {
                let sizes = [disk, disk, kernel, initrd].into_iter().flatten();
                Bytes(
                    sizes
                        .map(|p| fs_err::metadata(p).map_or(0, |m| m.len()))
                        .sum(),
                )
            }
        };
        let space = statvfs(&self.root).map_err(|e| {
            PortError::fatal(format!("ask for free space at {}", self.root.display()), e)
        })?;
        let free = Bytes(space.blocks_available() * space.fragment_size());
        if free >= needed {
            return Ok(());
        }
        let mib = |bytes: Bytes| bytes.0 >> 20;
        let what = format!(
            "make the image: {} has {} MiB free, {} MiB are needed",
            self.root.display(),
            mib(free),
            mib(needed)
        );
        Err(PortError::new(ErrorKind::Fatal, what)
            .hint("free some space, or set LABRIG_STATE_DIR to a directory on a larger disk"))
    }

    fn make(
        &self,
        image: &Image,
        work: &Path,
        progress: &(dyn Fn(&str) + Sync),
    ) -> Result<ImageFiles, PortError> {
        let [built_name, imported_name] = self.key_names(image.key);
        let (built, recipe, key_name) = match &image.source {
            ImageSource::Build(recipe) => {
                let base = match recipe.base() {
                    Some(base) => self.directory_made(base, progress)?,
                    None => None,
                };
                let built = self
                    .builder
                    .build(recipe, base.as_deref(), work, progress)?;
                (built, Some(recipe.clone()), built_name)
            }
            ImageSource::Path {
                disk,
                kernel,
                initrd,
            } => {
                progress("copying");
                let from = Paths {
                    disk: disk.as_ref(),
                    kernel: kernel.as_ref(),
                    initrd: initrd.as_ref(),
                };
                (import::import(image.key, from, work)?, None, imported_name)
            }
            ImageSource::Url { url, sha256 } => {
                // Beside the work, which does not outlive a failure.
                let partial = self.partial(image.key);
                Download::new(url, *sha256, partial.clone()).run(progress)?;
                progress("taking the download");
                let from = Paths {
                    disk: Some(&partial),
                    kernel: None,
                    initrd: None,
                };
                let built = import::import(image.key, from, work)?;
                remove_if_there(&partial)?;
                (built, None, imported_name)
            }
        };
        progress("publishing");
        let files = self.publish(built, recipe, work)?;
        let mut key_file = tempfile::NamedTempFile::new_in(work)?;
        writeln!(key_file, "{}", files.digest)?;
        key_file.as_file().sync_all()?;
        let keys = self.root.join("keys");
        fs_err::create_dir_all(&keys)?;
        key_file
            .persist(keys.join(&key_name))
            .map_err(|e| PortError::fatal("publish the image's key", e.error))?;
        Ok(files)
    }

    /// Gives the parts their names, makes them read-only and durable, and moves them into place.
    fn publish(
        &self,
        built: Built,
        recipe: Option<ImageRecipe>,
        work: &Path,
    ) -> Result<ImageFiles, PortError> {
        let stage = work.join("stage");
        fs_err::create_dir(&stage)?;
        let mut parts = BTreeMap::new();
        for (role, from) in [
            (Role::Disk, built.disk),
            (Role::Kernel, built.kernel),
            (Role::Initrd, built.initrd),
            (Role::Tree, built.tree),
        ] {
            let Some(from) = from else { continue };
            let to = stage.join(role.file_name());
            fs_err::rename(from, &to)?;
            seal(&to)?;
            parts.insert(role, Part::of(&to)?);
        }
        let manifest = Manifest::new(parts, built.packages, recipe);
        let text = serde_json::to_vec_pretty(&manifest)
            .map_err(|e| PortError::fatal("write the manifest", e))?;
        fs_err::write(stage.join(FILE_NAME), text)?;
        seal(&stage.join(FILE_NAME))?;

        let directory = self.content_directory(manifest.digest);
        fs_err::create_dir_all(self.root.join("content"))?;
        if directory.exists() {
            if Manifest::verified(&directory, false).is_ok() {
                return Ok(manifest.files(&directory));
            }
            fs_err::rename(&directory, work.join("damaged"))?;
        }
        match fs_err::rename(&stage, &directory) {
            // Another key with the same content was quicker.
            Err(_) if Manifest::verified(&directory, false).is_ok() => {}
            renamed => renamed?,
        }
        Ok(manifest.files(&directory))
    }
}

impl ImageStore for Store {
    fn find(&self, key: Digest) -> Result<Option<ImageFiles>, PortError> {
        let Some(directory) = self.directory_of(key)? else {
            return Ok(None);
        };
        match Manifest::verified(&directory, false) {
            Ok(manifest) => Ok(Some(manifest.files(&directory))),
            Err(error) => Err(PortError::fatal(format!("use the image in {}", directory.display()), error)
                .hint("remove that directory and the files in `keys` that name it; the image is then made again")),
        }
    }

    fn ensure(
        &self,
        image: &Image,
        progress: &(dyn Fn(&str) + Sync),
    ) -> Result<ImageFiles, PortError> {
        if let Some(files) = self.find(image.key)? {
            return Ok(files);
        }
        let _hold = self.hold()?;
        let _lock = self.lock(image.key, progress)?;
        if let Some(files) = self.find(image.key)? {
            return Ok(files);
        }
        // We hold the lock, so whoever left this is dead.
        let work = self.work_directory(image.key);
        self.builder.discard(&work)?;
        self.check_space(image)?;
        fs_err::create_dir_all(&work)?;
        let made = self.make(image, &work, progress);
        // What matters is whether the image was made; the next one to take the lock sweeps again.
        let _ = self.builder.discard(&work);
        made
    }
}

/// Makes a finished file read-only and durable.
fn seal(path: &Path) -> io::Result<()> {
    fs_err::set_permissions(path, std::fs::Permissions::from_mode(0o444))?;
    fs_err::File::open(path)?.sync_all()
}

pub(super) fn names_in(directory: &Path) -> io::Result<Vec<String>> {
    let entries = match fs_err::read_dir(directory) {
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        read => read?,
    };
    let mut names = entries
        .map(|entry| Ok(entry?.file_name().to_string_lossy().into_owned()))
        .collect::<io::Result<Vec<_>>>()?;
    names.sort();
    Ok(names)
}

#[cfg(test)]
#[path = "store_tests.rs"]
mod tests;
