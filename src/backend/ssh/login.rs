//! How one domain is logged in to, and what it must show.

use std::path::PathBuf;

/// How one domain is logged in to.
#[derive(Debug, Clone)]
pub struct Login {
    /// Port of its SSH server.
    pub port: u16,
    /// Whom to log in as.
    pub user: String,
    /// What labrig proves itself with.
    pub key: Key,
    /// The host key it must show, as the protocol sends it.
    pub host_key: Vec<u8>,
}

/// A private key in OpenSSH's format.
#[derive(Clone)]
pub enum Key {
    /// The key itself.
    Text(String),
    /// A file, read when it is needed.
    File(PathBuf),
}

impl std::fmt::Debug for Key {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Text(_) => f.write_str("Text(…)"),
            Self::File(path) => f.debug_tuple("File").field(path).finish(),
        }
    }
}

impl Key {
    /// The key.
    pub(super) fn reveal(&self) -> std::io::Result<String> {
        match self {
            Self::Text(text) => Ok(text.clone()),
            Self::File(path) => fs_err::read_to_string(path),
        }
    }
}

impl Login {
    /// The host key's algorithms, in the order of preference; its type is the first field of the key
    /// (RFC 4253, section 6.6; RFC 8332 for those of RSA).
    pub(super) fn algorithms(&self) -> &'static str {
        if self
            .host_key
            .get(4..)
            .is_some_and(|key| key.starts_with(b"ssh-rsa"))
        {
            "rsa-sha2-512,rsa-sha2-256,ssh-rsa"
        } else {
            "ssh-ed25519"
        }
    }
}
