//! The one process that adds to a run.

use std::collections::BTreeMap;
use std::io::{Read, Seek, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use fs_err as fs;

use super::journal::JournalWriter;
use super::layout::{self, AttemptName};
use super::run_dir::{read_outcomes, write_json};
use super::{ArchiveError, RunDir, durable};
use crate::model::{Event, EventLevel, Name, Outcome, Trial};
use crate::ports::{Attempt, Attempts, Clock, PortError};

/// The writer of a run: it holds the run's lock until it is dropped, or its process ends.
pub struct Writer {
    run: RunDir,
    clock: Arc<dyn Clock>,
    state: Mutex<State>,
    /// Locked by this process; the kernel unlocks it when the process is gone.
    _lock: fs::File,
}

struct State {
    journal: JournalWriter,
    trials: BTreeMap<u32, TrialState>,
}

/// What is known of a planned trial.
struct TrialState {
    trial: Trial,
    directory: PathBuf,
    committed: Vec<Outcome>,
}

impl Writer {
    pub(super) fn open(
        run: &RunDir,
        name: &Name,
        clock: Arc<dyn Clock>,
    ) -> Result<Self, ArchiveError> {
        let lock = take_lock(run.path())?;
        let directories = run.trial_directories()?;
        let mut trials = BTreeMap::new();
        let mut put_aside = Vec::new();
        for trial in run.trials() {
            let (directory, committed) = match directories.get(&trial.number) {
                Some(directory) => {
                    put_aside.extend(put_open_attempts_aside(directory)?);
                    (directory.clone(), read_outcomes(trial, directory)?)
                }
                None => {
                    let name = layout::trial_directory(trial);
                    (run.path().join(layout::TRIALS).join(name), Vec::new())
                }
            };
            trials.insert(
                trial.number,
                TrialState {
                    trial: trial.clone(),
                    directory,
                    committed,
                },
            );
        }
        let journals = run.path().join(layout::JOURNAL);
        let (journal, torn) = JournalWriter::open(journals.join(format!("{name}.ndjson")))?;
        durable::sync_directory(&journals).map_err(ArchiveError::io("open the journal"))?;

        let writer = Self {
            run: run.clone(),
            clock,
            state: Mutex::new(State { journal, trials }),
            _lock: lock,
        };
        if torn > 0 {
            writer.warn(format!(
                "the journal's last line was torn: {torn} bytes were cut off"
            ))?;
        }
        for path in put_aside {
            writer.warn(format!(
                "an attempt was left unfinished and is kept as {}",
                path.display()
            ))?;
        }
        Ok(writer)
    }

    /// The run it writes.
    pub fn run(&self) -> &RunDir {
        &self.run
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // Every change of the state is one assignment: a thread that panicked left it whole.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn warn(&self, text: String) -> Result<(), ArchiveError> {
        let event = Event::Message {
            level: EventLevel::Warning,
            text,
        };
        self.state().journal.append(self.clock.now(), &event)
    }

    fn open_attempt(&self, trial: &Trial) -> Result<Attempt, ArchiveError> {
        let failed = || ArchiveError::io(format!("begin an attempt at trial {}", trial.number));
        let mut state = self.state();
        let known = self.known(&mut state, trial)?;
        make_trial_directory(known)?;
        // A caller that gave an attempt up left it open.
        put_open_attempts_aside(&known.directory)?;
        let names = layout::attempt_names(&known.directory).map_err(failed())?;
        let number = names.iter().map(|name| name.number()).max().unwrap_or(0) + 1;
        let directory = known.directory.join(AttemptName::Open(number).to_string());
        fs::create_dir(&directory).map_err(failed())?;
        Ok(Attempt { number, directory })
    }

    fn commit_attempt(
        &self,
        trial: &Trial,
        attempt: &Attempt,
        outcome: &Outcome,
    ) -> Result<(), ArchiveError> {
        let failed = || ArchiveError::io(format!("commit an attempt at trial {}", trial.number));
        let mut state = self.state();
        state.journal.sync()?;
        let known = self.known(&mut state, trial)?;
        if outcome.attempt != attempt.number {
            let why = format!("its outcome says it is attempt {}", outcome.attempt);
            return Err(ArchiveError::Inconsistent {
                path: attempt.directory.clone(),
                why,
            });
        }
        let open = known
            .directory
            .join(AttemptName::Open(attempt.number).to_string());
        write_json(&open.join(layout::OUTCOME), outcome)?;
        durable::sync_tree(&open).map_err(failed())?;
        let committed = known
            .directory
            .join(AttemptName::Committed(attempt.number).to_string());
        durable::rename_new(&open, &committed).map_err(failed())?;
        known.committed.push(outcome.clone());
        Ok(())
    }

    fn known<'s>(
        &self,
        state: &'s mut State,
        trial: &Trial,
    ) -> Result<&'s mut TrialState, ArchiveError> {
        state
            .trials
            .get_mut(&trial.number)
            .filter(|known| known.trial == *trial)
            .ok_or_else(|| ArchiveError::UnknownTrial {
                path: self.run.path().to_owned(),
                number: trial.number,
            })
    }
}

