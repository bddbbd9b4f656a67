//! What must not be shown: the secret of a lab, and those of its users.

use std::collections::BTreeMap;
use std::fmt;

use super::{Digest, Digester};

/// 32 random bytes from which a lab's key pairs derive; never shown, never archived.
#[derive(Clone)]
pub struct LabSecret([u8; 32]);

impl LabSecret {
    /// Takes random bytes.
    pub const fn new(bytes: [u8; 32]) -> Self {
        Self(bytes)
    }

    /// The bytes, to be kept in a file that only its owner reads.
    pub const fn reveal(&self) -> &[u8; 32] {
        &self.0
    }

    /// A secret for one purpose; nothing of the whole can be learned from it.
    pub fn derive(&self, purpose: &str) -> Digest {
        Digester::default().field(self.0).field(purpose).finish()
    }
}

impl fmt::Debug for LabSecret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("LabSecret(…)")
    }
}

/// Values of a topology's variables that are never shown, recorded or archived, by variable.
#[derive(Clone, Default)]
pub struct Secrets(BTreeMap<String, String>);

impl Secrets {
    /// Takes a secret up.
    pub fn insert(&mut self, variable: &str, secret: String) {
        self.0.insert(variable.to_owned(), secret);
    }

    /// Variables and secrets, to be written where they are meant to be.
    pub fn reveal(&self) -> &BTreeMap<String, String> {
        &self.0
    }
}

impl fmt::Debug for Secrets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.0.keys()).finish()
    }
}
