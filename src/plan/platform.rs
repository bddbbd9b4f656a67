//! Whether a host's QEMU and libvirt can make the machines of a topology.

use std::collections::HashSet;

use crate::diag::Note;
use crate::model::{Acceleration, Bytes, Domain, DomainKind, Firmware, Guest, Platform, Topology};

/// Notes about what `platform` lacks for the domains of `topology`; what several of a group lack is
/// noted once.
pub fn check_platform(topology: &Topology, platform: &Platform) -> Vec<Note> {
    let mut notes = Vec::new();
    for domain in &topology.domains {
        if let DomainKind::Vm(guest) = &domain.kind {
            check_machine(domain, guest, platform, &mut notes);
            check_split(domain, platform, &mut notes);
        }
    }
    let mut told = HashSet::new();
    notes.retain(|note: &Note| told.insert((note.path.clone(), note.message.clone())));
    notes
}

fn check_machine(domain: &Domain, guest: &Guest, platform: &Platform, notes: &mut Vec<Note>) {
    let machine = &guest.machine;
    let mut note = |key: &str, message: String, hint: String| {
        let path = format!("domains.{}.machine.{key}", domain.group);
        notes.push(Note::error(path, message).hint(hint));
    };
    let kind = machine.kind.as_str();
    if !platform.machines.contains_key(kind) {
        // The default is QEMU's own: without QEMU there are no types at all, and others say so.
        if platform.machines.is_empty() {
            return;
        }
        note(
            "type",
            format!("QEMU on this host has no machine type {kind:?}"),
            "`qemu-system-x86_64 -machine help` lists them".to_owned(),
        );
    } else if machine.firmware == Firmware::Uefi && platform.uefi_for(kind).is_none() {
        note(
            "firmware",
            format!(
                "this host has no UEFI firmware for {}",
                platform.machine(kind)
            ),
            "install it (Debian: ovmf), or use bios".to_owned(),
        );
    }
    if machine.tpm && !platform.tpm {
        note(
            "tpm",
            "this host has no swtpm, which a TPM needs".to_owned(),
            "scripts/install-packages installs it (Debian: swtpm, swtpm-tools; and make /var/log/swtpm), or leave the TPM out".to_owned(),
        );
    }
    match machine.cpu.model.as_deref() {
        Some("host") if platform.acceleration == Acceleration::Emulation => note(
            "cpu.model",
            "emulation cannot show the host's own processor".to_owned(),
            "leave the model out: guests then have all that QEMU can emulate".to_owned(),
        ),
        None | Some("host" | "max") => {}
        Some(model) if platform.cpu_models.contains(model) => {}
        Some(model) => note(
            "cpu.model",
            format!("libvirt on this host knows no processor {model:?}"),
            "use host, max, or one that `virsh cpu-models x86_64` lists".to_owned(),
        ),
    }
}

fn check_split(domain: &Domain, platform: &Platform, notes: &mut Vec<Note>) {
    let Some(split) = &domain.split else { return };
    let mut note = |key: &str, message: String, hint: String| {
        let path = format!("domains.{}.split.{key}", domain.group);
        notes.push(Note::error(path, message).hint(hint));
    };
    for (key, is_asked) in [
        ("shares", split.shares.is_some()),
        ("quota", split.quota.is_some()),
        ("memory_limit", split.memory_limit.is_some()),
    ] {
        if is_asked && !platform.cgroups {
            note(
                key,
                format!("{key} needs control groups, which an embedded host has not"),
                "use --host qemu:///system, or pin the domain to CPUs of its own".to_owned(),
            );
        }
    }
    if let Some(size) = split
        .hugepages
        .filter(|size| !platform.hugepages.contains(size))
    {
        note(
            "hugepages",
            format!("no file system with huge pages of {size} is mounted that QEMU may write to"),
            format!(
                "mount one: mount -t hugetlbfs -o pagesize={} none /dev/hugepages",
                mount_size(size)
            ),
        );
    }
}

/// A size as `mount` wants it.
fn mount_size(size: Bytes) -> String {
    format!("{}K", size.kib_rounded_up())
}
