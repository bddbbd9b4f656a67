//! Disks as written.

use super::super::read::{At, Written};
use super::super::shape::{Key, NAME, SIZE, Shape};
use super::size;
use crate::model::{Bytes, Name};

/// What a disk is.
pub(super) const DISK: Shape = Shape::new(
    "A disk of one domain.",
    &[
        Key::required(
            "name",
            NAME,
            "data",
            "Its name; `root` is the overlay on the image's disk.",
        ),
        Key::new(
            "size",
            SIZE,
            "1GiB",
            "Virtual size; a root disk is as large as its image when left out.",
        ),
    ],
);

pub(in super::super) struct DiskSpec {
    pub name: Written<Name>,
    pub size: Option<Written<Bytes>>,
}

/// Reads a disk.
pub(super) fn disk(at: &At<'_>) -> Option<DiskSpec> {
    let fields = at.fields(&DISK)?;
    let name: Written<Name> = fields.get("name")?.parse("data")?;
    let size = match fields.get("size") {
        Some(at) => Some(size(&at, Bytes::mib(1), "1GiB")?),
        None if name.value.as_str() == "root" => None,
        None => {
            fields.need("size", "1GiB");
            return None;
        }
    };
    Some(DiskSpec { name, size })
}
