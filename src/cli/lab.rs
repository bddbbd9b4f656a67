//! A lab on its host, opened: the wiring of the backends for one lab.

use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;

use fs_err as fs;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::error::{Failure, Kind, Result};
use super::state::State;
use crate::backend::embedded::{EmbeddedHost, HostDirectory};
use crate::backend::libvirt::{Connection, Libvirt};
use crate::backend::ssh::{Dialer, SshRemote};
use crate::backend::traffic::Place;
use crate::model::{Acceleration, LabPaths, LabSecret, Name, Observed, Topology, Vnet};
use crate::ports::{Hypervisor, Target};
use crate::render::Identity;

/// Which host a lab runs on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(into = "String", from = "String")]
pub(super) enum HostKind {
    /// A libvirtd of the lab's own.
    Embedded,
    /// A libvirtd of this machine, by URI.
    System(String),
}

impl From<String> for HostKind {
    fn from(text: String) -> Self {
        if text == "embedded" {
            Self::Embedded
        } else {
            Self::System(text)
        }
    }
}

impl From<HostKind> for String {
    fn from(kind: HostKind) -> Self {
        match kind {
            HostKind::Embedded => "embedded".to_owned(),
            HostKind::System(uri) => uri,
        }
    }
}

impl HostKind {
    /// Whether libvirt there can divide CPU time and limit memory: the embedded one is outside the
    /// tree of control groups, which its end would leave behind.
    pub(super) const fn has_cgroups(&self) -> bool {
        matches!(self, Self::System(_))
    }

    /// Parses `--host`.
    pub(super) fn parse(text: &str) -> std::result::Result<Self, String> {
        match Self::from(text.to_owned()) {
            Self::System(uri)
                if !uri.starts_with("qemu:///") && !uri.starts_with("qemu+unix:///") =>
            {
                Err(format!(
                    "{uri:?} is no host: use embedded, qemu:///system or qemu+unix:///system?socket=PATH"
                ))
            }
            kind => Ok(kind),
        }
    }
}

/// What is remembered of a lab from its first `up` on.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Record {
    /// Version of this format.
    pub version: u32,
    /// Where it runs.
    pub host: HostKind,
    /// When it was made.
    pub created: Timestamp,
    /// How its guests execute; none until that is known.
    pub acceleration: Option<Acceleration>,
    /// What it is to be, as of the last `up`.
    pub topology: Topology,
}

impl Record {
    const VERSION: u32 = 1;

    pub(super) fn new(host: HostKind, topology: Topology) -> Self {
        Self {
            version: Self::VERSION,
            host,
            created: Timestamp::now(),
            acceleration: None,
            topology,
        }
    }

    /// Reads the record; none when the lab was never made.
    pub(super) fn read(paths: &LabPaths) -> Result<Option<Self>> {
        let text = match fs::read(paths.record()) {
            Ok(text) => text,
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Ok(None),
            Err(e) => return Err(e.into()),
        };
        let record: Self = serde_json::from_slice(&text).map_err(|e| {
            let context = format!("read the record of the lab in {}", paths.record().display());
            Failure::new(Kind::Host, anyhow::Error::new(e).context(context))
                .hint("`labrig down` removes the lab; it asks for --host where it must")
        })?;
        Ok(Some(record))
    }

    /// Where a lab runs, also by a record that cannot be read in whole; none when nothing says so.
    pub(super) fn host_of(paths: &LabPaths) -> Option<HostKind> {
        #[derive(Deserialize)]
        struct Place {
            host: HostKind,
        }
        let text = fs::read(paths.record()).ok()?;
        let place: Place = serde_json::from_slice(&text).ok()?;
        Some(place.host)
    }

    pub(super) fn write(&self, paths: &LabPaths) -> Result<()> {
        let text = serde_json::to_vec_pretty(self).map_err(std::io::Error::from)?;
        Ok(write_private(&paths.record(), &text)?)
    }
}

/// Writes a file that only its owner reads, whole or not at all.
fn write_private(path: &Path, content: &[u8]) -> std::io::Result<()> {
    use std::io::Write as _;
    let directory = path.parent().unwrap_or(Path::new("."));
    fs::create_dir_all(directory)?;
    let mut file = tempfile::NamedTempFile::new_in(directory)?;
    file.write_all(content)?;
    file.as_file().sync_all()?;
    file.persist(path).map_err(|e| e.error)?;
    Ok(())
}

/// The lab's secret; made when there is none yet.
pub(super) fn secret(paths: &LabPaths) -> Result<LabSecret> {
    let secret = secret_so_far(paths)?;
    if !paths.secret().exists() {
        write_private(&paths.secret(), secret.reveal())?;
    }
    Ok(secret)
}

/// The lab's secret; while there is none yet, one that is kept nowhere.
pub(super) fn secret_so_far(paths: &LabPaths) -> Result<LabSecret> {
    match fs::read(paths.secret()) {
        Ok(bytes) => <[u8; 32]>::try_from(bytes)
            .map(LabSecret::new)
            .map_err(|_| {
                let message = format!(
                    "read the lab's secret in {}: it is damaged",
                    paths.secret().display()
                );
                Failure::new(Kind::Host, anyhow::Error::msg(message))
                    .hint("`labrig down` and `up` make the lab anew")
            }),
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => fresh_secret(),
        Err(e) => Err(e.into()),
    }
}

fn fresh_secret() -> Result<LabSecret> {
    use std::io::Read as _;
    let mut bytes = [0; 32];
    fs::File::open("/dev/urandom")?.read_exact(&mut bytes)?;
    Ok(LabSecret::new(bytes))
}

