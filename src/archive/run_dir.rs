//! A run directory: created whole, opened for reading at any time, by anyone.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use fs_err as fs;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::layout::{self, AttemptName};
use super::manifest::{Format, Manifest};
use super::{ArchiveError, Entry, Journal, Lock, Results, Writer, durable, index, inputs};
use crate::model::{Digest, Name, Outcome, Playbook, Topology, Trial};
use crate::ports::Clock;

/// How many names are tried for a new run directory; each is taken with a chance of 2⁻²⁴ per run
/// of the same second.
const NAME_TRIES: u32 = 100;

/// A run directory.
#[derive(Debug, Clone)]
pub struct RunDir {
    path: PathBuf,
    manifest: Manifest,
    lock: Lock,
    plan: PlanFile,
}

/// `plan.json`: everything decided before the first trial.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct PlanFile {
    playbook: Playbook,
    topology: Topology,
    trials: Vec<Trial>,
}

/// The part of `run.json` that every version of it has.
#[derive(Deserialize)]
struct AnyManifest {
    format: Format,
}

impl RunDir {
    /// Creates `root/PLAYBOOK/STAMP-TAG/` with everything that is known before the first trial. It
    /// appears whole or not at all, and durable.
    ///
    /// `inputs` are paths relative to `inputs/` with their content.
    ///
    /// # Errors
    /// When the disk does not take it, or an input's path would leave `inputs/`.
    pub fn create(
        root: &Path,
        manifest: &Manifest,
        inputs: &[(PathBuf, Vec<u8>)],
        trials: &[Trial],
        playbook: &Playbook,
        topology: &Topology,
        lock: &Lock,
    ) -> Result<Self, ArchiveError> {
        let failed = || ArchiveError::io("create a run directory");
        inputs::check(inputs)?;
        lock.verify()?;
        let parent = std::path::absolute(root)
            .map_err(failed())?
            .join(playbook.name.as_str());
        fs::create_dir_all(&parent).map_err(failed())?;
        let draft = tempfile::Builder::new()
            .prefix(".new-")
            .permissions(std::os::unix::fs::PermissionsExt::from_mode(0o755))
            .tempdir_in(&parent)
            .map_err(failed())?;

        let plan = PlanFile {
            playbook: playbook.clone(),
            topology: topology.clone(),
            trials: trials.to_vec(),
        };
        let base = draft.path();
        for directory in [layout::INPUTS, layout::JOURNAL, layout::TRIALS] {
            fs::create_dir(base.join(directory)).map_err(failed())?;
        }
        for (path, content) in inputs {
            let path = base.join(layout::INPUTS).join(path);
            path.parent()
                .map_or(Ok(()), fs::create_dir_all)
                .map_err(failed())?;
            durable::write_new(&path, content).map_err(failed())?;
        }
        write_json(&base.join(layout::LOCK), lock)?;
        write_json(&base.join(layout::PLAN), &plan)?;
        write_json(&base.join(layout::MANIFEST), manifest)?;
        durable::sync_tree(base).map_err(failed())?;

        let path = (0..NAME_TRIES)
            .map(|salt| parent.join(layout::run_directory(manifest.created, lock.root, salt)))
            .find_map(|path| match durable::rename_new(base, &path) {
                Ok(()) => Some(Ok(path)),
                Err(e) if is_taken(&e) => None,
                Err(e) => Some(Err(failed()(e))),
            })
            .unwrap_or_else(|| Err(failed()(io::ErrorKind::AlreadyExists.into())))?;
        // It is not at its old place any more: nothing to clean up.
        let _ = draft.keep();
        Ok(Self {
            path,
            manifest: manifest.clone(),
            lock: lock.clone(),
            plan,
        })
    }

    /// Opens a run directory for reading.
    ///
    /// # Errors
    /// When it is none, was written in a newer format, or its lock or plan is damaged.
    pub fn open(path: &Path) -> Result<Self, ArchiveError> {
        let path = std::path::absolute(path).map_err(ArchiveError::io("open a run directory"))?;
        let manifest = read_manifest(&path)?;
        let lock: Lock = read_json(&path.join(layout::LOCK))?;
        lock.verify()?;
        let plan = read_json(&path.join(layout::PLAN))?;
        Ok(Self {
            path,
            manifest,
            lock,
            plan,
        })
    }

