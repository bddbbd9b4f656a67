//! External machines as written: how they are reached.

use std::fs;
use std::net::Ipv4Addr;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;

use ssh_key::{Algorithm, PrivateKey, PublicKey};

use super::super::files;
use super::super::read::{At, Doc, Written};
use super::super::shape::{Form, IPV4, Key, Shape};
use super::file_path;
use super::word;
use crate::diag::Note;
use crate::model::Endpoint;

/// Where SSH servers listen when nobody says otherwise.
const SSH_PORT: u16 = 22;
/// Who labrig logs in as when nobody says otherwise.
const USER: &str = "root";

/// How an external machine is reached.
pub(super) const EXTERNAL: Shape = Shape::merged(
    "How an external machine is reached, by SSH.",
    &[
        Key::required("address", IPV4, "192.0.2.10", "Its address."),
        Key::new(
            "port",
            Form::Whole {
                least: 1,
                most: 65_535,
            },
            "22",
            "Port of its SSH server; 22 when left out.",
        ),
        Key::new(
            "user",
            Form::Text,
            USER,
            "Whom to log in as; root when left out.",
        ),
        Key::required(
            "key",
            Form::Text,
            "id_ed25519",
            "File with the private key to log in with, relative to this file. It has no passphrase.",
        ),
        Key::required(
            "host_key",
            Form::Text,
            "ssh-ed25519 AAAA…",
            "The public host key that it must show.",
        ),
    ],
);

pub(in super::super) struct ExternalSpec {
    pub address: Written<Ipv4Addr>,
    pub port: u16,
    pub user: String,
    pub key: Written<PathBuf>,
    pub host_key: String,
}

/// Reads how an external machine is reached.
pub(super) fn external(at: &At<'_>) -> Option<ExternalSpec> {
    let fields = at.fields(&EXTERNAL)?;
    let address = fields.get("address").and_then(|at| address(&at));
    let port = fields.get("port").map_or(Some(u64::from(SSH_PORT)), |at| {
        at.whole().filter(|port| *port > 0)
    });
    let user = fields
        .get("user")
        .map_or(Some(USER.to_owned()), |at| user(&at));
    let key = fields.get("key").and_then(|at| file_path(&at));
    let host_key = fields.get("host_key").and_then(|at| host_key(&at));
    Some(ExternalSpec {
        address: address?,
        port: u16::try_from(port?).ok()?,
        user: user?,
        key: key?,
        host_key: host_key?,
    })
}

fn address(at: &At<'_>) -> Option<Written<Ipv4Addr>> {
    let text = at.text("192.0.2.10")?;
    let Ok(value) = text.value.parse::<Ipv4Addr>() else {
        at.error(
            format!("{:?} is not an IPv4 address", text.value),
            "as in 192.0.2.10",
        );
        return None;
    };
    if value.is_unspecified() || value.is_broadcast() || value.is_multicast() {
        at.error(
            format!("{value} is no machine's address"),
            "as in 192.0.2.10",
        );
        return None;
    }
    Some(Written {
        value,
        spot: text.spot,
    })
}

fn user(at: &At<'_>) -> Option<String> {
    word(at, USER, |c| {
        c.is_ascii_lowercase() || c.is_ascii_digit() || matches!(c, '-' | '_' | '.')
    })
}

/// A public key, without what may follow it.
fn host_key(at: &At<'_>) -> Option<String> {
    let hint = "as the machine has it in /etc/ssh/ssh_host_ed25519_key.pub: ssh-ed25519 AAAA…";
    let text = at.text("ssh-ed25519 AAAA…")?;
    let key = match PublicKey::from_openssh(text.value.trim()) {
        Ok(key) => key,
        Err(error) => {
            at.error(format!("this is not an SSH public key: {error}"), hint);
            return None;
        }
    };
    if !matches!(key.algorithm(), Algorithm::Ed25519 | Algorithm::Rsa { .. }) {
        at.error(
            format!("keys of type {} are not known here", key.algorithm()),
            hint,
        );
        return None;
    }
    let words: Vec<_> = text.value.split_whitespace().take(2).collect();
    Some(words.join(" "))
}

/// The endpoint, with its key's file looked at.
pub(in super::super) fn endpoint(doc: &Doc, spec: &ExternalSpec) -> Endpoint {
    let key = doc.beside(&spec.key);
    // It is needed long after this file was read, wherever labrig is started then.
    let key = std::path::absolute(&key).unwrap_or(key);
    check_key(doc, &key, &spec.key);
    Endpoint {
        address: spec.address.value,
        port: spec.port,
        user: spec.user.clone(),
        key,
        host_key: spec.host_key.clone(),
    }
}

fn check_key(doc: &Doc, key: &std::path::Path, written: &Written<PathBuf>) {
    let spot = &written.spot;
    let content = match files::read(key) {
        Ok(content) => content,
        Err(error) => {
            let message = format!("the key {} cannot be read: {error}", key.display());
            doc.push(doc.error(spot, message).hint("check the path"));
            return;
        }
    };
    // Keys of other formats are left to the SSH library.
    if content.starts_with(b"-----BEGIN OPENSSH") {
        let wrong = match PrivateKey::from_openssh(&content) {
            Ok(key) if key.is_encrypted() => Some("it has a passphrase".to_owned()),
            Ok(_) => None,
            Err(error) => Some(error.to_string()),
        };
        if let Some(wrong) = wrong {
            let message = format!("the key {} cannot be used: {wrong}", key.display());
            doc.push(
                doc.error(spot, message)
                    .hint("make one for this purpose: ssh-keygen -t ed25519 -N \"\" -f id_ed25519"),
            );
            return;
        }
    }
    let is_open = fs::metadata(key).is_ok_and(|facts| facts.permissions().mode() & 0o077 != 0);
    if is_open {
        let message = format!("the key {} is open to other users", key.display());
        let note = Note::warning(&spot.path, message).at(doc.place(spot));
        doc.push(note.hint(format!("chmod 600 {}", key.display())));
    }
}
