//! Where labrig keeps labs and images on this machine.

use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use fs_err as fs;
use nix::unistd::Uid;

use super::error::{Failure, Kind, Result};
use crate::model::{LabPaths, Name};

/// The state directory.
#[derive(Debug, Clone)]
pub(super) struct State {
    root: PathBuf,
}

impl State {
    /// The directory that was asked for, else the one of the user.
    pub(super) fn of(asked: Option<&Path>) -> Result<Self> {
        let root = match asked {
            Some(root) => std::path::absolute(root)?,
            None => Self::default_root()?,
        };
        Ok(Self { root })
    }

    fn default_root() -> Result<PathBuf> {
        if Uid::effective().is_root() {
            return Ok(PathBuf::from("/var/lib/labrig"));
        }
        // The XDG base directory specification: relative paths are to be ignored.
        let absolute = |name| {
            std::env::var_os(name)
                .map(PathBuf::from)
                .filter(|path| path.is_absolute())
        };
        absolute("XDG_STATE_HOME")
            .or_else(|| absolute("HOME").map(|home| home.join(".local/state")))
            .map(|state| state.join("labrig"))
            .ok_or_else(|| {
                Failure::usage("find a state directory: HOME is not set").hint("use --state-dir")
            })
    }

    pub(super) fn root(&self) -> &Path {
        &self.root
    }

    /// The image store.
    pub(super) fn images(&self) -> PathBuf {
        self.root.join("images")
    }

    /// libvirt's cache, shared by all embedded hosts: what it found out of QEMU takes a second.
    pub(super) fn libvirt_cache(&self) -> PathBuf {
        self.root.join("cache/libvirt")
    }

    /// The remembered verdict on KVM.
    pub(super) fn kvm_verdict(&self) -> PathBuf {
        self.root.join("cache/kvm.json")
    }

    /// A lab's directory.
    pub(super) fn lab(&self, name: &Name) -> LabPaths {
        LabPaths::new(self.labs().join(name.as_str()))
    }

    fn labs(&self) -> PathBuf {
        self.root.join("labs")
    }

    /// Names of all labs, sorted.
    pub(super) fn lab_names(&self) -> Result<Vec<Name>> {
        let entries = match fs::read_dir(self.labs()) {
            Ok(entries) => entries,
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(e) => return Err(e.into()),
        };
        let mut names = Vec::new();
        for entry in entries {
            let entry = entry?;
            if entry.file_type()?.is_dir() {
                names.extend(
                    entry
                        .file_name()
                        .to_str()
                        .and_then(|name| name.parse().ok()),
                );
            }
        }
        names.sort();
        Ok(names)
    }

    /// Takes the lock of a lab for a verb that changes it; held until the value is dropped.
    pub(super) fn lock(&self, name: &Name, verb: &str) -> Result<LabLock> {
        fs::create_dir_all(self.labs())?;
        let path = self.labs().join(format!("{name}.lock"));
        loop {
            let file = fs::OpenOptions::new()
                .create(true)
                .truncate(false)
                .read(true)
                .write(true)
                .open(&path)?;
            match file.file().try_lock() {
                Ok(()) => {}
                Err(std::fs::TryLockError::WouldBlock) => return Err(in_use(name, &path)),
                Err(std::fs::TryLockError::Error(e)) => return Err(e.into()),
            }
            // A `down` may have removed the file between opening and locking; a lock on what is
            // gone from its place is a lock on nothing.
            let is_in_place = fs::metadata(&path).is_ok_and(|there| {
                file.metadata()
                    .is_ok_and(|locked| (locked.dev(), locked.ino()) == (there.dev(), there.ino()))
            });
            if is_in_place {
                // For people's eyes only: a full disk must not keep a lab from being taken down.
                let _ = fs::write(&path, format!("{verb}, process {}\n", std::process::id()));
                return Ok(LabLock {
                    path,
                    lab: self.lab(name).root().to_owned(),
                    _file: file.into_file(),
                });
            }
        }
    }
}

fn in_use(name: &Name, lock: &Path) -> Failure {
    let holder = fs::read_to_string(lock).unwrap_or_default();
    let message = format!(
        "change lab {name}: another labrig is at it ({})",
        holder.trim()
    );
    Failure::new(Kind::Host, anyhow::Error::msg(message)).hint("wait for it, or end it")
}

/// The lock of a lab. Its file lasts as long as the lab: it goes with the lock when the lab is gone,
/// or was not made after all.
pub(super) struct LabLock {
    path: PathBuf,
    lab: PathBuf,
    _file: std::fs::File,
}

impl Drop for LabLock {
    fn drop(&mut self) {
        if !self.lab.exists() {
            let _ = fs::remove_file(&self.path); // an empty lock does no harm
        }
    }
}
