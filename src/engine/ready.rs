//! From a started domain to a ready one: ordered steps, each with its deadline.

use std::net::Ipv4Addr;
use std::time::{Duration, Instant};

use super::Bus;
use super::apply::Halt;
use crate::model::{Event, Name, Phase};
use crate::ports::{ErrorKind, Exit, Hypervisor, PortError, Remote, Target};
use crate::render::Hosts;

/// Bounds one attempt to connect: a guest that comes up while a connection is being tried is seen
/// when it is tried again.
const CONNECT_TIMEOUT: Duration = Duration::from_millis(200);
const PAUSE: Duration = Duration::from_millis(20);
/// How often libvirt is asked whether the domain still runs.
const ALIVE_INTERVAL: Duration = Duration::from_secs(1);
/// Exits with 0 when the guest has taken its seed, its boot is done and its settings hold, and says why
/// when it will never be ready. Looks for a while in the guest, so that a slow one is not burdened
/// with commands; not for ever, so that nothing is left running there when labrig stops to wait.
const READY: &str = "n=20; until test -e /run/labrig/ready; do \
    if test -e /var/lib/labrig/mounts-failed; then cat /var/lib/labrig/mounts-failed >&2; exit 1; fi; \
    n=$((n-1)); test $n -gt 0 || exit 75; sleep 0.1; done; \
    test ! -e /etc/labrig/check || sh /etc/labrig/check || exit 78";
/// What it exits with when the boot is not done yet: `EX_TEMPFAIL` of sysexits.h.
const NOT_YET: Exit = Exit(75);
/// What it exits with when the guest did not take a setting; the output says which. `EX_CONFIG`.
const UNSET: Exit = Exit(78);
/// Replaces the hosts file at once: whoever resolves a name meanwhile sees the old file or the new.
const TELL_HOSTS: &str =
    "cat >/etc/hosts.labrig && chmod 644 /etc/hosts.labrig && mv /etc/hosts.labrig /etc/hosts";
/// Longest time one command of a wait may take; a command that is given up costs its session.
const COMMAND_TIMEOUT: Duration = Duration::from_secs(10);

/// A wait for one domain.
pub(super) struct Wait<'a> {
    pub hypervisor: &'a dyn Hypervisor,
    pub remote: &'a dyn Remote,
    pub bus: &'a Bus,
    pub halt: &'a Halt,
    /// Longest wait for each step.
    pub step_timeout: Duration,
}

impl Wait<'_> {
    /// Waits for banner, login and readiness, in this order; then tells it the names of all domains.
    pub(super) fn until_ready(
        &self,
        domain: &Name,
        libvirt_name: &str,
        address: Ipv4Addr,
        hosts: Option<&Hosts>,
    ) -> Result<(), PortError> {
        let began = Instant::now();
        let reached = |phase| {
            let seconds = began.elapsed().as_secs_f64();
            self.bus.send(&Event::DomainPhase {
                domain: domain.clone(),
                phase,
                seconds,
            });
        };
        let target = Target {
            domain: domain.clone(),
            address,
        };
        reached(Phase::Started);
        self.step(
            libvirt_name,
            &format!("reach {domain}'s SSH port at {address}"),
            |_| self.remote.banner(&target, CONNECT_TIMEOUT),
        )?;
        reached(Phase::Banner);
        self.step(libvirt_name, &format!("log in to {domain}"), |left| {
            self.command(&target, "true", left)
        })?;
        reached(Phase::Login);
        self.step(
            libvirt_name,
            &format!("see {domain} take its seed and end its boot"),
            |left| self.command(&target, READY, left),
        )?;
        if let Some(hosts) = hosts {
            self.tell_hosts(domain, libvirt_name, address, hosts)?;
        }
        reached(Phase::Ready);
        Ok(())
    }

    /// Writes a domain's hosts file. Doing it twice does no harm.
    pub(super) fn tell_hosts(
        &self,
        domain: &Name,
        libvirt_name: &str,
        address: Ipv4Addr,
        hosts: &Hosts,
    ) -> Result<(), PortError> {
        let target = Target {
            domain: domain.clone(),
            address,
        };
        let file = hosts.of(domain);
        let what = format!("tell {domain} the names of all domains");
        self.step(libvirt_name, &what, |left| {
            self.feed(&target, TELL_HOSTS, file.as_bytes(), left)
        })
    }

    fn command(&self, target: &Target, command: &str, timeout: Duration) -> Result<(), PortError> {
        self.feed(target, command, &[], timeout)
    }

    fn feed(
        &self,
        target: &Target,
        command: &str,
        stdin: &[u8],
        timeout: Duration,
    ) -> Result<(), PortError> {
        let output = self.remote.exec(target, command, stdin, timeout)?;
        if output.exit.is_success() {
            return Ok(());
        }
        if output.exit == UNSET {
            let problems = String::from_utf8_lossy(&output.stdout).trim().to_owned();
            let message = format!("give {} its settings", target.domain);
            return Err(PortError::new(ErrorKind::Fatal, message)
                .because(problems.replace('\n', "; "))
                .hint("correct them in the topology: the next `up` starts the domain with them"));
        }
        let stderr = String::from_utf8_lossy(&output.stderr).trim().to_owned();
        let message = format!(
            "run a command on {}: it ended with {} {stderr}",
            target.domain, output.exit.0
        );
        let kind = match output.exit {
            NOT_YET => ErrorKind::NotYet,
            _ => ErrorKind::Fatal,
        };
        Err(PortError::new(kind, message))
    }

    /// Tries until it works, the deadline passes, the domain dies, or the user has enough.
    fn step(
        &self,
        libvirt_name: &str,
        what: &str,
        mut attempt: impl FnMut(Duration) -> Result<(), PortError>,
    ) -> Result<(), PortError> {
        let began = Instant::now();
        let mut asked = Instant::now();
        loop {
            self.halt.check()?;
            let left = self.step_timeout.saturating_sub(began.elapsed());
            let error = match attempt(left.min(COMMAND_TIMEOUT)) {
                Ok(()) => return Ok(()),
                Err(error) if error.kind == ErrorKind::Fatal => return Err(error),
                Err(error) => error,
            };
            if asked.elapsed() > ALIVE_INTERVAL {
                asked = Instant::now();
                let stats = self.hypervisor.domain_stats(libvirt_name)?;
                if stats.state == "shut off" || stats.state == "crashed" {
                    return Err(PortError::new(
                        ErrorKind::Fatal,
                        format!("{what}: the domain is {}", stats.state),
                    ));
                }
            }
            if began.elapsed() >= self.step_timeout {
                let seconds = self.step_timeout.as_secs_f64();
                return Err(PortError::new(
                    ErrorKind::Timeout,
                    format!("{what} within {seconds}s"),
                )
                .because(error)
                .hint(
                    "`boot_timeout` of the domain sets how long each step of its boot may take",
                ));
            }
            std::thread::sleep(PAUSE);
        }
    }
}
