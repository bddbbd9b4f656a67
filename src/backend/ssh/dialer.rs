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
            Self::Embedded { service } => Socket::from(request_socket(service)?),
        };
        socket.connect_timeout(&SocketAddr::from((address, port)).into(), timeout)?;
        socket.set_tcp_nodelay(true)?;
        socket.set_tcp_user_timeout(Some(SILENCE))?;
        Ok(socket.into())
    }
}