/// A lab on its host.
pub(super) struct OpenLab {
    pub paths: LabPaths,
    pub record: Record,
    pub hypervisor: Arc<Libvirt>,
    pub remote: Arc<SshRemote>,
}

/// The embedded host of a lab, running or not.
pub(super) fn embedded_host(state: &State, paths: &LabPaths) -> EmbeddedHost {
    EmbeddedHost::at(HostDirectory::new(paths.host(), state.libvirt_cache()))
}

impl OpenLab {
    /// Opens a lab that was made. Only if `start` says so its embedded host is started and its files
    /// are written: whoever just looks at a lab must not bring back one that goes down meanwhile.
    pub(super) fn open(state: &State, record: Record, start: bool) -> Result<Self> {
        let lab = record.topology.lab.clone();
        let paths = state.lab(&lab.name);
        let (uri, dialer, place) = match &record.host {
            HostKind::Embedded => {
                let host = embedded_host(state, &paths);
                if start {
                    host.start(record.acceleration == Some(Acceleration::Emulation))?;
                } else if !host.is_running()? {
                    let message = format!("reach lab {}: its host does not run", lab.name);
                    return Err(Failure::new(Kind::Host, anyhow::Error::msg(message))
                        .hint("`labrig up` with its topology brings it up again"));
                }
                (
                    host.directory().uri(),
                    Dialer::Embedded {
                        service: host.directory().socket_service(),
                    },
                    Place::Of(host.outermost()?),
                )
            }
            HostKind::System(uri) => (uri.clone(), Dialer::Direct, Place::Here),
        };
        let secret = if start {
            secret(&paths)?
        } else {
            secret_so_far(&paths)?
        };
        let remote = remote(dialer, &secret, &record.topology);
        let hypervisor = Libvirt::new(Connection::open(&uri)?, lab, paths.clone(), place);
        if start {
            write_ssh_files(&paths, &secret, &record.topology)?;
        }
        Ok(Self {
            paths,
            record,
            hypervisor: Arc::new(hypervisor),
            remote: Arc::new(remote),
        })
    }

    /// Opens the lab of this name, which must be up.
    pub(super) fn of_name(state: &State, name: &Name) -> Result<Self> {
        let record = Record::read(&state.lab(name))?.ok_or_else(|| no_such_lab(state, name))?;
        Self::open(state, record, false)
    }

    /// What exists of it, images included.
    pub(super) fn observe(&self) -> Result<Observed> {
        let mut observed = self.hypervisor.observe()?;
        observed.images = linked_images(&self.paths, &self.record.topology);
        Ok(observed)
    }

    /// A domain as a target of commands.
    pub(super) fn target(&self, domain: &str) -> Result<Target> {
        let topology = &self.record.topology;
        let found = topology.domain(domain).and_then(|d| {
            Some(Target {
                domain: d.name.clone(),
                address: d.address()?,
            })
        });
        found.ok_or_else(|| {
            let names: Vec<_> = topology.domains.iter().map(|d| d.name.as_str()).collect();
            Failure::usage(format!("find domain {domain} in lab {}", topology.lab.name))
                .hint(format!("it has {}", names.join(", ")))
        })
    }
}

/// Keys of the images that are linked into the lab and are really there.
pub(super) fn linked_images(
    paths: &LabPaths,
    topology: &Topology,
) -> std::collections::BTreeSet<crate::model::Digest> {
    topology
        .images
        .values()
        .map(|image| image.key)
        .filter(|key| paths.image(*key).exists())
        .collect()
}

pub(super) fn no_such_lab(state: &State, name: &Name) -> Failure {
    let names = state.lab_names().unwrap_or_default();
    let names: Vec<_> = names.iter().map(Name::as_str).collect();
    let hint = if names.is_empty() {
        "there is no lab".to_owned()
    } else {
        format!("there is {}", names.join(", "))
    };
    Failure::usage(format!("find lab {name} in {}", state.root().display())).hint(hint)
}

fn remote(dialer: Dialer, secret: &LabSecret, topology: &Topology) -> SshRemote {
    let host_keys: HashMap<_, _> = topology
        .domains
        .iter()
        .map(|d| {
            (
                d.name.clone(),
                Identity::host(secret, &d.name).public_blob(),
            )
        })
        .collect();
    SshRemote::new(
        dialer,
        Identity::client(secret).private_openssh(),
        host_keys,
    )
}

fn addresses(vnet: &Vnet) -> impl Iterator<Item = String> {
    let ip = vnet.ip.map(|ip| ip.to_string());
    ip.into_iter().chain(vnet.ip6.map(|ip| ip.to_string()))
}

/// Key and known hosts for the `ssh` program.
fn write_ssh_files(paths: &LabPaths, secret: &LabSecret, topology: &Topology) -> Result<()> {
    let known_hosts: String = topology
        .domains
        .iter()
        .map(|domain| {
            let key = Identity::host(secret, &domain.name).public_openssh();
            let names: Vec<_> = std::iter::once(domain.name.to_string())
                .chain(domain.vnets.iter().flat_map(addresses))
                .collect();
            format!("{} {key}\n", names.join(","))
        })
        .collect();
    for (name, content) in [
        ("id_ed25519", Identity::client(secret).private_openssh()),
        ("known_hosts", known_hosts),
    ] {
        let path = paths.ssh().join(name);
        if fs::read(&path).ok().as_deref() != Some(content.as_bytes()) {
            write_private(&path, content.as_bytes())?;
        }
    }
    Ok(())
}
