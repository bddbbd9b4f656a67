//! What cloud-init reads from a NoCloud seed: `meta-data`, `user-data` and `network-config`.
//!
//! All three are JSON, which YAML readers of any version take for what it is: no text turns into a
//! number or a truth on the way.

use base64ct::{Base64, Encoding};
use serde_json::{Value, json};

use super::Identity;
use super::guest_network::netplan;
use super::seed::{Entry, by_depth, digest_of};
use crate::model::{Domain, Topology};

/// Label of the filesystem that cloud-init takes for its seed.
pub(super) const LABEL: &str = "CIDATA";

/// Runs at each boot, after everything else of cloud-init's.
const READY: &str = "/var/lib/cloud/scripts/per-boot/labrig-ready";

/// The files of a domain's seed.
pub(super) fn entries(
    topology: &Topology,
    domain: &Domain,
    host: &Identity,
    client: &Identity,
    files: &[(String, u32, Vec<u8>)],
) -> Vec<Entry> {
    let user_data = format!(
        "#cloud-config\n{}\n",
        user_data(domain, host, client, files)
    );
    let mut entries = vec![
        entry("network-config", netplan(topology, domain).to_string()),
        entry("user-data", user_data),
    ];
    // With another id, cloud-init takes the guest for another one and sets it up anew.
    let id = digest_of(&entries).short(32);
    let meta_data = json!({"instance-id": id, "local-hostname": domain.name});
    entries.push(entry("meta-data", meta_data.to_string()));
    entries
}

fn entry(name: &str, content: String) -> Entry {
    Entry {
        path: name.to_owned(),
        mode: 0o644,
        content: content.into_bytes(),
    }
}

fn user_data(
    domain: &Domain,
    host: &Identity,
    client: &Identity,
    files: &[(String, u32, Vec<u8>)],
) -> Value {
    let ready = ready(domain).into_bytes();
    let write_files: Vec<_> = files
        .iter()
        .map(|(path, mode, content)| (path.as_str(), *mode, content))
        .chain([(READY, 0o755, &ready)])
        .map(|(path, mode, content)| {
            json!({
                "path": path,
                "permissions": format!("{mode:04o}"),
                "owner": "root:root",
                "encoding": "b64",
                "content": Base64::encode_string(content),
            })
        })
        .collect();
    let mut config = json!({
        "preserve_hostname": false,
        "hostname": domain.name,
        "manage_etc_hosts": "localhost",
        "disable_root": false,
        "ssh_pwauth": false,
        "users": [{"name": "root", "ssh_authorized_keys": [client.public_openssh()]}],
        "ssh_deletekeys": true,
        "ssh_keys": {
            "ed25519_private": host.private_openssh(),
            "ed25519_public": host.public_openssh(),
        },
        // The image's own; the one that cloud-init would set need not be there.
        "locale": false,
        "package_update": false,
        "package_upgrade": false,
        "write_files": write_files,
    });
    let mounts = by_depth(domain);
    if !mounts.is_empty() {
        let device = |name| format!("/dev/disk/by-id/virtio-{name}");
        let filesystems = mounts.iter().map(|(disk, mount)| {
            json!({
                "device": device(&disk.name),
                "filesystem": mount.filesystem.as_str(),
                "partition": "none",
                // Only where there is no filesystem yet.
                "overwrite": false,
            })
        });
        config["fs_setup"] = filesystems.collect();
        let table = mounts.iter().map(|(disk, mount)| {
            // A guest whose disk is missing must boot, so that one can log in and look.
            let options: Vec<_> = ["nofail"]
                .into_iter()
                .chain(mount.options.iter().map(String::as_str))
                .collect();
            let filesystem = mount.filesystem.as_str();
            json!([
                device(&disk.name),
                mount.at,
                filesystem,
                options.join(","),
                "0",
                "2"
            ])
        });
        config["mounts"] = table.collect();
    }
    config
}

/// Marks the guest ready, if its disks are where they are to be.
fn ready(domain: &Domain) -> String {
    let mut script = String::from(
        "#!/bin/sh\n\
         failed=/var/lib/labrig/mounts-failed\n\
         rm -f \"$failed\"\n\
         fail() {\n\
         \x20   mkdir -p \"${failed%/*}\"\n\
         \x20   echo \"$*\" >>\"$failed\"\n\
         \x20   echo \"labrig: $*\" >/dev/console\n\
         \x20   exit 1\n\
         }\n",
    );
    for (_, mount) in by_depth(domain) {
        let quoted = shlex::try_quote(&mount.at).unwrap_or_default();
        script.push_str(&format!(
            "mountpoint -q {quoted} || mount {quoted} || fail \"there is no disk on \"{quoted}\n"
        ));
    }
    script.push_str(
        "mkdir -p /run/labrig\n: >/run/labrig/ready\necho 'labrig: ready' >/dev/console\n",
    );
    script
}
