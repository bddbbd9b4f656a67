//! Handing out sockets of the namespaces' network to processes outside.
//!
//! Protocol: a client connects to the unix socket and gets one byte with one descriptor
//! (`SCM_RIGHTS`): a TCP/IPv4 socket, not connected. Who may connect is decided by the
//! permissions of the directory.

use std::io::{IoSlice, IoSliceMut};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::time::Duration;

use nix::cmsg_space;
use nix::sys::socket::{
    AddressFamily, ControlMessage, ControlMessageOwned, MsgFlags, SockFlag, SockType, recvmsg,
    sendmsg, socket,
};

use super::EmbeddedError;

/// A client that does not read must not hold up the init.
const CLIENT_TIMEOUT: Duration = Duration::from_secs(1);
const REPLY_TIMEOUT: Duration = Duration::from_secs(10);

/// The init's side.
pub(super) struct SocketService {
    listener: UnixListener,
}

impl SocketService {
    pub(super) fn bind(path: &Path) -> Result<Self, EmbeddedError> {
        Ok(Self {
            listener: UnixListener::bind(path)?,
        })
    }

    pub(super) fn as_fd(&self) -> BorrowedFd<'_> {
        self.listener.as_fd()
    }

    /// Answers one client; one that went away is none of our business.
    pub(super) fn serve_one(&self) {
        if let Ok((client, _)) = self.listener.accept() {
            let _ = client.set_write_timeout(Some(CLIENT_TIMEOUT));
            if let Err(error) = hand_out(&client) {
                eprintln!("labrig: hand out a socket: {error}");
            }
        }
    }
}

fn hand_out(client: &UnixStream) -> nix::Result<()> {
    let inside = socket(
        AddressFamily::Inet,
        SockType::Stream,
        SockFlag::SOCK_CLOEXEC,
        None,
    )?;
    let descriptors = [inside.as_raw_fd()];
    sendmsg::<()>(
        client.as_raw_fd(),
        &[IoSlice::new(b"s")],
        &[ControlMessage::ScmRights(&descriptors)],
        MsgFlags::MSG_NOSIGNAL,
        None,
    )
    .map(drop)
}

/// Asks the init behind `path` for a TCP socket made inside its namespaces.
///
/// # Errors
/// When nobody is there or no socket comes back.
pub fn request_socket(path: &Path) -> std::io::Result<OwnedFd> {
    let stream = UnixStream::connect(path)?;
    stream.set_read_timeout(Some(REPLY_TIMEOUT))?;
    let mut byte = [0; 1];
    let mut parts = [IoSliceMut::new(&mut byte)];
    let mut space = cmsg_space!([RawFd; 1]);
    let message = recvmsg::<()>(
        stream.as_raw_fd(),
        &mut parts,
        Some(&mut space),
        MsgFlags::MSG_CMSG_CLOEXEC,
    )?;
    for control in message.cmsgs()? {
        if let ControlMessageOwned::ScmRights(descriptors) = control
            && let Some(&descriptor) = descriptors.first()
        {
            // SAFETY: the kernel just made this descriptor for us; nothing else knows it.
            return Ok(unsafe { OwnedFd::from_raw_fd(descriptor) });
        }
    }
    Err(std::io::Error::other(
        "the embedded host answered without a socket",
    ))
}
