//! One authenticated SSH session.

use std::net::TcpStream;
use std::time::Duration;

use ssh2::{MethodType, Session};

use super::{Dialer, SshError};
use crate::ports::Target;

/// Longest wait for one step of the protocol while a session is set up.
const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(20);
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// An idle connection over a long load must not be forgotten by anything between.
const KEEPALIVE_SECONDS: u32 = 15;
pub(super) const SSH_PORT: u16 = 22;

/// Who labrig is, and who it expects.
pub(super) struct Credentials<'a> {
    /// Private key in OpenSSH's format.
    pub private: &'a str,
    /// The host key the target must show, as the protocol sends it.
    pub host_key: &'a [u8],
}

/// Connects to a target's SSH port.
pub(super) fn connect(dialer: &Dialer, target: &Target) -> Result<TcpStream, SshError> {
    dialer
        .connect(target.address, SSH_PORT, CONNECT_TIMEOUT)
        .map_err(|source| SshError::Connect {
            domain: target.domain.clone(),
            source,
        })
}

/// Shakes hands on a connection, checks the host key, logs in as root.
pub(super) fn open(
    stream: TcpStream,
    target: &Target,
    credentials: &Credentials<'_>,
) -> Result<Session, SshError> {
    let protocol = |what| {
        move |source| SshError::Protocol {
            domain: target.domain.clone(),
            what,
            source,
        }
    };
    let mut session = Session::new().map_err(protocol("start an SSH session"))?;
    stream
        .set_read_timeout(None)
        .map_err(|source| SshError::Connect {
            domain: target.domain.clone(),
            source,
        })?;
    session.set_tcp_stream::<TcpStream>(stream);
    session.set_timeout(u32::try_from(HANDSHAKE_TIMEOUT.as_millis()).unwrap_or(u32::MAX));
    session
        .method_pref(MethodType::HostKey, "ssh-ed25519")
        .map_err(protocol("choose a host key type"))?;
    session
        .handshake()
        .map_err(protocol("shake hands by SSH"))?;
    match session.host_key() {
        Some((key, _)) if key == credentials.host_key => {}
        _ => {
            return Err(SshError::HostKey {
                domain: target.domain.clone(),
            });
        }
    }
    session
        .userauth_pubkey_memory("root", None, credentials.private, None)
        .map_err(protocol("log in by SSH"))?;
    session.set_keepalive(false, KEEPALIVE_SECONDS);
    Ok(session)
}
