//! The two languages that labrig reads.

use std::fmt;

use super::playbook_spec::PLAYBOOK;
use super::shape::Shape;
use super::topology::TOPOLOGY;

/// A language of labrig's files.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Language {
    /// What a lab is.
    Topology,
    /// What is done on it.
    Playbook,
}

impl Language {
    /// The keys of a file.
    pub(super) fn shape(self) -> &'static Shape {
        match self {
            Self::Topology => &TOPOLOGY,
            Self::Playbook => &PLAYBOOK,
        }
    }
}

impl fmt::Display for Language {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Topology => "topology",
            Self::Playbook => "playbook",
        })
    }
}
