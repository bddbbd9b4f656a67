//! What goes wrong, and when.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use crate::ports::{ErrorKind, PortError};

/// A call of a port.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Operation {
    /// See what is there.
    Observe,
    /// Define a network.
    DefineNetwork,
    /// Start a network.
    StartNetwork,
    /// Change a reservation.
    Reserve,
    /// Remove a network.
    RemoveNetwork,
    /// Link an image.
    LinkImage,
    /// Make a disk.
    CreateDisk,
    /// Write a seed.
    WriteSeed,
    /// Remove a file.
    RemoveFile,
    /// Define a domain.
    DefineDomain,
    /// Start a domain.
    StartDomain,
    /// Set what frames of a vnet meet.
    Impair,
    /// Mark a domain as ready.
    MarkReady,
    /// Stop a domain.
    StopDomain,
    /// Undefine a domain.
    RemoveDomain,
    /// Ask how a domain is doing.
    DomainStats,
    /// Ask where a domain is.
    Placement,
    /// Move a domain.
    MoveDomain,
    /// Provide an image.
    EnsureImage,
    /// Look for an SSH banner.
    Banner,
    /// Run a command on a guest.
    Exec,
    /// Write into the journal.
    Intend,
}

/// Whether a call that fails has done its work.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Effect {
    /// It fails before it did anything.
    Nothing,
    /// It does all it should, and its answer is lost.
    Done,
}

/// A call that is to fail.
#[derive(Debug, Clone)]
pub struct Fault {
    /// Which call.
    pub operation: Operation,
    /// On which object; none: any.
    pub object: Option<String>,
    /// Only the n-th such call, from 1; none: every one.
    pub nth: Option<usize>,
    /// What it does all the same.
    pub effect: Effect,
}

impl Fault {
    /// The n-th call of an operation fails, and does nothing.
    pub fn nth(operation: Operation, n: usize) -> Self {
        Self {
            operation,
            object: None,
            nth: Some(n),
            effect: Effect::Nothing,
        }
    }

    /// Every call of an operation on an object fails, and does nothing.
    pub fn on(operation: Operation, object: impl Into<String>) -> Self {
        Self {
            operation,
            object: Some(object.into()),
            nth: None,
            effect: Effect::Nothing,
        }
    }
}

/// Faults to come and calls so far, shared by the fakes of one test.
#[derive(Debug, Default)]
pub struct Faults(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    faults: Vec<(Fault, usize)>,
    calls: BTreeMap<Operation, usize>,
}

impl Faults {
    /// Adds a fault; its calls are counted from now on.
    pub fn add(&self, fault: Fault) {
        self.state().faults.push((fault, 0));
    }

    /// Forgets all faults.
    pub fn clear(&self) {
        self.state().faults.clear();
    }

    /// How often an operation was called.
    pub fn calls(&self, operation: Operation) -> usize {
        self.state()
            .calls
            .get(&operation)
            .copied()
            .unwrap_or_default()
    }

    /// Does a call, unless it is to fail.
    pub(super) fn call<T>(
        &self,
        operation: Operation,
        object: &str,
        work: impl FnOnce() -> Result<T, PortError>,
    ) -> Result<T, PortError> {
        let Some(effect) = self.strike(operation, object) else {
            return work();
        };
        if effect == Effect::Done {
            work()?;
        }
        let what = format!("call {operation:?} on {object}");
        Err(PortError::new(ErrorKind::Fatal, what).because("injected fault"))
    }

    fn strike(&self, operation: Operation, object: &str) -> Option<Effect> {
        let mut state = self.state();
        *state.calls.entry(operation).or_default() += 1;
        let mut effect = None;
        for (fault, seen) in &mut state.faults {
            let meant = fault.operation == operation
                && fault.object.as_ref().is_none_or(|name| name == object);
            if meant {
                *seen += 1;
                if fault.nth.is_none_or(|nth| nth == *seen) {
                    effect = effect.or(Some(fault.effect));
                }
            }
        }
        effect
    }

    fn state(&self) -> std::sync::MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
