//! The host as written: what it is, and what of it is kept.

use std::collections::BTreeMap;

use super::super::read::{At, Fields, Written};
use super::super::shape::{Form, Key, SIZE, Shape};
use super::size;
use crate::model::{Bytes, RegularHost};

/// Hardware threads that Linux can number.
const THREADS_MAX: u64 = 8192;

const COUNT: Form = Form::Whole {
    least: 1,
    most: THREADS_MAX,
};

/// What a host is.
pub(super) const HOST: Shape = Shape::merged(
    "The host that splits divide: described, or measured when only `reserve` is given.",
    &[
        Key::new(
            "threads",
            COUNT,
            "256",
            "Hardware threads, each a core of its own; instead of sockets, cores and threads_per_core.",
        ),
        Key::new("sockets", COUNT, "4", "Sockets; 1 when left out."),
        Key::new("cores", COUNT, "8", "Cores of each socket."),
        Key::new(
            "threads_per_core",
            Form::Whole { least: 1, most: 64 },
            "8",
            "Hardware threads of each core; 1 when left out. Siblings have consecutive numbers.",
        ),
        Key::new("memory", SIZE, "256GiB", "Memory of all nodes together."),
        Key::new(
            "numa",
            Form::Whole {
                least: 1,
                most: 1024,
            },
            "4",
            "NUMA nodes; 1 when left out. Cores, memory and huge pages are dealt to them evenly, in order.",
        ),
        Key::new(
            "hugepages",
            Form::Keyed(&Form::Whole {
                least: 0,
                most: 1 << 32,
            }),
            "{2MiB: 1024}",
            "Huge pages of all nodes together, by their size.",
        ),
        Key::new(
            "reserve",
            Form::Whole {
                least: 0,
                most: THREADS_MAX,
            },
            "2",
            "Cores that are kept for the host itself: the first ones. QEMU's own threads run there.",
        ),
    ],
);

#[derive(Debug, Default)]
pub(in super::super) struct HostSpec {
    /// None when it is to be measured.
    pub described: Option<Written<RegularHost>>,
    /// Cores.
    pub reserve: Option<Written<u32>>,
}

/// Reads the host.
pub(super) fn host(at: &At<'_>) -> HostSpec {
    let Some(fields) = at.fields(&HOST) else {
        return HostSpec::default();
    };
    let reserve = fields.get("reserve").and_then(|at| {
        Some(Written {
            value: at.whole()? as u32,
            spot: at.spot(),
        })
    });
    let described = HOST
        .keys
        .iter()
        .any(|key| key.name != "reserve" && fields.get(key.name).is_some());
    HostSpec {
        described: described.then(|| regular(at, &fields)).flatten(),
        reserve,
    }
}

fn regular(at: &At<'_>, fields: &Fields<'_>) -> Option<Written<RegularHost>> {
    let number = |key: &str| fields.get(key).map(|at| at.whole().map(|n| n as u32));
    let (mut sockets, mut cores) = (number("sockets"), number("cores"));
    let mut threads_per_core = number("threads_per_core");
    if let Some(threads) = number("threads") {
        if let Some(other) = ["sockets", "cores", "threads_per_core"]
            .iter()
            .find(|key| fields.get(key).is_some())
        {
            fields.one_of(&["threads", other]);
            return None;
        }
        (sockets, cores, threads_per_core) = (Some(Some(1)), Some(threads), Some(Some(1)));
    } else if cores.is_none() {
        fields.need("threads", "256");
    }
    let memory = fields.need("memory", "256GiB");
    let memory = memory.and_then(|at| size(&at, Bytes::mib(32), "256GiB"))?;
    let host = RegularHost {
        sockets: sockets.unwrap_or(Some(1))?,
        cores: cores??,
        threads_per_core: threads_per_core.unwrap_or(Some(1))?,
        memory: memory.value,
        nodes: number("numa").unwrap_or(Some(1))?,
        hugepages: hugepages(fields),
    };
    if host.threads() > THREADS_MAX {
        at.error(
            format!("{} threads are more than Linux can number", host.threads()),
            format!("at most {THREADS_MAX}"),
        );
        return None;
    }
    let all_cores = host.sockets * host.cores;
    if let Some(at) = fields.get("numa").filter(|_| host.nodes > all_cores) {
        at.error(
            format!("{} nodes for {all_cores} cores", host.nodes),
            "each node has at least one core",
        );
        return None;
    }
    let pages = host.hugepages.iter();
    let huge: u128 = pages
        .map(|(size, n)| u128::from(size.0) * u128::from(*n))
        .sum();
    if let Some(at) = fields
        .get("hugepages")
        .filter(|_| huge > u128::from(memory.value.0))
    {
        at.error(
            format!(
                "these huge pages are {} MiB, more than the host's memory",
                huge >> 20
            ),
            format!("the host has {}", memory.value),
        );
        return None;
    }
    Some(Written {
        value: host,
        spot: at.spot(),
    })
}

fn hugepages(fields: &Fields<'_>) -> BTreeMap<Bytes, u64> {
    let mut pages = BTreeMap::new();
    let Some(at) = fields.get("hugepages") else {
        return pages;
    };
    for (key, value) in at.entries("2MiB: 1024") {
        match key.value.parse::<Bytes>() {
            Ok(size) if size.0.is_power_of_two() && size >= Bytes(64 << 10) => {
                if let Some(count) = value.integer(0, 1 << 32) {
                    pages.insert(size, count);
                }
            }
            Ok(size) => value.error(
                format!("there are no huge pages of {size}"),
                "x86 has 2MiB and 1GiB",
            ),
            Err(e) => value.error(e.to_string(), "as in {2MiB: 1024}"),
        }
    }
    pages
}
