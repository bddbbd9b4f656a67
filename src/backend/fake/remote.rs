//! Guests that answer once they have booted.

use std::collections::BTreeMap;
use std::io::Write;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use super::{FakeHypervisor, Operation};
use crate::ports::{ErrorKind, Exit, Output, PortError, Remote, Target};

/// SSH to the guests of a [`FakeHypervisor`]: one answers at an address that its networks gave it,
/// while it runs, and after some looks at its port. For tests.
pub struct FakeRemote {
    hypervisor: Arc<FakeHypervisor>,
    /// How many looks at its port a guest's boot takes; `usize::MAX` is one that never comes up.
    boot: usize,
    /// Looks by the number of the guest's start.
    looks: Mutex<BTreeMap<u64, usize>>,
}

impl FakeRemote {
    /// Guests whose boot takes so many looks.
    pub fn new(hypervisor: Arc<FakeHypervisor>, boot: usize) -> Self {
        Self {
            hypervisor,
            boot,
            looks: Mutex::default(),
        }
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
        faults.call(Operation::Banner, &target.domain, || self.reach(target))
    }

    fn exec(&self, target: &Target, _: &str, _: &[u8], _: Duration) -> Result<Output, PortError> {
        let faults = self.hypervisor.faults();
        faults.call(Operation::Exec, &target.domain, || {
            self.reach(target)?;
            Ok(Output {
                exit: Exit(0),
                stdout: Vec::new(),
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
