//! A domain's share of the host.

use serde::{Deserialize, Serialize};

use super::Bytes;

/// CPUs and memory of a domain.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Split {
    /// Virtual CPUs, or the host's threads where the domain is the host itself.
    pub vcpus: u32,
    /// Memory.
    pub memory: Bytes,
}
