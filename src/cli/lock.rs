//! What goes into a run's lock.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use super::error::Result;
use crate::archive::{Lock, relative_layout};
use crate::input::LoadedPlaybook;
use crate::model::{Digest, DomainKind, HostFacts, Image, ImageSource, Name, Topology, Trial};
use crate::ports::ImageStore;

/// Leaf that names the playbook's file below the archive's `inputs/`.
pub(super) const PLAYBOOK_FILE: &str = "plan.playbook";
/// Leaf that names the lab.
pub(super) const LAB: &str = "plan.lab";

/// Leaf that has [`trials_digest`].
pub(super) const TRIALS: &str = "plan.trials";

/// Leaf that says where the topology looks for an image's file, relative to `inputs/`; only images
/// made of files have one.
pub(super) fn image_file(name: &Name) -> String {
    format!("plan.image.{name}.file")
}

/// Inputs as the archive keeps them.
pub(super) struct Inputs {
    /// Files, relative to `inputs/`.
    pub files: Vec<(PathBuf, Vec<u8>)>,
    /// Where they were: the deepest directory that holds them all.
    pub root: PathBuf,
    /// The playbook's file among them.
    pub playbook: PathBuf,
}

impl Inputs {
    /// The files of a loaded playbook, in their places relative to each other.
    pub(super) fn of(loaded: &LoadedPlaybook) -> Result<Self> {
        let absolute = |path: &Path| std::path::absolute(path);
        let mut files = Vec::new();
        for input in loaded.playbook.inputs.iter().chain(&loaded.topology.inputs) {
            files.push((absolute(&input.path)?, input.content.clone()));
        }
        // The playbook is the first of its inputs; laid out alone it loses its `..`.
        let (home, alone) = relative_layout(&files[..1]);
        let (root, files) = relative_layout(&files);
        let playbook = alone
            .into_iter()
            .map(|(name, _)| home.join(name))
            .collect::<PathBuf>();
        let playbook = playbook
            .strip_prefix(&root)
            .unwrap_or(&playbook)
            .to_path_buf();
        Ok(Self {
            files,
            root,
            playbook,
        })
    }
}

/// Locks everything a run depends on.
pub(super) fn lock(
    loaded: &LoadedPlaybook,
    inputs: &Inputs,
    trials: &[Trial],
    host: &HostFacts,
    store: &dyn ImageStore,
) -> Result<Lock> {
    let (topology, playbook) = (&loaded.topology.value, &loaded.playbook.value);
    let mut leaves = BTreeMap::new();
    let mut leaf = |name: &str, value: String| leaves.insert(name.to_owned(), value);
    for (path, content) in &inputs.files {
        leaf(
            &format!("input.{}", path.display()),
            Digest::of(content).to_string(),
        );
    }
    leaf(PLAYBOOK_FILE, inputs.playbook.display().to_string());
    leaf(LAB, topology.lab.name.to_string());
    leaf("plan.topology", topology_digest(topology)?.to_string());
    leaf(TRIALS, trials_digest(trials)?.to_string());
    leaf("seed", playbook.design.seed.to_string());
    for (name, image) in &topology.images {
        if let Some(file) = image_path(image) {
            let file = std::path::absolute(file)?;
            let file = file.strip_prefix(&inputs.root).unwrap_or(&file);
            leaf(&image_file(name), file.display().to_string());
        }
        leaf(&format!("image.{name}.key"), image.key.to_string());
        if let Some(files) = store.find(image.key)? {
            leaf(&format!("image.{name}.content"), files.digest.to_string());
            for package in &files.packages {
                leaf(
                    &format!("image.{name}.package.{}", package.name),
                    package.version.clone(),
                );
            }
        }
    }
    for domain in &topology.domains {
        if let DomainKind::Vm(guest) = &domain.kind {
            let kind = &guest.machine.kind;
            let versioned = host.machines.get(kind).unwrap_or(kind);
            leaf(&format!("machine.{kind}"), versioned.clone());
        }
    }
    leaf("host.acceleration", host.acceleration.to_string());
    leaf("host.cpu", host.cpu_model.clone());
    leaf("host.threads", host.threads.to_string());
    leaf("host.memory", host.memory.to_string());
    leaf("host.kernel", host.kernel.clone());
    leaf("libvirt", host.libvirt.clone());
    leaf("qemu", host.qemu.clone());
    leaf("labrig.version", env!("CARGO_PKG_VERSION").to_owned());
    Ok(Lock::new(leaves))
}

/// The file an image made of files is known by: its disk, else its kernel.
pub(super) fn image_path(image: &Image) -> Option<&PathBuf> {
    match &image.source {
        ImageSource::Path { disk, kernel, .. } => disk.as_ref().or(kernel.as_ref()),
        ImageSource::Build(_) | ImageSource::Url { .. } => None,
    }
}

/// Digest of a resolved topology; where image files happen to lie is no part of it.
fn topology_digest(topology: &Topology) -> Result<Digest> {
    let mut topology = topology.clone();
    for image in topology.images.values_mut() {
        image.forget_paths();
    }
    digest_of(&topology)
}

/// Digest of all trials in their order.
pub(super) fn trials_digest(trials: &[Trial]) -> Result<Digest> {
    digest_of(&trials)
}

fn digest_of(value: &impl serde::Serialize) -> Result<Digest> {
    Ok(Digest::of(
        serde_json::to_vec(value).map_err(std::io::Error::from)?,
    ))
}
