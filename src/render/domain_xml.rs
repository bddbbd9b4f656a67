//! libvirt domain XML of a domain.

use std::path::Path;

use quick_xml::events::BytesText;

use super::Overlay;
use super::interface_xml::interface_xml;
use super::share_xml::{processor, share};
use super::xml::{Xml, empty, tagged_and_merged, text};
use crate::model::{
    Acceleration, Digest, Disk, DiskFormat, DiskSource, Domain, Firmware, Guest, Machine, Platform,
    Split, Topology,
};

/// Files a domain is put together from; all paths as the hypervisor's host sees them.
#[derive(Debug, Clone)]
pub struct DomainParts<'a> {
    /// Kernel for direct boot; none: the firmware boots the first disk.
    pub kernel: Option<&'a Path>,
    /// Initial RAM disk for direct boot.
    pub initrd: Option<&'a Path>,
    /// Disks in order; the first is the root when the image has a disk.
    pub disks: Vec<DiskPart<'a>>,
    /// Whether the first disk is the root.
    pub has_root: bool,
    /// File with the variables of its UEFI, where it has one.
    pub nvram: &'a Path,
    /// Seed disk.
    pub seed: &'a Path,
    /// Whether cloud-init reads the seed.
    pub cloud_init: bool,
    /// File that takes the serial console.
    pub console: &'a Path,
}

/// A disk with the file or device it is.
#[derive(Debug, Clone, Copy)]
pub struct DiskPart<'a> {
    /// The disk.
    pub disk: &'a Disk,
    /// What is opened.
    pub path: &'a Path,
}

/// The definition of a domain with its digest.
pub fn domain_xml(
    topology: &Topology,
    made: (&Domain, &Guest, &Split),
    parts: &DomainParts<'_>,
    platform: &Platform,
) -> (String, Digest) {
    let (domain, guest, split) = made;
    // One that cannot be read was noted long before.
    let overlay = guest.machine.xml.as_deref();
    let overlay = overlay.and_then(|text| Overlay::parse(text).ok());
    tagged_and_merged(&topology.lab, overlay.as_ref(), |xml, tag| {
        let kind = match platform.acceleration {
            Acceleration::Kvm => "kvm",
            Acceleration::Emulation => "qemu",
        };
        xml.create_element("domain")
            .with_attribute(("type", kind))
            .write_inner_content(|xml| {
                text(xml, "name", &guest.libvirt_name)?;
                text(xml, "uuid", guest.uuid.to_string())?;
                tag.map_or(Ok(()), |tag| tag.write(xml))?;
                share(xml, split)?;
                if parts.cloud_init {
                    smbios(xml)?;
                }
                boot(xml, &guest.machine, parts, platform)?;
                xml.create_element("features")
                    .write_inner_content(|xml| empty(xml, "acpi", &[]))?;
                processor(xml, &guest.machine.cpu, platform.acceleration)?;
                empty(xml, "clock", &[("offset", "utc")])?;
                text(xml, "on_poweroff", "destroy")?;
                text(xml, "on_reboot", "restart")?;
                text(xml, "on_crash", "destroy")?;
                xml.create_element("devices").write_inner_content(|xml| {
                    devices(xml, (domain, guest, split), topology, parts)
                })?;
                Ok(())
            })
            .map(drop)
    })
}

/// Tells cloud-init where its data is, so that it asks no network for it (cloud-init's NoCloud page:
/// `ds=nocloud` in the system's serial number).
fn smbios(xml: &mut Xml) -> std::io::Result<()> {
    xml.create_element("sysinfo")
        .with_attribute(("type", "smbios"))
        .write_inner_content(|xml| {
            xml.create_element("system").write_inner_content(|xml| {
                xml.create_element("entry")
                    .with_attribute(("name", "serial"))
                    .write_text_content(BytesText::new("ds=nocloud"))
                    .map(drop)
            })?;
            Ok(())
        })
        .map(drop)
}

/// `<os>`: type of machine, firmware and kernel.
fn boot(
    xml: &mut Xml,
    machine: &Machine,
    parts: &DomainParts<'_>,
    platform: &Platform,
) -> std::io::Result<()> {
    xml.create_element("os")
        .write_inner_content(|xml| {
            xml.create_element("type")
                .with_attributes([
                    ("arch", "x86_64"),
                    ("machine", platform.machine(&machine.kind)),
                ])
                .write_text_content(BytesText::new("hvm"))?;
            if machine.firmware == Firmware::Uefi
                && let Some(uefi) = platform.uefi_for(&machine.kind)
            {
                xml.create_element("loader")
                    .with_attributes([("readonly", "yes"), ("type", "pflash")])
                    .write_text_content(BytesText::new(&uefi.code.to_string_lossy()))?;
                xml.create_element("nvram")
                    .with_attribute(("template", &*uefi.variables.to_string_lossy()))
                    .write_text_content(BytesText::new(&parts.nvram.to_string_lossy()))?;
            }
            if let Some(kernel) = parts.kernel {
                text(xml, "kernel", kernel.to_string_lossy())?;
                if let Some(initrd) = parts.initrd {
                    text(xml, "initrd", initrd.to_string_lossy())?;
                }
                let root = if parts.has_root {
                    "root=/dev/vda rw "
                } else {
                    ""
                };
                // On a busy host an emulated guest measures its TSC against timers that are late, and
                // its clock then runs many times too fast; QEMU's other clocks need no measuring.
                let clock = match platform.acceleration {
                    Acceleration::Emulation => " tsc=unstable",
                    Acceleration::Kvm => "",
                };
                text(
                    xml,
                    "cmdline",
                    format!("{root}console=ttyS0 quiet net.ifnames=0{clock}"),
                )?;
            }
            if parts.cloud_init {
                empty(xml, "smbios", &[("mode", "sysinfo")])?;
            }
            Ok(())
        })
        .map(drop)
}

