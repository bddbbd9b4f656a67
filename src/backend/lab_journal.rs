//! The journal of a lab: what was done to it, written down before it was done.

use std::io::Write;
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};

use fs_err as fs;
use jiff::Timestamp;

use crate::ports::{Journal, PortError};

/// A journal file, one JSON object a line, appended to.
pub struct LabJournal {
    file: Mutex<fs::File>,
}

impl LabJournal {
    /// Opens it, or makes it.
    ///
    /// # Errors
    /// When the file cannot be used.
    pub fn open(path: PathBuf) -> std::io::Result<Self> {
        let file = fs::OpenOptions::new()
            .create(true)
            .append(true)
            .open(path)?;
        Ok(Self {
            file: Mutex::new(file),
        })
    }
}

impl Journal for LabJournal {
    fn intend(&self, title: &str, reason: &str) -> Result<(), PortError> {
        let line = serde_json::json!({ "at": Timestamp::now(), "intend": title, "reason": reason });
        let mut file = self.file.lock().unwrap_or_else(PoisonError::into_inner);
        file.write_all(format!("{line}\n").as_bytes())?;
        Ok(file.sync_data()?)
    }
}
