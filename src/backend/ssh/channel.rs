//! One command on one session: input, both outputs and the deadline, side by side.

use std::io::{ErrorKind, Read, Write};
use std::os::fd::{AsRawFd, BorrowedFd};
use std::time::{Duration, Instant};

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use ssh2::{BlockDirections, Channel, Session};

use super::SshError;
use crate::model::Name;
use crate::ports::Exit;

/// libssh2 hands out at most one packet at a time; more would not be filled.
const CHUNK: usize = 32 << 10;
/// How long one poll lasts at most, so that keepalives are sent.
const POLL_LIMIT: Duration = Duration::from_secs(5);
/// `LIBSSH2_ERROR_EAGAIN` of libssh2.h.
const WOULD_BLOCK: i32 = -37;

/// Where a command's streams go.
pub(super) struct Streams<'a> {
    pub stdin: &'a [u8],
    pub stdout: &'a mut dyn Write,
    pub stderr: &'a mut dyn Write,
}

/// Runs one command. A session whose command failed with anything but an exit status must not be
/// used again: a channel may still be open on it.
pub(super) fn run(
    session: &Session,
    domain: &Name,
    command: &str,
    streams: Streams<'_>,
    timeout: Duration,
) -> Result<Exit, SshError> {
    session.set_blocking(false);
    Run {
        session,
        domain,
        began: Instant::now(),
        timeout,
    }
    .run(command, streams)
}

struct Run<'a> {
    session: &'a Session,
    domain: &'a Name,
    began: Instant,
    timeout: Duration,
}

impl Run<'_> {
    fn run(&self, command: &str, mut streams: Streams<'_>) -> Result<Exit, SshError> {
        let mut channel = self.retry("open a channel", || self.session.channel_session())?;
        self.retry("start a command", || channel.exec(command))?;
        let mut buffer = vec![0; CHUNK];
        let mut open_stdin = true;
        loop {
            self.left()?;
            let mut moved = false;
            if open_stdin {
                match channel.write(streams.stdin) {
                    Ok(n) => {
                        streams.stdin = &streams.stdin[n..];
                        moved |= n > 0;
                    }
                    Err(e) if e.kind() == ErrorKind::WouldBlock => {}
                    // The command closed its input; it may still have something to say.
                    Err(_) => streams.stdin = &[],
                }
                if streams.stdin.is_empty() {
                    self.retry("end a command's input", || channel.send_eof())?;
                    open_stdin = false;
                }
            }
            moved |= self.copy(&mut channel, &mut buffer, streams.stdout)?;
            moved |= self.copy(&mut channel.stderr(), &mut buffer, streams.stderr)?;
            if !moved {
                if channel.eof() {
                    return self.finish(&mut channel);
                }
                self.wait()?;
            }
        }
    }

    /// Passes on what is there; whether there was something.
    fn copy(
        &self,
        source: &mut impl Read,
        buffer: &mut [u8],
        sink: &mut dyn Write,
    ) -> Result<bool, SshError> {
        match source.read(buffer) {
            Ok(n) => {
                sink.write_all(&buffer[..n])
                    .map_err(|source| SshError::Sink {
                        domain: self.domain.clone(),
                        source,
                    })?;
                Ok(n > 0)
            }
            Err(e) if e.kind() == ErrorKind::WouldBlock => Ok(false),
            Err(source) => Err(SshError::Broken {
                domain: self.domain.clone(),
                source,
            }),
        }
    }

    fn finish(&self, channel: &mut Channel) -> Result<Exit, SshError> {
        self.retry("close a channel", || channel.close())?;
        self.retry("close a channel", || channel.wait_close())?;
        // The exit status of a command that a signal ended reads as 0: ask for the signal first.
        let signal = self.retry("read a command's end", || channel.exit_signal())?;
        if let Some(name) = signal.exit_signal {
            return Ok(Exit(128 + signal_number(&name)));
        }
        self.retry("read a command's end", || channel.exit_status())
            .map(Exit)
    }

    fn retry<T>(
        &self,
        what: &'static str,
        mut call: impl FnMut() -> Result<T, ssh2::Error>,
    ) -> Result<T, SshError> {
        loop {
            match call() {
                Ok(value) => return Ok(value),
                Err(e) if e.code() == ssh2::ErrorCode::Session(WOULD_BLOCK) => self.wait()?,
                Err(source) => {
                    return Err(SshError::Protocol {
                        domain: self.domain.clone(),
                        what,
                        source,
                    });
                }
            }
        }
    }

    /// What is left of the time; a command that prints without end gets no more of it than others.
    fn left(&self) -> Result<Duration, SshError> {
        let left = self.timeout.checked_sub(self.began.elapsed());
        left.ok_or_else(|| SshError::Deadline {
            domain: self.domain.clone(),
            deadline: self.timeout,
        })
    }

    /// Waits until the socket is ready for what the session wants of it.
    fn wait(&self) -> Result<(), SshError> {
        let left = self.left()?;
        let broken = |source| SshError::Broken {
            domain: self.domain.clone(),
            source,
        };
        let flags = match self.session.block_directions() {
            BlockDirections::Inbound | BlockDirections::None => PollFlags::POLLIN,
            BlockDirections::Outbound => PollFlags::POLLOUT,
            BlockDirections::Both => PollFlags::POLLIN | PollFlags::POLLOUT,
        };
        // SAFETY: the session owns the socket and outlives this call.
        let socket = unsafe { BorrowedFd::borrow_raw(self.session.as_raw_fd()) };
        let limit = left.min(POLL_LIMIT).max(Duration::from_millis(1));
        let limit = PollTimeout::try_from(limit).unwrap_or(PollTimeout::MAX);
        match poll(&mut [PollFd::new(socket, flags)], limit) {
            Ok(0) => {
                let _ = self.session.keepalive_send(); // a broken connection shows at the next read
                Ok(())
            }
            Ok(_) | Err(nix::Error::EINTR) => Ok(()),
            Err(e) => Err(broken(e.into())),
        }
    }
}

/// Signal names of RFC 4254, section 6.10, as Linux numbers them.
fn signal_number(name: &str) -> i32 {
    match name {
        "HUP" => 1,
        "INT" => 2,
        "QUIT" => 3,
        "ILL" => 4,
        "ABRT" => 6,
        "FPE" => 8,
        "KILL" => 9,
        "USR1" => 10,
        "SEGV" => 11,
        "USR2" => 12,
        "PIPE" => 13,
        "ALRM" => 14,
        _ => 15,
    }
}
