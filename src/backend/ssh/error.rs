//! What can go wrong on the way to a guest.

use std::time::Duration;

use crate::model::Name;
use crate::ports::{ErrorKind, PortError};

/// Why a guest could not be talked to.
#[derive(Debug, thiserror::Error)]
pub enum SshError {
    /// No connection came about.
    #[error("connect to {domain}")]
    Connect {
        /// The domain.
        domain: Name,
        /// Why.
        source: std::io::Error,
    },
    /// Its SSH server does not show the key that labrig gave it.
    #[error("trust {domain}: its SSH server shows another host key than the one it must have")]
    HostKey {
        /// The domain.
        domain: Name,
    },
    /// Nobody said how to log in to it.
    #[error("log in to {domain}: nothing says how")]
    NoLogin {
        /// The domain.
        domain: Name,
    },
    /// The private key cannot be read.
    #[error("read the key for {domain}")]
    Key {
        /// The domain.
        domain: Name,
        /// Why.
        source: std::io::Error,
    },
    /// A step of the protocol failed.
    #[error("{what} on {domain}")]
    Protocol {
        /// The domain.
        domain: Name,
        /// Which step.
        what: &'static str,
        /// Why.
        source: ssh2::Error,
    },
    /// The connection broke while a command ran.
    #[error("hear from {domain}: the connection broke while a command ran")]
    Broken {
        /// The domain.
        domain: Name,
        /// Why.
        source: std::io::Error,
    },
    /// A command did not end in time.
    #[error("hear from {domain} within {:.1}s", deadline.as_secs_f64())]
    Deadline {
        /// The domain.
        domain: Name,
        /// How long.
        deadline: Duration,
    },
    /// What the command printed could not be kept here.
    #[error("keep the output of a command on {domain}")]
    Sink {
        /// The domain.
        domain: Name,
        /// Why.
        source: std::io::Error,
    },
}

impl From<SshError> for PortError {
    fn from(error: SshError) -> Self {
        let is_host_gone = matches!(&error, SshError::Connect { source, .. }
            if source.kind() == std::io::ErrorKind::NotConnected);
        let kind = match &error {
            SshError::Connect { .. } if is_host_gone => ErrorKind::Fatal,
            SshError::Connect { .. } => ErrorKind::NotYet,
            SshError::HostKey { .. }
            | SshError::NoLogin { .. }
            | SshError::Key { .. }
            | SshError::Sink { .. } => ErrorKind::Fatal,
            SshError::Protocol { .. } | SshError::Broken { .. } => ErrorKind::Connection,
            SshError::Deadline { .. } => ErrorKind::Timeout,
        };
        let hint = match &error {
            SshError::HostKey { .. } => {
                Some("another machine answers at this address, or the guest did not take its seed")
            }
            _ if is_host_gone => Some("`labrig up` with its topology brings it up again"),
            _ => None,
        };
        let what = error.to_string();
        let source: Option<Box<dyn std::error::Error + Send + Sync>> = match error {
            SshError::Connect { source, .. }
            | SshError::Key { source, .. }
            | SshError::Broken { source, .. }
            | SshError::Sink { source, .. } => Some(source.into()),
            SshError::Protocol { source, .. } => Some(source.into()),
            SshError::HostKey { .. } | SshError::NoLogin { .. } | SshError::Deadline { .. } => None,
        };
        Self {
            kind,
            what,
            hint: hint.map(ToOwned::to_owned),
            source,
        }
    }
}
