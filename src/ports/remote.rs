//! Guests, by SSH.

use std::io::Write;
use std::net::Ipv4Addr;
use std::time::Duration;

use super::PortError;
use crate::model::Name;

/// A guest to talk to.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Target {
    /// The domain, whose host key is expected.
    pub domain: Name,
    /// Where it listens on port 22.
    pub address: Ipv4Addr,
}

/// How a command ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Exit(pub i32);

/// What a short command gave.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Output {
    /// Exit status; 128 + n after signal n.
    pub exit: Exit,
    /// Standard output.
    pub stdout: Vec<u8>,
    /// Standard error.
    pub stderr: Vec<u8>,
}

/// SSH to guests. One call is one command; a call never repeats a command by itself.
pub trait Remote: Send + Sync {
    /// Whether the SSH port answers with a banner. `timeout` bounds the connecting; a server that
    /// took the connection is given seconds more, since asking anew would only cost it more.
    fn banner(&self, target: &Target, timeout: Duration) -> Result<(), PortError>;

    /// Runs a shell command, feeds it `stdin`, and keeps what it prints.
    ///
    /// # Errors
    /// `Timeout` after `timeout`; `Connection` when the way there broke, in which case the command
    /// may or may not have run. A non-zero exit is no error.
    fn exec(
        &self,
        target: &Target,
        command: &str,
        stdin: &[u8],
        timeout: Duration,
    ) -> Result<Output, PortError>;

    /// Runs a shell command and passes on what it prints as it comes, in constant memory.
    ///
    /// # Errors
    /// As [`Self::exec`]; also what a writer fails with.
    fn stream(
        &self,
        target: &Target,
        command: &str,
        stdout: &mut dyn Write,
        stderr: &mut dyn Write,
        timeout: Duration,
    ) -> Result<Exit, PortError>;
}

impl Exit {
    /// Whether it is 0.
    pub const fn is_success(self) -> bool {
        self.0 == 0
    }
}
