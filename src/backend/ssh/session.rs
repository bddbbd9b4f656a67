//! One authenticated SSH session.

use std::net::TcpStream;
use std::time::Duration;

use ssh2::{MethodType, Session};

use super::{Dialer, Login, SshError};
use crate::ports::Target;

/// Longest wait for one step of the protocol while a session is set up.
const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(20);
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// An idle connection over a long load must not be forgotten by anything between.
const KEEPALIVE_SECONDS: u32 = 15;

/// Connects to a target's SSH port.
pub(super) fn connect(dialer: &Dialer, target: &Target, port: u16) -> Result<TcpStream, SshError> {
    dialer
        .connect(target.address, port, CONNECT_TIMEOUT)
        .map_err(|source| SshError::Connect {
            domain: target.domain.clone(),
            source,
        })
}

/// Shakes hands on a connection, checks the host key, logs in.
pub(super) fn open(stream: TcpStream, target: &Target, login: &Login) -> Result<Session, SshError> {
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
        .method_pref(MethodType::HostKey, login.algorithms())
        .map_err(protocol("choose a host key type"))?;
    session
        .handshake()
        .map_err(protocol("shake hands by SSH"))?;
    match session.host_key() {
        Some((key, _)) if key == login.host_key => {}
        _ => {
            return Err(SshError::HostKey {
                domain: target.domain.clone(),
            });
        }
    }
    let key = login.key.reveal().map_err(|source| SshError::Key {
        domain: target.domain.clone(),
        source,
    })?;
    session
        .userauth_pubkey_memory(&login.user, None, &key, None)
        .map_err(protocol("log in by SSH"))?;
    session.set_keepalive(false, KEEPALIVE_SECONDS);
    Ok(session)
}
