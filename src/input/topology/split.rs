//! A domain's split as written.

use super::super::read::Fields;
use super::super::shape::{Form, Key, SIZE, Shape};
use super::size;
use crate::model::{Bytes, Split};

/// What a split is.
pub(super) const SPLIT: Shape = Shape::merged(
    "A domain's share of the host.",
    &[
        Key::required(
            "cpus",
            Form::Whole {
                least: 1,
                most: 1024,
            },
            "1",
            "Virtual CPUs.",
        ),
        Key::required("memory", SIZE, "512MiB", "Memory."),
    ],
);

/// Reads a split. What is wrong is noted; the stand-ins are never used then.
pub(super) fn split(fields: &Fields<'_>) -> Split {
    let split = fields.get("split").and_then(|at| at.fields(&SPLIT));
    let cpus = split.as_ref().and_then(|split| split.get("cpus")?.whole());
    let memory = split
        .as_ref()
        .and_then(|split| size(&split.get("memory")?, Bytes::mib(32), "512MiB"));
    Split {
        vcpus: cpus.map_or(1, |n| n as u32),
        memory: memory.map_or(Bytes::mib(512), |w| w.value),
    }
}
