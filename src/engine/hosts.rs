//! Telling a guest the names of all domains.

use std::net::Ipv4Addr;
use std::time::Duration;

use crate::model::Name;
use crate::ports::{ErrorKind, PortError, Remote, Target};
use crate::render::Hosts;

/// Replaces the file at once: whoever resolves a name meanwhile sees the old file or the new one.
const COMMAND: &str =
    "cat >/etc/hosts.labrig && chmod 644 /etc/hosts.labrig && mv /etc/hosts.labrig /etc/hosts";
const TIMEOUT: Duration = Duration::from_secs(60);

/// Writes a domain's hosts file. Doing it twice does no harm.
pub(super) fn tell(
    remote: &dyn Remote,
    domain: &Name,
    address: Ipv4Addr,
    hosts: &Hosts,
) -> Result<(), PortError> {
    let target = Target {
        domain: domain.clone(),
        address,
    };
    let file = hosts.of(domain);
    let output = remote.exec(&target, COMMAND, file.as_bytes(), TIMEOUT)?;
    if output.exit.is_success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&output.stderr).trim().to_owned();
    Err(PortError::new(
        ErrorKind::Fatal,
        format!(
            "write {} on {domain}: it ended with {} {said}",
            Hosts::PATH,
            output.exit.0
        ),
    ))
}
