//! `run.json`: what kind of directory this is, and where it comes from.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::model::Digest;

/// Version of the archive format. A reader takes every minor version of its own major one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Format {
    /// Goes up when an older reader would misread.
    pub major: u32,
    /// Goes up when something is added.
    pub minor: u32,
}

/// The program that wrote an archive.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tool {
    /// Its name.
    pub name: String,
    /// Its version.
    pub version: String,
}

/// The run that another one repeats.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DerivedFrom {
    /// Where its directory was, for people.
    pub path: String,
    /// The root digest of its lock.
    pub root: Digest,
}

/// `run.json`. Whether a run is finished is not stored: it follows from its trials.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Manifest {
    /// Version of the archive format.
    pub format: Format,
    /// What wrote it.
    pub tool: Tool,
    /// When it was created, UTC.
    pub created: Timestamp,
    /// On which machine, where that is known.
    pub host: Option<String>,
    /// By whom, where that is known.
    pub user: Option<String>,
    /// The run it repeats, if one.
    pub derived_from: Option<DerivedFrom>,
}

impl Format {
    /// The format this program writes.
    pub const CURRENT: Self = Self { major: 1, minor: 0 };
}

impl Manifest {
    /// The manifest of a run that this program creates.
    pub fn new(created: Timestamp) -> Self {
        Self {
            format: Format::CURRENT,
            tool: Tool {
                name: "labrig".to_owned(),
                version: env!("CARGO_PKG_VERSION").to_owned(),
            },
            created,
            host: None,
            user: None,
            derived_from: None,
        }
    }
}
