//! A lab with everything decided: defaults filled, counts expanded, names bound, addresses fixed.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::{CpuSet, Domain, HostShape, Image, Name, Vswitch};

/// What a lab is. Serialised, it is what locks and archives hold.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Topology {
    /// Which lab this is.
    pub lab: Lab,
    /// The host it is planned for.
    #[serde(default, skip_serializing_if = "LabHost::is_default")]
    pub host: LabHost,
    /// Variables that templates see; secrets are not among them.
    pub vars: serde_json::Map<String, serde_json::Value>,
    /// Environment variables that secret variables come from, by the variable's name.
    pub secrets: BTreeMap<String, String>,
    /// Images by name; only those that a domain uses.
    pub images: BTreeMap<Name, Image>,
    /// Virtual switches by name.
    pub vswitches: BTreeMap<Name, Vswitch>,
    /// Domains, in the file's order with counts expanded.
    pub domains: Vec<Domain>,
}

/// A lab's identity: all object names and addresses derive from it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Lab {
    /// The lab's name.
    pub name: Name,
}

/// The host a lab is planned for.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LabHost {
    /// The host as the topology describes it; none: whatever host it is brought up on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub described: Option<HostShape>,
    /// Hardware threads that are kept for the host itself.
    #[serde(default, skip_serializing_if = "CpuSet::is_empty")]
    pub reserve: CpuSet,
}

impl LabHost {
    fn is_default(&self) -> bool {
        *self == Self::default()
    }
}

/// A file in the guest, from a template.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct GuestFile {
    /// Template, relative to the template directory.
    pub template: String,
    /// Absolute path in the guest.
    pub to: String,
    /// Permission bits.
    pub mode: u32,
    /// Values the template sees as `vars`.
    pub vars: serde_json::Map<String, serde_json::Value>,
}

impl Topology {
    /// Finds a domain by name.
    pub fn domain(&self, name: &str) -> Option<&Domain> {
        self.domains.iter().find(|d| d.name.as_str() == name)
    }
}