impl Attempts for Writer {
    fn is_done(&self, trial: &Trial) -> bool {
        let mut state = self.state();
        self.known(&mut state, trial)
            .is_ok_and(|known| known.committed.iter().any(Outcome::is_good))
    }

    fn begin(&self, trial: &Trial) -> Result<Attempt, PortError> {
        Ok(self.open_attempt(trial)?)
    }

    fn commit(&self, trial: &Trial, attempt: Attempt, outcome: &Outcome) -> Result<(), PortError> {
        Ok(self.commit_attempt(trial, &attempt, outcome)?)
    }

    fn record(&self, event: &Event) -> Result<(), PortError> {
        Ok(self.state().journal.append(self.clock.now(), event)?)
    }
}

/// Locks the run for this process. The file stays when the lock is gone: removing it would let two
/// processes hold a lock each, on two files of one name.
fn take_lock(run: &Path) -> Result<fs::File, ArchiveError> {
    let failed = || ArchiveError::io("lock the run directory");
    let path = run.join(layout::WRITER);
    let mut file = fs::OpenOptions::new()
        .create(true)
        .truncate(false)
        .read(true)
        .write(true)
        .open(&path)
        .map_err(failed())?;
    match file.try_lock() {
        Ok(()) => {}
        Err(std::fs::TryLockError::WouldBlock) => {
            let mut holder = String::new();
            // Only to tell people more; that the lock is held is known already.
            if file.read_to_string(&mut holder).is_err() || holder.trim().is_empty() {
                holder = "another process".to_owned();
            }
            return Err(ArchiveError::InUse {
                path: run.to_owned(),
                holder: holder.trim().to_owned(),
            });
        }
        Err(std::fs::TryLockError::Error(error)) => return Err(failed()(error)),
    }
    let holder = format!("process {}\n", std::process::id());
    file.set_len(0)
        .and_then(|()| file.rewind())
        .map_err(failed())?;
    file.write_all(holder.as_bytes()).map_err(failed())?;
    Ok(file)
}

/// Makes a trial's directory with its identity, unless it is there.
fn make_trial_directory(known: &TrialState) -> Result<(), ArchiveError> {
    let failed = || ArchiveError::io(format!("make a directory for trial {}", known.trial.number));
    let identity = known.directory.join(layout::TRIAL);
    if identity.exists() {
        return Ok(());
    }
    fs::create_dir_all(&known.directory).map_err(failed())?;
    let draft = known.directory.join(format!(".{}.tmp", layout::TRIAL));
    match fs::remove_file(&draft) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => return Err(failed()(error)),
        _ => {}
    }
    write_json(&draft, &known.trial)?;
    durable::rename_new(&draft, &identity).map_err(failed())?;
    known
        .directory
        .parent()
        .map_or(Ok(()), durable::sync_directory)
        .map_err(failed())
}

/// Renames attempts that were begun and never committed, so that what they hold is kept and their
/// numbers are not used again. Returns where they are now.
fn put_open_attempts_aside(trial: &Path) -> Result<Vec<PathBuf>, ArchiveError> {
    let failed = || ArchiveError::io("put an unfinished attempt aside");
    let mut moved = Vec::new();
    for name in layout::attempt_names(trial).map_err(failed())? {
        if let AttemptName::Open(number) = name {
            let aside = trial.join(AttemptName::Abandoned(number).to_string());
            durable::rename_new(&trial.join(name.to_string()), &aside).map_err(failed())?;
            moved.push(aside);
        }
    }
    Ok(moved)
}
