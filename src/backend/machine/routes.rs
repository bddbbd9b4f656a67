//! The way to each domain of a lab, by its kind.

use std::collections::BTreeSet;
use std::io::Write;
use std::time::Duration;

use super::LabHost;
use crate::backend::ssh::SshRemote;
use crate::model::Name;
use crate::ports::{Exit, Output, PortError, Remote, Target};

/// The remote port for all domains of a lab.
pub struct Routes {
    /// To what labrig makes, in the lab's own network.
    pub guests: SshRemote,
    /// To machines that are there already, from this machine's network.
    pub externals: SshRemote,
    /// To the lab host.
    pub host: LabHost,
    /// Domains that are external.
    pub external: BTreeSet<Name>,
    /// Domains that are the lab host.
    pub hosts: BTreeSet<Name>,
}

impl Routes {
    fn of(&self, target: &Target) -> &dyn Remote {
        if self.hosts.contains(&target.domain) {
            &self.host
        } else if self.external.contains(&target.domain) {
            &self.externals
        } else {
            &self.guests
        }
    }
}

impl Remote for Routes {
    fn banner(&self, target: &Target, timeout: Duration) -> Result<(), PortError> {
        self.of(target).banner(target, timeout)
    }

    fn exec(
        &self,
        target: &Target,
        command: &str,
        stdin: &[u8],
        timeout: Duration,
    ) -> Result<Output, PortError> {
        self.of(target).exec(target, command, stdin, timeout)
    }

    fn stream(
        &self,
        target: &Target,
        command: &str,
        stdout: &mut dyn Write,
        stderr: &mut dyn Write,
        timeout: Duration,
    ) -> Result<Exit, PortError> {
        self.of(target)
            .stream(target, command, stdout, stderr, timeout)
    }
}
