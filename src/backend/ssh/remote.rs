//! The remote port on SSH.

use std::collections::HashMap;
use std::io::Write;
use std::net::TcpStream;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use ssh2::Session;

use super::channel::{Streams, run};
use super::session::{connect, open};
use super::{Dialer, Login, SshError};
use crate::model::Name;
use crate::ports::{Exit, Output, PortError, Remote, Target};

/// How long a server that took a connection may take to say who it is.
const BANNER_TIMEOUT: Duration = Duration::from_secs(10);
const BANNER_POLL: Duration = Duration::from_millis(5);

/// SSH to the guests of one lab. Sessions are kept; one serves one command at a time (libssh2 has
/// one lock a session), so as many are opened as commands run side by side.
pub struct SshRemote {
    dialer: Dialer,
    logins: HashMap<Name, Login>,
    idle: Mutex<HashMap<Target, Vec<Session>>>,
    /// Connections whose banner was seen but not read; the next session begins on one.
    greeted: Mutex<HashMap<Target, TcpStream>>,
}

impl SshRemote {
    /// SSH to domains that are logged in to like this.
    pub fn new(dialer: Dialer, logins: HashMap<Name, Login>) -> Self {
        Self {
            dialer,
            logins,
            idle: Mutex::default(),
            greeted: Mutex::default(),
        }
    }

    fn session(&self, target: &Target) -> Result<Session, SshError> {
        let kept = self
            .idle
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .get_mut(target)
            .and_then(Vec::pop);
        if let Some(session) = kept
            && is_alive(&session)
        {
            return Ok(session);
        }
        let login = self.login(target)?;
        let greeted = self
            .greeted
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .remove(target);
        let stream = match greeted {
            Some(stream) => stream,
            None => connect(&self.dialer, target, login.port)?,
        };
        open(stream, target, login)
    }

    fn login(&self, target: &Target) -> Result<&Login, SshError> {
        let login = self.logins.get(&target.domain);
        login.ok_or_else(|| SshError::NoLogin {
            domain: target.domain.clone(),
        })
    }

    fn keep(&self, target: &Target, session: Session) {
        let mut idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        idle.entry(target.clone()).or_default().push(session);
    }

    fn run(
        &self,
        target: &Target,
        command: &str,
        streams: Streams<'_>,
        timeout: Duration,
    ) -> Result<Exit, SshError> {
        tracing::debug!(domain = %target.domain, command, "run a command");
        let session = self.session(target)?;
        let exit = run(&session, &target.domain, command, streams, timeout)?;
        self.keep(target, session);
        Ok(exit)
    }
}

/// Whether a kept session still has its connection: nothing is to be read from it but its end.
fn is_alive(session: &Session) -> bool {
    use std::os::fd::{AsRawFd, BorrowedFd};

    use nix::sys::socket::{MsgFlags, recv};
    // SAFETY: the session owns the socket and outlives this call.
    let socket = unsafe { BorrowedFd::borrow_raw(session.as_raw_fd()) };
    let mut byte = [0; 1];
    !matches!(
        recv(
            socket.as_raw_fd(),
            &mut byte,
            MsgFlags::MSG_PEEK | MsgFlags::MSG_DONTWAIT
        ),
        Ok(0) | Err(nix::Error::ECONNRESET | nix::Error::EPIPE | nix::Error::ETIMEDOUT)
    )
}

impl Remote for SshRemote {
    fn banner(&self, target: &Target, timeout: Duration) -> Result<(), PortError> {
        let port = self.login(target)?.port;
        let read = || -> std::io::Result<TcpStream> {
            let stream = self.dialer.connect(target.address, port, timeout)?;
            stream.set_read_timeout(Some(BANNER_TIMEOUT))?;
            let began = Instant::now();
            let mut start = [0; 4];
            while stream.peek(&mut start)? < start.len() {
                if began.elapsed() > BANNER_TIMEOUT {
                    return Err(std::io::ErrorKind::TimedOut.into());
                }
                std::thread::sleep(BANNER_POLL);
            }
            // RFC 4253, section 4.2.
            if &start == b"SSH-" {
                Ok(stream)
            } else {
                Err(std::io::Error::other("what answers is no SSH server"))
            }
        };
        let stream = read().map_err(|source| SshError::Connect {
            domain: target.domain.clone(),
            source,
        })?;
        self.greeted
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .insert(target.clone(), stream);
        Ok(())
    }

    fn exec(
        &self,
        target: &Target,
        command: &str,
        stdin: &[u8],
        timeout: Duration,
    ) -> Result<Output, PortError> {
        let (mut stdout, mut stderr) = (Vec::new(), Vec::new());
        let streams = Streams {
            stdin,
            stdout: &mut stdout,
            stderr: &mut stderr,
        };
        let exit = self.run(target, command, streams, timeout)?;
        Ok(Output {
            exit,
            stdout,
            stderr,
        })
    }

    fn stream(
        &self,
        target: &Target,
        command: &str,
        stdout: &mut dyn Write,
        stderr: &mut dyn Write,
        timeout: Duration,
    ) -> Result<Exit, PortError> {
        Ok(self.run(
            target,
            command,
            Streams {
                stdin: &[],
                stdout,
                stderr,
            },
            timeout,
        )?)
    }
}