fn devices(
    xml: &mut Xml,
    (domain, guest, split): (&Domain, &Guest, &Split),
    topology: &Topology,
    parts: &DomainParts<'_>,
) -> std::io::Result<()> {
    for (i, part) in parts.disks.iter().enumerate() {
        // Dealt out in turn: disk after disk to the next I/O thread.
        let io_thread = (i as u32)
            .checked_rem(split.io_threads)
            .map(|thread| thread + 1);
        disk(xml, *part, i, io_thread)?;
    }
    seed_disk(xml, parts.seed, parts.disks.len())?;
    empty(xml, "controller", &[("type", "usb"), ("model", "none")])?;
    for vnet in &domain.vnets {
        let Some(vswitch) = topology.vswitches.get(&vnet.vswitch) else {
            continue;
        };
        interface_xml(xml, vnet, vswitch)?;
    }
    xml.create_element("serial")
        .with_attribute(("type", "file"))
        .write_inner_content(|xml| {
            empty(xml, "source", &[("path", &parts.console.to_string_lossy())])?;
            empty(xml, "target", &[("port", "0")])
        })?;
    xml.create_element("rng")
        .with_attribute(("model", "virtio"))
        .write_inner_content(|xml| {
            xml.create_element("backend")
                .with_attribute(("model", "random"))
                .write_text_content(quick_xml::events::BytesText::new("/dev/urandom"))
                .map(drop)
        })?;
    if guest.machine.tpm {
        xml.create_element("tpm")
            .with_attribute(("model", "tpm-crb"))
            .write_inner_content(|xml| {
                empty(xml, "backend", &[("type", "emulator"), ("version", "2.0")])
            })?;
    }
    // A balloon would let the host take memory from a guest that is being measured.
    empty(xml, "memballoon", &[("model", "none")])
}

/// The `index`-th virtio disk.
fn disk(
    xml: &mut Xml,
    part: DiskPart<'_>,
    index: usize,
    io_thread: Option<u32>,
) -> std::io::Result<()> {
    let (kind, source, format) = match &part.disk.source {
        DiskSource::Made { format, .. } | DiskSource::File { format, .. } => {
            ("file", "file", *format)
        }
        DiskSource::Volume { .. } => ("block", "dev", DiskFormat::Raw),
    };
    let io_thread = io_thread.map(|thread| thread.to_string());
    let mut driver = vec![("name", "qemu"), ("type", format.as_str())];
    driver.extend(part.disk.cache.map(|cache| ("cache", cache.as_str())));
    driver.extend(io_thread.as_deref().map(|thread| ("iothread", thread)));
    if matches!(part.disk.source, DiskSource::Made { .. }) {
        // What the guest gives back takes no room on the host.
        driver.push(("discard", "unmap"));
    }
    xml.create_element("disk")
        .with_attributes([("type", kind), ("device", "disk")])
        .write_inner_content(|xml| {
            empty(xml, "driver", &driver)?;
            empty(xml, "source", &[(source, &part.path.to_string_lossy())])?;
            target(xml, index)?;
            io_tune(xml, part.disk)?;
            text(xml, "serial", part.disk.name.as_str())
        })
        .map(drop)
}

/// The seed, read-only.
fn seed_disk(xml: &mut Xml, path: &Path, index: usize) -> std::io::Result<()> {
    xml.create_element("disk")
        .with_attributes([("type", "file"), ("device", "disk")])
        .write_inner_content(|xml| {
            empty(xml, "driver", &[("name", "qemu"), ("type", "raw")])?;
            empty(xml, "source", &[("file", &path.to_string_lossy())])?;
            target(xml, index)?;
            empty(xml, "readonly", &[])?;
            text(xml, "serial", Disk::SEED_SERIAL)
        })
        .map(drop)
}

fn target(xml: &mut Xml, index: usize) -> std::io::Result<()> {
    let device = device_name(index);
    empty(xml, "target", &[("dev", &device), ("bus", "virtio")])
}

fn io_tune(xml: &mut Xml, disk: &Disk) -> std::io::Result<()> {
    let io = &disk.io;
    let limits = [
        ("read_bytes_sec", io.read_bandwidth.map(|bytes| bytes.0)),
        ("write_bytes_sec", io.write_bandwidth.map(|bytes| bytes.0)),
        ("read_iops_sec", io.read_iops),
        ("write_iops_sec", io.write_iops),
    ];
    if limits.iter().all(|(_, limit)| limit.is_none()) {
        return Ok(());
    }
    xml.create_element("iotune")
        .write_inner_content(|xml| {
            for (name, limit) in limits {
                limit.map_or(Ok(()), |limit| text(xml, name, limit.to_string()))?;
            }
            Ok(())
        })
        .map(drop)
}

/// `vda` … `vdz`, `vdaa` …
fn device_name(index: usize) -> String {
    let mut letters = Vec::new();
    let mut rest = index + 1;
    while rest > 0 {
        letters.push(char::from(b'a' + ((rest - 1) % 26) as u8));
        rest = (rest - 1) / 26;
    }
    letters.push('d');
    letters.push('v');
    letters.iter().rev().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn devices_are_lettered_as_linux_does() {
        assert_eq!(device_name(0), "vda");
        assert_eq!(device_name(25), "vdz");
        assert_eq!(device_name(26), "vdaa");
        assert_eq!(device_name(701), "vdzz");
    }
}
