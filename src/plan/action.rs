//! One thing to do to a lab, and the list of them.

use std::net::Ipv4Addr;
use std::path::PathBuf;

use serde::Serialize;

use std::sync::Arc;

use crate::model::{
    Bytes, DiskFormat, Image, Medium, Name, PortImpairment, Reservation, Seconds, Split,
};
use crate::render::{Hosts, Seed};

/// What is to be done, in an order that `after` gives.
#[derive(Debug, Clone, Default, Serialize)]
pub struct Plan {
    /// The actions; each comes after those it names.
    pub actions: Vec<Action>,
}

/// One thing to do.
#[derive(Debug, Clone, Serialize)]
pub struct Action {
    /// What.
    #[serde(flatten)]
    pub kind: ActionKind,
    /// Why, for people.
    pub reason: String,
    /// Indexes of the actions that must be done before.
    pub after: Vec<usize>,
    /// The domain it belongs to, if one.
    pub domain: Option<Name>,
}

/// Kinds of action. Names are libvirt names unless they say otherwise.
#[derive(Debug, Clone, Serialize)]
#[serde(tag = "action", rename_all = "snake_case")]
pub enum ActionKind {
    /// Find, build or import an image and link it into the lab.
    EnsureImage {
        /// Name in the topology.
        name: Name,
        /// The image.
        image: Image,
        /// Link to make to its directory.
        link: PathBuf,
    },
    /// Define a network.
    DefineNetwork {
        /// The network.
        name: String,
        /// Its definition.
        xml: String,
    },
    /// Start a network.
    StartNetwork {
        /// The network.
        name: String,
    },
    /// Reserve an address, or give it up, in a network that stays.
    Reserve {
        /// The network.
        network: String,
        /// The address.
        reservation: Reservation,
        /// Whether it is to be there.
        wanted: bool,
    },
    /// Stop and undefine a network.
    RemoveNetwork {
        /// The network.
        name: String,
    },
    /// Make a disk.
    CreateDisk {
        /// Its file.
        path: PathBuf,
        /// What it lies on.
        on: Medium,
        /// Its format.
        format: DiskFormat,
        /// The disk below it.
        backing: Option<PathBuf>,
        /// Virtual size; none: that of `backing`.
        size: Option<Bytes>,
    },
    /// Write a seed disk.
    WriteSeed {
        /// Its file.
        path: PathBuf,
        /// What is in it; it holds keys and is never shown.
        #[serde(skip)]
        seed: Seed,
    },
    /// Remove a disk or seed.
    RemoveFile {
        /// The file.
        path: PathBuf,
    },
    /// Define a domain, or redefine it in place.
    DefineDomain {
        /// The domain.
        name: String,
        /// Its definition.
        xml: String,
    },
    /// Start a domain.
    StartDomain {
        /// The domain.
        name: String,
    },
    /// Set what frames of a vnet meet.
    Impair {
        /// The vnet's vswitch.
        vswitch: Name,
        /// The vnet's device.
        device: String,
        /// What they are to meet.
        impairment: PortImpairment,
    },
    /// End a domain at once.
    StopDomain {
        /// The domain.
        name: String,
    },
    /// Undefine a domain.
    RemoveDomain {
        /// The domain.
        name: String,
    },
    /// Move a running domain to the CPUs that are its own.
    MoveDomain {
        /// The domain.
        name: String,
        /// Where it belongs.
        split: Box<Split>,
    },
    /// Wait until a domain is ready, and see that it is where it belongs on the host.
    AwaitReady {
        /// The domain.
        name: String,
        /// Where its SSH server listens.
        address: Ipv4Addr,
        /// Longest wait for each step on the way there.
        timeout: Seconds,
        /// Names and addresses it is told then; none for one that writes them itself.
        #[serde(skip)]
        hosts: Option<Arc<Hosts>>,
        /// Where on the host it belongs.
        split: Box<Split>,
    },
    /// Tell a domain that runs the names and addresses of all domains.
    TellHosts {
        /// The domain.
        name: String,
        /// Where its SSH server listens.
        address: Ipv4Addr,
        /// Longest time for it.
        timeout: Seconds,
        /// Names and addresses.
        #[serde(skip)]
        hosts: Arc<Hosts>,
    },
}

impl Plan {
    /// Whether there is nothing to do.
    pub fn is_empty(&self) -> bool {
        self.actions.is_empty()
    }

    pub(super) fn push(
        &mut self,
        kind: ActionKind,
        reason: impl Into<String>,
        after: &[usize],
        domain: Option<&Name>,
    ) -> usize {
        self.actions.push(Action {
            kind,
            reason: reason.into(),
            after: after.to_vec(),
            domain: domain.cloned(),
        });
        self.actions.len() - 1
    }
}

impl Action {
    /// Whether it changes nothing.
    pub const fn only_waits(&self) -> bool {
        matches!(self.kind, ActionKind::AwaitReady { .. })
    }

    /// Whether it may take minutes on its own and tells how it goes on. Waiting for a domain is not
    /// meant: the domain's phases tell about that.
    pub const fn is_long(&self) -> bool {
        matches!(self.kind, ActionKind::EnsureImage { .. })
    }

    /// What it does in a few words, as in `start domain db`.
    pub fn title(&self) -> String {
        use ActionKind as K;
        let domain = |name: &String| {
            self.domain
                .as_ref()
                .map_or_else(|| name.clone(), ToString::to_string)
        };
        let file = |path: &PathBuf| {
            path.file_name()
                .unwrap_or(path.as_os_str())
                .to_string_lossy()
                .into_owned()
        };
        match &self.kind {
            K::EnsureImage { name, .. } => format!("provide image {name}"),
            K::DefineNetwork { name, .. } => format!("define network {name}"),
            K::StartNetwork { name } => format!("start network {name}"),
            K::Reserve {
                reservation,
                wanted: true,
                ..
            } => format!("reserve {} for {}", reservation.ip, reservation.domain),
            K::Reserve {
                reservation,
                wanted: false,
                ..
            } => format!("release {} of {}", reservation.ip, reservation.domain),
            K::RemoveNetwork { name } => format!("remove network {name}"),
            K::CreateDisk {
                path,
                on: Medium::Ram,
                ..
            } => format!("create RAM disk {}", file(path)),
            K::CreateDisk { path, .. } => format!("create disk {}", file(path)),
            K::WriteSeed { path, .. } => format!("write seed {}", file(path)),
            K::RemoveFile { path } => format!("remove file {}", file(path)),
            K::DefineDomain { name, .. } => format!("define domain {}", domain(name)),
            K::StartDomain { name } => format!("start domain {}", domain(name)),
            K::Impair { vswitch, .. } => {
                let domain = self.domain.as_ref().map_or("?", Name::as_str);
                format!("impair vnet of {domain} on {vswitch}")
            }
            K::TellHosts { name, .. } => format!("tell hosts to domain {}", domain(name)),
            K::StopDomain { name } => format!("stop domain {}", domain(name)),
            K::RemoveDomain { name } => format!("remove domain {}", domain(name)),
            K::MoveDomain { name, .. } => format!("move domain {}", domain(name)),
            K::AwaitReady { name, .. } => format!("await domain {}", domain(name)),
        }
    }
}
