//! How TCP connections to guests are made.

use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::path::PathBuf;
use std::time::Duration;

use socket2::{Domain, Socket, Type};

use crate::backend::embedded::request_socket;

/// How long what was sent may stay unacknowledged before a connection is given up. Keepalives are
/// sent all the time, so a guest that is gone is noticed then; the kernel alone takes a quarter of an
/// hour.
const SILENCE: Duration = Duration::from_secs(60);

/// How TCP connections to guests are made.
#[derive(Debug, Clone)]
pub enum Dialer {
    /// From this process's own network.
    Direct,
    /// With sockets made inside an embedded host, whose init hands them out here.
    Embedded {
        /// The init's unix socket.
        service: PathBuf,
    },
}

impl Dialer {
    /// Connects.
    ///
    /// # Errors
    /// As of `connect(2)`; `TimedOut` after `timeout`.
    pub fn connect(
        &self,
        address: Ipv4Addr,
        port: u16,
        timeout: Duration,
    ) -> std::io::Result<TcpStream> {
        let socket = match self {
            Self::Direct => Socket::new(Domain::IPV4, Type::STREAM, None)?,
            Self::Embedded { service } => Socket::from(request_socket(service).map_err(host_gone)?),
        };
        socket.connect_timeout(&SocketAddr::from((address, port)).into(), timeout)?;
        socket.set_tcp_nodelay(true)?;
        socket.set_tcp_user_timeout(Some(SILENCE))?;
        Ok(socket.into())
    }
}

/// Tells a host that is gone from a guest that does not answer yet; `connect(2)` of TCP never gives
/// `NotConnected`.
fn host_gone(error: std::io::Error) -> std::io::Error {
    use std::io::ErrorKind::{ConnectionRefused, NotConnected, NotFound};
    match error.kind() {
        NotFound | ConnectionRefused => {
            std::io::Error::new(NotConnected, "the lab's host does not run")
        }
        _ => error,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::backend::ssh::SshError;
    use crate::ports::{ErrorKind, PortError};

    #[test]
    fn a_host_that_is_gone_is_not_waited_for() {
        let directory = tempfile::tempdir().unwrap();
        let service = directory.path().join("sockets");
        let connect = || {
            let dialer = Dialer::Embedded {
                service: service.clone(),
            };
            let error = dialer
                .connect(Ipv4Addr::LOCALHOST, 22, Duration::from_secs(1))
                .unwrap_err();
            PortError::from(SshError::Connect {
                domain: "a".parse().unwrap(),
                source: error,
            })
        };
        assert_eq!(connect().kind, ErrorKind::Fatal, "never there");
        // What a host that was killed leaves.
        drop(std::os::unix::net::UnixListener::bind(&service).unwrap());
        assert_eq!(connect().kind, ErrorKind::Fatal, "killed");
    }
}
