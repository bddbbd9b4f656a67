//! The seed disk, from which a guest takes its identity: a tar that it unpacks over its root before
//! its network starts, or what cloud-init reads.

use tar::{Builder, Header};

use std::fmt::Write as _;
use std::sync::Arc;

use super::guest_network::{networkd_units, vnets};
use super::settings::{self, System};
use super::{Hosts, Identity, cloud_init, vfat};
use crate::model::{Digest, Digester, Disk, Domain, LabSecret, Mount, Name, Topology};

/// Seed disks are padded to this many bytes: virtio-blk counts in sectors, tar in records.
const ALIGNMENT: usize = 1 << 20;

/// A domain's seed: what is in it, and the digest that names it. The bytes of the disk are packed
/// only when they are written; a plan of a thousand domains holds no thousand disks.
#[derive(Debug, Clone)]
pub struct Seed {
    form: Form,
    domain: Name,
    entries: Vec<Entry>,
    hosts: Option<Arc<Hosts>>,
    digest: Digest,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Form {
    Tar,
    NoCloud,
}

/// A file of a seed.
#[derive(Debug, Clone)]
pub(super) struct Entry {
    pub path: String,
    pub mode: u32,
    pub content: Vec<u8>,
}

impl Entry {
    pub(super) fn new(path: &str, mode: u32, content: String) -> Self {
        Self {
            path: path.to_owned(),
            mode,
            content: content.into_bytes(),
        }
    }

    /// Path, permission bits, content.
    #[cfg(test)]
    pub(super) fn parts(&self) -> (&str, u32, &str) {
        let content = std::str::from_utf8(&self.content).unwrap_or_default();
        (&self.path, self.mode, content)
    }
}

/// Makes the seed of a domain. `client` may log in: [`Identity::client`], the same for all domains
/// of a lab. `files` are the domain's rendered files: absolute path, mode, content.
///
/// Other domains are in it with their names and addresses alone, and these are no part of its digest,
/// so that a new domain leaves the others as they are: [`Hosts`] are brought up to date while a guest
/// runs.
pub fn seed(
    topology: &Topology,
    domain: &Domain,
    hosts: &Arc<Hosts>,
    secret: &LabSecret,
    client: &Identity,
    files: Vec<(String, u32, Vec<u8>)>,
) -> Seed {
    let host = Identity::host(secret, &domain.name);
    let image = domain
        .guest()
        .and_then(|guest| topology.images.get(&guest.image));
    if image.is_some_and(|image| image.cloud_init) {
        let entries = cloud_init::entries(topology, domain, &host, client, &files);
        return Seed::of(Form::NoCloud, domain, hosts, entries);
    }
    let mut entries = Vec::new();
    let mut add = |path: &str, mode, content: String| entries.push(Entry::new(path, mode, content));
    add("/etc/hostname", 0o644, format!("{}\n", domain.name));
    add(
        "/etc/ssh/ssh_host_ed25519_key",
        0o600,
        host.private_openssh(),
    );
    add(
        "/etc/ssh/ssh_host_ed25519_key.pub",
        0o644,
        host.public_openssh() + "\n",
    );
    let mut keys = client.public_openssh() + "\n";
    for key in &domain.settings.ssh_keys {
        keys.push_str(key);
        keys.push('\n');
    }
    add("/root/.ssh/authorized_keys", 0o600, keys);
    add("/etc/labrig/vnets", 0o644, vnets(topology, domain));
    let identity = entries.len();
    let units = networkd_units(topology, domain).into_iter().enumerate();
    entries.extend(units.map(|(i, unit)| {
        let path = format!("/etc/systemd/network/10-labrig-{i}.network");
        Entry::new(&path, 0o644, unit)
    }));
    let mounts = mounts(domain);
    if !mounts.is_empty() {
        entries.push(Entry::new("/etc/labrig/mounts", 0o644, mounts));
    }
    let system = image.map_or(System::Systemd, |image| System::of(&image.source));
    entries.extend(settings::entries(system, &domain.settings));
    entries.extend(files.into_iter().map(|(path, mode, content)| Entry {
        path,
        mode,
        content,
    }));
    // Files that a later seed may not have. Every seed has those of the identity.
    let passing: String = entries[identity..]
        .iter()
        .map(|entry| format!("{}\n", entry.path.trim_start_matches('/')))
        .collect();
    entries.push(Entry::new("/etc/labrig/files", 0o644, passing));
    Seed::of(Form::Tar, domain, hosts, entries)
}

pub(super) fn digest_of(entries: &[Entry]) -> Digest {
    entries
        .iter()
        .fold(Digester::default(), |digester, e| {
            digester
                .field(&e.path)
                .field(e.mode.to_be_bytes())
                .field(&e.content)
        })
        .finish()
}

impl Seed {
    fn of(form: Form, domain: &Domain, hosts: &Arc<Hosts>, entries: Vec<Entry>) -> Self {
        let digest = digest_of(&entries);
        // Who writes the file himself has the last word.
        let is_written = domain.files.iter().any(|file| file.to == Hosts::PATH);
        Self {
            form,
            domain: domain.name.clone(),
            entries,
            hosts: (!is_written).then(|| Arc::clone(hosts)),
            digest,
        }
    }

