//! Key pairs of a lab: one for labrig, one for each domain's SSH server.

use ssh_key::private::{Ed25519Keypair, PrivateKey};
use ssh_key::{LineEnding, PublicKey};

use crate::model::{LabSecret, Name};

/// An Ed25519 key pair that derives from the lab's secret.
pub struct Identity {
    private: PrivateKey,
}

impl Identity {
    /// The pair labrig logs in with.
    pub fn client(secret: &LabSecret) -> Self {
        Self::derive(secret, "client", "labrig")
    }

    /// The pair a domain's SSH server shows.
    pub fn host(secret: &LabSecret, domain: &Name) -> Self {
        Self::derive(secret, &format!("host {domain}"), domain)
    }

    fn derive(secret: &LabSecret, purpose: &str, comment: &str) -> Self {
        let pair = Ed25519Keypair::from_seed(secret.derive(purpose).bytes());
        let mut private = PrivateKey::from(pair);
        private.set_comment(comment);
        Self { private }
    }

    /// The private half in OpenSSH's format.
    pub fn private_openssh(&self) -> String {
        // Encoding an unencrypted Ed25519 key has no failing path.
        self.private
            .to_openssh(LineEnding::LF)
            .map(|text| text.to_string())
            .unwrap_or_default()
    }

    /// The public half as one line, `ssh-ed25519 AAAA… comment`.
    pub fn public_openssh(&self) -> String {
        PublicKey::to_openssh(self.private.public_key()).unwrap_or_default()
    }

    /// The public half as the SSH protocol sends it (RFC 8709, section 4).
    pub fn public_blob(&self) -> Vec<u8> {
        self.private.public_key().to_bytes().unwrap_or_default()
    }
}

/// A public key of one line, as the SSH protocol sends it; none when it is no key.
pub fn host_key_blob(line: &str) -> Option<Vec<u8>> {
    PublicKey::from_openssh(line).ok()?.to_bytes().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn is_the_same_for_the_same_secret_and_another_for_another_domain() {
        let secret = LabSecret::new([7; 32]);
        let (db, web) = ("db".parse().unwrap(), "web".parse().unwrap());
        let key = Identity::host(&secret, &db);
        assert_eq!(
            key.public_openssh(),
            Identity::host(&secret, &db).public_openssh()
        );
        assert_ne!(
            key.public_blob(),
            Identity::host(&secret, &web).public_blob()
        );
        assert!(
            key.public_openssh().starts_with("ssh-ed25519 AAAA")
                && key.public_openssh().ends_with(" db")
        );
        assert!(
            key.private_openssh()
                .starts_with("-----BEGIN OPENSSH PRIVATE KEY-----")
        );
    }
}