    /// Becomes the run's writer, under a name that its journal has. Attempts that a dead writer
    /// left are put aside.
    ///
    /// # Errors
    /// [`ArchiveError::InUse`] when another process is the writer.
    pub fn writer(&self, name: &Name, clock: Arc<dyn Clock>) -> Result<Writer, ArchiveError> {
        Writer::open(self, name, clock)
    }

    /// Where it is; absolute.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// What kind of directory it is and where it comes from.
    pub fn manifest(&self) -> &Manifest {
        &self.manifest
    }

    /// What went into the run.
    pub fn lock(&self) -> &Lock {
        &self.lock
    }

    /// The experiment.
    pub fn playbook(&self) -> &Playbook {
        &self.plan.playbook
    }

    /// The lab.
    pub fn topology(&self) -> &Topology {
        &self.plan.topology
    }

    /// All trials in the run's order.
    pub fn trials(&self) -> &[Trial] {
        &self.plan.trials
    }

    /// Where the input files are, as they were.
    pub fn inputs_path(&self) -> PathBuf {
        self.path.join(layout::INPUTS)
    }

    /// Reads the input files back, sorted, by their path below [`Self::inputs_path`].
    ///
    /// # Errors
    /// When one differs from its digest in the lock (leaf `input.PATH`), or one that the lock
    /// names is gone.
    pub fn inputs(&self) -> Result<Vec<(PathBuf, Vec<u8>)>, ArchiveError> {
        let failed = || ArchiveError::io("read the archived inputs");
        let base = self.inputs_path();
        let mut files = BTreeMap::new();
        for entry in walkdir::WalkDir::new(&base) {
            let entry = entry.map_err(|e| failed()(e.into()))?;
            if entry.file_type().is_file() {
                let content = fs::read(entry.path()).map_err(failed())?;
                let relative = entry.path().strip_prefix(&base).unwrap_or(entry.path());
                files.insert(relative.to_owned(), content);
            }
        }
        for (leaf, digest) in &self.lock.leaves {
            let Some(path) = leaf.strip_prefix("input.") else {
                continue;
            };
            let wrong = |why: &str| ArchiveError::Inconsistent {
                path: base.join(path),
                why: why.to_owned(),
            };
            let content = files
                .get(Path::new(path))
                .ok_or_else(|| wrong("the lock names it, but it is gone"))?;
            if Digest::of(content).to_string() != *digest {
                return Err(wrong("it is not what the lock says it was"));
            }
        }
        Ok(files.into_iter().collect())
    }

    /// Reads all trials with their committed attempts.
    ///
    /// # Errors
    /// When a committed attempt cannot be read, or a trial's directory is another trial's.
    pub fn results(&self) -> Result<Results, ArchiveError> {
        let directories = self.trial_directories()?;
        let trials = self
            .trials()
            .iter()
            .map(|trial| {
                let outcomes = match directories.get(&trial.number) {
                    Some(directory) => read_outcomes(trial, directory)?,
                    None => Vec::new(),
                };
                Ok((trial.clone(), outcomes))
            })
            .collect::<Result<_, ArchiveError>>()?;
        Ok(Results {
            playbook: self.playbook().clone(),
            trials,
        })
    }

    /// Reads the journals of all writers, by writer.
    ///
    /// # Errors
    /// When one is damaged other than in its last line.
    pub fn journals(&self) -> Result<BTreeMap<String, Vec<Entry>>, ArchiveError> {
        let failed = || ArchiveError::io("list the journals");
        let mut journals = BTreeMap::new();
        for entry in fs::read_dir(self.path.join(layout::JOURNAL)).map_err(failed())? {
            let path = entry.map_err(failed())?.path();
            let Some(writer) = path
                .file_stem()
                .filter(|_| path.extension().is_some_and(|e| e == "ndjson"))
            else {
                continue;
            };
            journals.insert(
                writer.to_string_lossy().into_owned(),
                Journal::read(&path)?.entries,
            );
        }
        Ok(journals)
    }