    /// Digest of all that is in it but the hosts.
    pub const fn digest(&self) -> Digest {
        self.digest
    }

    /// Whether the names of all domains are in it.
    pub const fn has_hosts(&self) -> bool {
        self.hosts.is_some()
    }

    /// What the name of its file ends with.
    pub const fn extension(&self) -> &'static str {
        match self.form {
            Form::Tar => "tar",
            Form::NoCloud => "vfat",
        }
    }

    /// The bytes of the disk.
    pub fn pack(&self) -> Vec<u8> {
        match self.form {
            Form::Tar => self.pack_tar(),
            Form::NoCloud => vfat::pack(cloud_init::LABEL, &self.entries),
        }
    }

    /// A tar, padded with zeros. Its last file, `/etc/labrig/seed-id`, holds the digest: by it a guest
    /// knows whether it has taken this seed before.
    fn pack_tar(&self) -> Vec<u8> {
        let id = Entry {
            path: "/etc/labrig/seed-id".to_owned(),
            mode: 0o644,
            content: format!("{}\n", self.digest).into(),
        };
        let hosts = self.hosts.as_ref().map(|hosts| Entry {
            path: Hosts::PATH.to_owned(),
            mode: 0o644,
            content: hosts.of(&self.domain).into(),
        });
        let mut tar = Builder::new(Vec::new());
        for entry in hosts.iter().chain(&self.entries).chain([&id]) {
            let mut header = Header::new_gnu();
            header.set_mode(entry.mode);
            header.set_uid(0);
            header.set_gid(0);
            header.set_mtime(0);
            header.set_size(entry.content.len() as u64);
            // Writing to memory does not fail, and long paths have their GNU form.
            let _ = tar.append_data(
                &mut header,
                entry.path.trim_start_matches('/'),
                entry.content.as_slice(),
            );
        }
        let mut content = tar.into_inner().unwrap_or_default();
        content.resize(content.len().next_multiple_of(ALIGNMENT), 0);
        content
    }
}

/// One line a disk that is to be mounted: `SERIAL FILESYSTEM DIRECTORY OPTIONS`; one below another
/// comes after it.
fn mounts(domain: &Domain) -> String {
    let mut text = String::new();
    for (disk, mount) in by_depth(domain) {
        let options = match mount.options.as_slice() {
            [] => "defaults".to_owned(),
            options => options.join(","),
        };
        let filesystem = mount.filesystem.as_str();
        let _ = writeln!(text, "{} {filesystem} {} {options}", disk.name, mount.at);
    }
    text
}

/// Disks that are to be mounted, in the order to mount them in.
pub(super) fn by_depth(domain: &Domain) -> Vec<(&Disk, &Mount)> {
    let mounts = domain.guest().into_iter().flat_map(|guest| &guest.disks);
    let mut mounts: Vec<_> = mounts
        .filter_map(|disk| Some((disk, disk.mount.as_ref()?)))
        .collect();
    mounts.sort_by_key(|(_, mount)| (mount.at.matches('/').count(), &mount.at));
    mounts
}
