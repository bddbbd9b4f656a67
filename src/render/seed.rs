//! The seed disk: a tar that a guest unpacks over its root before its network starts.

use std::fmt::Write as _;

use tar::{Builder, Header};

use super::Identity;
use super::settings::{self, System};
use crate::model::{Digest, Digester, Domain, LabSecret, Topology, VswitchMode};

/// Seed disks are padded to this many bytes: virtio-blk counts in sectors, tar in records.
const ALIGNMENT: usize = 1 << 20;

/// A domain's seed: what is in it, and the digest that names it. The bytes of the disk are packed
/// only when they are written; a plan of a thousand domains holds no thousand disks.
#[derive(Debug, Clone)]
pub struct Seed {
    entries: Vec<Entry>,
    digest: Digest,
}

/// A file of a seed.
#[derive(Debug, Clone)]
pub(super) struct Entry {
    path: String,
    mode: u32,
    content: Vec<u8>,
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
/// Nothing in it depends on other domains, so that a new one leaves the others as they are.
pub fn seed(
    topology: &Topology,
    domain: &Domain,
    secret: &LabSecret,
    client: &Identity,
    files: Vec<(String, u32, Vec<u8>)>,
) -> Seed {
    let host = Identity::host(secret, &domain.name);
    let mut entries = Vec::new();
    let mut add = |path: &str, mode, content: String| entries.push(Entry::new(path, mode, content));
    add("/etc/hostname", 0o644, format!("{}\n", domain.name));
    add(
        "/etc/hosts",
        0o644,
        format!("127.0.0.1 localhost\n127.0.1.1 {}\n", domain.name),
    );
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
    for (i, unit) in networkd_units(topology, domain).into_iter().enumerate() {
        add(
            &format!("/etc/systemd/network/10-labrig-{i}.network"),
            0o644,
            unit,
        );
    }
    let identity = entries.len();
    let image = domain
        .guest()
        .and_then(|guest| topology.images.get(&guest.image));
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
    let digest = entries
        .iter()
        .fold(Digester::default(), |digester, e| {
            digester
                .field(&e.path)
                .field(e.mode.to_be_bytes())
                .field(&e.content)
        })
        .finish();
    Seed { entries, digest }
}

impl Seed {
    /// Digest of all that is in it.
    pub const fn digest(&self) -> Digest {
        self.digest
    }

    /// The bytes of the disk: a tar, padded with zeros. Its last file, `/etc/labrig/seed-id`, holds
    /// the digest: by it a guest knows whether it has taken this seed before.
    pub fn pack(&self) -> Vec<u8> {
        let id = Entry {
            path: "/etc/labrig/seed-id".to_owned(),
            mode: 0o644,
            content: format!("{}\n", self.digest).into(),
        };
        let mut tar = Builder::new(Vec::new());
        for entry in self.entries.iter().chain([&id]) {
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

/// One line a vnet: `MAC ADDRESS/PREFIX GATEWAY MTU`, the gateway `-` on an isolated vswitch.
fn vnets(topology: &Topology, domain: &Domain) -> String {
    let mut text = String::new();
    for vnet in &domain.vnets {
        if let Some(vswitch) = topology.vswitches.get(&vnet.vswitch) {
            let gateway = match vswitch.mode {
                VswitchMode::Nat => vswitch.gateway.to_string(),
                VswitchMode::Isolated => "-".to_owned(),
            };
            let prefix = vswitch.subnet.prefix_len();
            let _ = writeln!(
                text,
                "{} {}/{prefix} {gateway} {}",
                vnet.mac, vnet.ip, vswitch.mtu
            );
        }
    }
    text
}

/// The same for systemd-networkd.
fn networkd_units(topology: &Topology, domain: &Domain) -> Vec<String> {
    let unit = |vnet: &crate::model::Vnet| {
        let vswitch = topology.vswitches.get(&vnet.vswitch)?;
        let mut text = format!(
            "[Match]\nMACAddress={}\n\n[Link]\nMTUBytes={}\n\n[Network]\nAddress={}/{}\nLinkLocalAddressing=no\nIPv6AcceptRA=no\n",
            vnet.mac,
            vswitch.mtu,
            vnet.ip,
            vswitch.subnet.prefix_len()
        );
        if vswitch.mode == VswitchMode::Nat {
            let _ = writeln!(text, "Gateway={}\nDNS={}", vswitch.gateway, vswitch.gateway);
        }
        Some(text)
    };
    domain.vnets.iter().filter_map(unit).collect()
}
