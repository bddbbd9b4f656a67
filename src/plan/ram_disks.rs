//! Whether the host has room for disks in its memory.

use super::{ActionKind, Plan};
use crate::diag::Note;
use crate::model::{Bytes, Medium, Name, Topology};

/// Memory of the host that the disks which a plan makes may come to take.
pub fn ram_disks(plan: &Plan) -> Bytes {
    Bytes(sizes(plan).map(|(_, size)| size.0).sum())
}

/// Disks in memory that a plan makes, each with its domain.
fn sizes(plan: &Plan) -> impl Iterator<Item = (Option<&Name>, Bytes)> {
    plan.actions.iter().filter_map(|action| match &action.kind {
        ActionKind::CreateDisk {
            on: Medium::Ram,
            size: Some(size),
            ..
        } => Some((action.domain.as_ref(), *size)),
        _ => None,
    })
}

/// A note when the disks in memory that `plan` makes do not go into the `room` that the host has for
/// files there.
pub fn check_ram_disks(topology: &Topology, plan: &Plan, room: Bytes) -> Option<Note> {
    let needed = ram_disks(plan);
    if needed <= room {
        return None;
    }
    let largest = sizes(plan).max_by_key(|(_, size)| *size);
    let path = largest
        .and_then(|(domain, _)| topology.domain(domain?))
        .map(|domain| format!("domains.{}.disks", domain.group))
        .unwrap_or_default();
    let mib = |bytes: Bytes| bytes.0 >> 20;
    let message = format!(
        "the host has no room for disks in RAM: {} MiB needed, {} MiB free in {}",
        mib(needed),
        mib(room),
        crate::model::RAM
    );
    Some(Note::error(path, message).hint(format!(
        "make them smaller, put them on disk, or enlarge it: mount -o remount,size=… {}",
        crate::model::RAM
    )))
}
