//! A domain's machine as written.

use super::super::read::{At, Fields, Written};
use super::super::shape::{Form, Key, Shape, Word, words};
use super::word;
use crate::model::{CpuTopology, Firmware, GuestCpu, Machine};
use crate::render::Overlay;

const COUNT: Form = Form::Whole {
    least: 1,
    most: 1024,
};

/// What a machine is.
pub(super) const MACHINE: Shape = Shape::merged(
    "The machine a guest finds itself in.",
    &[
        Key::new(
            "type",
            Form::Syntax("^[a-z0-9][a-z0-9.+-]*$"),
            "q35",
            "QEMU's machine type: q35, pc, or one with its version as in pc-q35-7.2; q35 when left out. Which version a name stands for is kept in the lock.",
        ),
        Key::new(
            "firmware",
            Form::Words(words::<Firmware>),
            "uefi",
            "What boots it; bios when left out. UEFI keeps its variables for each domain.",
        ),
        Key::new("cpu", Form::Map(&CPU), "{model: host}", "Its processor."),
        Key::new("tpm", Form::Truth, "true", "Whether it has a TPM 2.0."),
        Key::new(
            "xml",
            Form::Text,
            "\"<domain>…</domain>\"",
            "libvirt XML that is merged into the definition, as the last resort.",
        ),
    ],
);

const CPU: Shape = Shape::merged(
    "A guest's processor.",
    &[
        Key::new(
            "model",
            Form::Text,
            "host",
            "host, max, or a model that libvirt knows; all there is when left out.",
        ),
        Key::new("sockets", COUNT, "1", "Sockets; 1 when left out."),
        Key::new(
            "cores",
            COUNT,
            "4",
            "Cores of each socket; 1 when left out.",
        ),
        Key::new(
            "threads",
            COUNT,
            "2",
            "Threads of each core; 1 when left out.",
        ),
    ],
);

impl Word for Firmware {
    const WORDS: &'static [(&'static str, Self)] = &[("bios", Self::Bios), ("uefi", Self::Uefi)];
}

#[derive(Debug, Clone, Default)]
pub(in super::super) struct MachineSpec {
    pub machine: Machine,
    /// How its virtual CPUs are grouped, where it says so.
    pub topology: Option<Written<CpuTopology>>,
}

/// Reads a machine; the default one when nothing is said.
pub(super) fn machine(fields: &Fields<'_>) -> MachineSpec {
    let Some(fields) = fields.get("machine").and_then(|at| at.fields(&MACHINE)) else {
        return MachineSpec::default();
    };
    let mut machine = Machine::default();
    if let Some(kind) = fields.get("type").and_then(|at| {
        word(&at, "q35", |c| {
            c.is_ascii_lowercase() || c.is_ascii_digit() || ".+-".contains(c)
        })
    }) {
        machine.kind = kind;
    }
    machine.firmware = fields
        .get("firmware")
        .and_then(|at| at.word())
        .unwrap_or_default();
    machine.tpm = fields
        .get("tpm")
        .and_then(|at| at.boolean())
        .unwrap_or_default();
    machine.xml = fields.get("xml").and_then(|at| overlay(&at));
    let cpu = fields.get("cpu").and_then(|at| at.fields(&CPU));
    let topology = cpu.as_ref().and_then(topology);
    machine.cpu = GuestCpu {
        model: cpu.and_then(|cpu| {
            word(&cpu.get("model")?, "host", |c| {
                c.is_ascii_alphanumeric() || "-_.".contains(c)
            })
        }),
        topology: topology.as_ref().map(|topology| topology.value),
    };
    MachineSpec { machine, topology }
}

fn topology(cpu: &Fields<'_>) -> Option<Written<CpuTopology>> {
    let first = ["sockets", "cores", "threads"]
        .iter()
        .find_map(|key| cpu.get(key))?;
    let count = |key: &str| cpu.get(key).map_or(Some(1), |at| at.whole());
    Some(Written {
        value: CpuTopology {
            sockets: count("sockets")? as u32,
            cores: count("cores")? as u32,
            threads: count("threads")? as u32,
        },
        spot: first.spot(),
    })
}

fn overlay(at: &At<'_>) -> Option<String> {
    let text = at.text("<domain>…</domain>")?;
    match Overlay::parse(text.value) {
        Ok(_) => Some(text.value.to_owned()),
        Err(e) => {
            at.error(
                format!("this is no libvirt XML that can be merged: {e}"),
                "write one <domain> element with what is to be added or replaced",
            );
            None
        }
    }
}
