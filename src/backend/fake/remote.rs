//! Guests that answer once they have booted.

use std::collections::BTreeMap;
use std::io::Write;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use super::{FakeHypervisor, Operation};
use crate::model::{Digest, Name};
use crate::ports::{ErrorKind, Exit, Output, PortError, Remote, Target};

/// SSH to the guests of a [`FakeHypervisor`]: one answers at an address that its networks gave it,
/// while it runs, and after some looks at its port. For tests.
pub struct FakeRemote {
    hypervisor: Arc<FakeHypervisor>,
    /// How many looks at its port a guest's boot takes; `usize::MAX` is one that never comes up.
    boot: usize,
    /// Machines that are there already, with the digest of the files on them.
    machines: Mutex<BTreeMap<Name, Option<Digest>>>,
    /// Looks by the number of the guest's start.
    looks: Mutex<BTreeMap<u64, usize>>,
}

impl FakeRemote {
    /// Guests whose boot takes so many looks.
    pub fn new(hypervisor: Arc<FakeHypervisor>, boot: usize) -> Self {
        Self {
            hypervisor,
            boot,
            machines: Mutex::default(),
            looks: Mutex::default(),
        }
    }

    /// Adds a machine that is there already, and answers at once.
    pub fn add_machine(&self, name: Name) {
        let mut machines = self.machines.lock().unwrap_or_else(PoisonError::into_inner);
        machines.entry(name).or_default();
    }

    /// What a machine prints; none when there is no such machine. It knows labrig's own commands by
    /// their words.
    fn on_machine(&self, target: &Target, command: &str) -> Option<Vec<u8>> {
        let mut machines = self.machines.lock().unwrap_or_else(PoisonError::into_inner);
        let files = machines.get_mut(&target.domain)?;
        if command.contains(" files 'deliver' ") {
            let digest = command.rsplit('\'').nth(1);
            *files = digest.and_then(|digest| digest.parse().ok());
        } else if command.contains("/digest") {
            return Some(files.map_or_else(Vec::new, |digest| digest.to_string().into_bytes()));
        }
        Some(Vec::new())
    }

    /// Whether the target answers; every time it is asked it is further with its boot.
    fn reach(&self, target: &Target) -> Result<(), PortError> {
        let connect = |kind, why: &str| {
            PortError::new(kind, format!("connect to {}", target.domain)).because(why)
        };
        let world = self.hypervisor.lock();
        let Some((name, start)) = world.at(target.address) else {
            return Err(connect(
                ErrorKind::NotYet,
                "No route to host (os error 113)",
            ));
        };
        let mut looks = self.looks.lock().unwrap_or_else(PoisonError::into_inner);
        let looks = looks.entry(start).or_default();
        if *looks < self.boot {
            *looks += 1;
            return Err(connect(
                ErrorKind::NotYet,
                "Connection refused (os error 111)",
            ));
        }
        if *name != target.domain {
            return Err(connect(
                ErrorKind::Fatal,
                "its SSH server shows another host key",
            ));
        }
        Ok(())
    }
}

impl Remote for FakeRemote {
    fn banner(&self, target: &Target, _: Duration) -> Result<(), PortError> {
        let faults = self.hypervisor.faults();
        faults.call(Operation::Banner, &target.domain, || {
            match self.on_machine(target, "") {
                Some(_) => Ok(()),
                None => self.reach(target),
            }
        })
    }

    fn exec(
        &self,
        target: &Target,
        command: &str,
        _: &[u8],
        _: Duration,
    ) -> Result<Output, PortError> {
        let faults = self.hypervisor.faults();
        faults.call(Operation::Exec, &target.domain, || {
            let stdout = match self.on_machine(target, command) {
                Some(stdout) => stdout,
                None => {
                    self.reach(target)?;
                    Vec::new()
                }
            };
            Ok(Output {
                exit: Exit(0),
                stdout,
                stderr: Vec::new(),
            })
        })
    }

    fn stream(
        &self,
        target: &Target,
        command: &str,
        _: &mut dyn Write,
        _: &mut dyn Write,
        timeout: Duration,
    ) -> Result<Exit, PortError> {
        self.exec(target, command, &[], timeout)
            .map(|output| output.exit)
    }
}
