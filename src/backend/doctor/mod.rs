//! Examines the host: what it has of what labs need, and what to do about the rest. Things are
//! tried for real where that leaves nothing behind.

mod finding;
mod isolation;
mod network;
mod programs;
mod room;

use std::path::Path;

use crate::backend::probe;
use crate::model::Acceleration;

pub use finding::{Finding, State};

/// What an examination looks at.
#[derive(Debug, Clone, Copy)]
pub struct Examination<'a> {
    /// labrig's state directory, which need not be there yet.
    pub state_directory: &'a Path,
    /// Where verdicts about KVM are remembered.
    pub kvm_cache: &'a Path,
    /// A kernel and initial RAM disk to boot with KVM now; none: what is remembered serves.
    pub boot: Option<(&'a Path, Option<&'a Path>)>,
}

/// Examines the host, the most important things first.
pub fn examine(examination: &Examination<'_>) -> Vec<Finding> {
    let mut findings = vec![kvm(examination)];
    findings.extend(isolation::examine());
    findings.extend(programs::examine());
    findings.extend(network::examine());
    findings.extend(room::examine(examination.state_directory));
    findings
}

fn kvm(examination: &Examination<'_>) -> Finding {
    const NAME: &str = "KVM";
    let verdict = match examination.boot {
        Some((kernel, initrd)) => Some(probe::measure(examination.kvm_cache, kernel, initrd)),
        None => probe::remembered(examination.kvm_cache),
    };
    let Some(verdict) = verdict else {
        let advice = "`labrig up` of any lab tries it";
        return Finding::poor(
            NAME,
            "/dev/kvm opens; whether a kernel boots with it was not tried yet",
            advice,
        );
    };
    match verdict.acceleration {
        Acceleration::Kvm => Finding::good(NAME, verdict.reason),
        Acceleration::Emulation => Finding::poor(
            NAME,
            verdict.reason,
            "guests are emulated, which works and is slow; for KVM, switch on virtualisation in the \
             firmware (or nested virtualisation in the machine around this one), load kvm_intel or \
             kvm_amd, and join the group kvm",
        ),
    }
}