    /// Writes `results.sqlite` anew from the committed trials and returns its path.
    ///
    /// # Errors
    /// When a trial cannot be read or the index not be written.
    pub fn index(&self) -> Result<PathBuf, ArchiveError> {
        let file = self.path.join(layout::INDEX);
        index::write(&file, self, &self.results()?)?;
        Ok(file)
    }

    /// The directories of the trials that have one, by trial number.
    pub(super) fn trial_directories(&self) -> Result<BTreeMap<u32, PathBuf>, ArchiveError> {
        let base = self.path.join(layout::TRIALS);
        let names =
            layout::trial_directories(&base).map_err(ArchiveError::io("list the trials"))?;
        Ok(names
            .into_iter()
            .map(|(number, name)| (number, base.join(name)))
            .collect())
    }
}

/// Reads `run.json`, in any format this program knows.
pub(super) fn read_manifest(path: &Path) -> Result<Manifest, ArchiveError> {
    let file = path.join(layout::MANIFEST);
    if !file.is_file() {
        return Err(ArchiveError::NotARun(path.to_owned()));
    }
    let AnyManifest { format } = read_json(&file)?;
    let known = Format::CURRENT.major;
    if format.major != known {
        return Err(ArchiveError::OtherFormat {
            path: path.to_owned(),
            found: format.major,
            known,
        });
    }
    read_json(&file)
}

/// Reads the committed attempts in a trial's directory, by number.
pub(super) fn read_outcomes(trial: &Trial, directory: &Path) -> Result<Vec<Outcome>, ArchiveError> {
    let stored: Trial = match directory.join(layout::TRIAL) {
        // The writer died between making the directory and this file: nothing is in it yet.
        file if !file.exists() => return Ok(Vec::new()),
        file => read_json(&file)?,
    };
    let inconsistent = |path: &Path, why: &str| {
        Err(ArchiveError::Inconsistent {
            path: path.to_owned(),
            why: why.to_owned(),
        })
    };
    if stored != *trial {
        return inconsistent(directory, "it holds another trial than the plan says");
    }
    let mut outcomes = Vec::new();
    for name in layout::attempt_names(directory).map_err(ArchiveError::io("list attempts"))? {
        let AttemptName::Committed(number) = name else {
            continue;
        };
        let file = directory.join(name.to_string()).join(layout::OUTCOME);
        let outcome: Outcome = read_json(&file)?;
        if outcome.attempt != number {
            return inconsistent(&file, "it is of another attempt than its directory");
        }
        outcomes.push(outcome);
    }
    Ok(outcomes)
}

/// Reads a JSON file.
pub(super) fn read_json<T: DeserializeOwned>(file: &Path) -> Result<T, ArchiveError> {
    let bytes = fs::read(file).map_err(ArchiveError::io("read the archive"))?;
    serde_json::from_slice(&bytes).map_err(ArchiveError::json(file))
}

/// Writes a new JSON file for people and programs: indented, with a last line end. A value that would
/// not read back the same is refused now, not when it is needed.
pub(super) fn write_json<T>(file: &Path, value: &T) -> Result<(), ArchiveError>
where
    T: Serialize + DeserializeOwned + PartialEq,
{
    let what = || file.display().to_string();
    let mut bytes = serde_json::to_vec_pretty(value).map_err(|source| ArchiveError::Encode {
        what: what(),
        source,
    })?;
    if !serde_json::from_slice::<T>(&bytes).is_ok_and(|read| read == *value) {
        return Err(ArchiveError::Unfaithful { what: what() });
    }
    bytes.push(b'\n');
    durable::write_new(file, &bytes).map_err(ArchiveError::io("write the archive"))
}

/// Whether a rename failed because its target exists.
pub(super) fn is_taken(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::AlreadyExists | io::ErrorKind::DirectoryNotEmpty
    )
}
