//! What QEMU and libvirt of this machine have for making guests.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use fs_err as fs;
use nix::unistd::{AccessFlags, access};
use serde::Deserialize;

use crate::backend::tool::{self, Tool};
use crate::model::{Acceleration, Bytes, Platform, UefiImage};

/// Descriptors of firmware, as QEMU's docs/interop/firmware.json lays down: a file of an earlier
/// directory hides one of the same name.
const FIRMWARE: [&str; 2] = ["/etc/qemu/firmware", "/usr/share/qemu/firmware"];

/// What emulates TPMs, and what makes their first state.
const SWTPM_PROGRAMS: [&str; 2] = ["swtpm", "swtpm_setup"];

/// Where those keep logs and keys; a lab's own directories are mounted over them.
const SWTPM_DIRECTORIES: [&str; 2] = ["/var/log/swtpm", "/var/lib/swtpm-localca"];

/// libvirt's processor models, one file each.
const CPU_MAP: &str = "/usr/share/libvirt/cpu_map";

/// Looks at this machine. `cgroups` tells whether the lab's libvirtd has them.
pub fn platform(acceleration: Acceleration, cgroups: bool) -> Platform {
    let mounts = fs::read_to_string("/proc/self/mounts").unwrap_or_default();
    let meminfo = fs::read_to_string("/proc/meminfo").unwrap_or_default();
    Platform {
        acceleration,
        machines: machine_types(),
        cpu_models: cpu_models(Path::new(CPU_MAP)),
        uefi: uefi_images(&FIRMWARE.map(Path::new)),
        tpm: SWTPM_PROGRAMS
            .iter()
            .all(|program| tool::find(program).is_some())
            && SWTPM_DIRECTORIES
                .iter()
                .all(|place| Path::new(place).exists()),
        cgroups,
        hugepages: hugetlbfs(&mounts, &meminfo)
            .into_iter()
            .filter(|(_, place)| access(place, AccessFlags::W_OK).is_ok())
            .map(|(size, _)| size)
            .collect(),
    }
}

/// The versioned types of machines that QEMU has, by all their names; none when it is not there.
pub fn machine_types() -> BTreeMap<String, String> {
    let help = Tool::new("qemu-system-x86_64").args(["-machine", "help"]);
    types_in(&String::from_utf8_lossy(&help.run().unwrap_or_default()))
}

/// The same from what `-machine help` prints.
fn types_in(help: &str) -> BTreeMap<String, String> {
    let mut types = BTreeMap::new();
    for line in help.lines().skip(1) {
        let Some(name) = line.split_whitespace().next() else {
            continue;
        };
        let alias = line
            .split_once("(alias of ")
            .and_then(|(_, rest)| rest.split(')').next());
        types.insert(name.to_owned(), alias.unwrap_or(name).to_owned());
    }
    types
}

fn cpu_models(directory: &Path) -> BTreeSet<String> {
    let Ok(entries) = fs::read_dir(directory) else {
        return BTreeSet::new();
    };
    entries
        .flatten()
        .filter_map(|entry| {
            let name = entry.file_name().into_string().ok()?;
            let model = name.strip_prefix("x86_")?.strip_suffix(".xml")?;
            (!matches!(model, "features" | "vendors")).then(|| model.to_owned())
        })
        .collect()
}

/// A firmware descriptor; what else is in it does not matter here.
#[derive(Deserialize)]
#[serde(rename_all = "kebab-case")]
struct Descriptor {
    interface_types: Vec<String>,
    mapping: Mapping,
    targets: Vec<Target>,
    features: Vec<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "kebab-case")]
struct Mapping {
    device: String,
    executable: Option<FlashFile>,
    nvram_template: Option<FlashFile>,
}

#[derive(Deserialize)]
struct FlashFile {
    filename: PathBuf,
    format: String,
}

#[derive(Deserialize)]
struct Target {
    architecture: String,
    machines: Vec<String>,
}

/// UEFI images for x86 in the order of their descriptors' names. Those that insist on signed
/// systems are left out: labrig's kernels are not signed for them.
fn uefi_images(directories: &[&Path]) -> Vec<UefiImage> {
    let mut descriptors = BTreeMap::new();
    for directory in directories {
        for entry in fs::read_dir(directory).into_iter().flatten().flatten() {
            let path = entry.path();
            if path
                .extension()
                .is_some_and(|extension| extension == "json")
            {
                descriptors.entry(entry.file_name()).or_insert(path);
            }
        }
    }
    let read = |path: PathBuf| uefi_image(&fs::read(path).ok()?);
    descriptors
        .into_values()
        .filter_map(read)
        .filter(|image| image.code.exists() && image.variables.exists())
        .collect()
}

fn uefi_image(descriptor: &[u8]) -> Option<UefiImage> {
    const SECURE: [&str; 3] = ["secure-boot", "enrolled-keys", "requires-smm"];
    let descriptor: Descriptor = serde_json::from_slice(descriptor).ok()?;
    let is_uefi = descriptor.interface_types.iter().any(|kind| kind == "uefi");
    let is_secure = descriptor
        .features
        .iter()
        .any(|feature| SECURE.contains(&feature.as_str()));
    if !is_uefi || is_secure || descriptor.mapping.device != "flash" {
        return None;
    }
    let code = descriptor.mapping.executable?;
    let variables = descriptor.mapping.nvram_template?;
    if code.format != "raw" || variables.format != "raw" {
        return None;
    }
    let targets = descriptor.targets.into_iter();
    let machines: Vec<_> = targets
        .filter(|target| target.architecture == "x86_64")
        .flat_map(|target| target.machines)
        .collect();
    (!machines.is_empty()).then_some(UefiImage {
        code: code.filename,
        variables: variables.filename,
        machines,
    })
}

/// Mounted file systems of huge pages, with the size of their pages.
fn hugetlbfs(mounts: &str, meminfo: &str) -> Vec<(Bytes, PathBuf)> {
    let default = meminfo.lines().find_map(|line| {
        let kib = line
            .strip_prefix("Hugepagesize:")?
            .trim()
            .strip_suffix(" kB")?;
        Some(Bytes(kib.parse::<u64>().ok()? << 10))
    });
    mounts
        .lines()
        .filter_map(|line| {
            let fields: Vec<_> = line.split(' ').collect();
            let [_, place, "hugetlbfs", options, ..] = fields[..] else {
                return None;
            };
            let size = options.split(',').find_map(|o| o.strip_prefix("pagesize="));
            let size = size.map_or(default, page_size)?;
            Some((size, PathBuf::from(place)))
        })
        .collect()
}

/// `2M` or `1024M` or `1G`, as the kernel prints it.
fn page_size(text: &str) -> Option<Bytes> {
    let (number, shift) = match text.strip_suffix('G') {
        Some(number) => (number, 30),
        None => match text.strip_suffix('M') {
            Some(number) => (number, 20),
            None => (text.strip_suffix('K')?, 10),
        },
    };
    Some(Bytes(number.parse::<u64>().ok()? << shift))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn machine_types_know_their_versions() {
        let types = types_in(
            "Supported machines are:\nmicrovm              microvm (i386)\n\
             q35                  Standard PC (Q35 + ICH9, 2009) (alias of pc-q35-7.2)\n\
             pc-q35-7.2           Standard PC (Q35 + ICH9, 2009)\n",
        );
        assert_eq!(types["q35"], "pc-q35-7.2");
        assert_eq!(types["pc-q35-7.2"], "pc-q35-7.2");
        assert_eq!(types.len(), 3);
    }

    fn descriptor(features: &str, device: &str, code: &str) -> String {
        format!(
            r#"{{"description": "d", "interface-types": ["uefi"], "mapping": {{"device": "{device}",
            "executable": {{"filename": "{code}", "format": "raw"}},
            "nvram-template": {{"filename": "{code}", "format": "raw"}}}},
            "targets": [{{"architecture": "i386", "machines": ["pc-i440fx-*"]}},
            {{"architecture": "x86_64", "machines": ["pc-q35-*"]}}], "features": [{features}], "tags": []}}"#
        )
    }

    #[test]
    fn firmware_for_unsigned_systems_is_found() {
        let place = tempfile::tempdir().unwrap();
        let directories = ["etc", "usr"].map(|name| place.path().join(name));
        let write = |directory: usize, name: &str, content: &str| {
            fs::create_dir_all(&directories[directory]).unwrap();
            fs::write(directories[directory].join(name), content).unwrap();
        };
        let there = place.path().join("CODE.fd");
        fs::write(&there, "").unwrap();
        let there = there.to_str().unwrap();
        write(
            1,
            "40-secure.json",
            &descriptor("\"secure-boot\"", "flash", there),
        );
        write(1, "50-memory.json", &descriptor("", "memory", there));
        write(
            1,
            "55-absent.json",
            &descriptor("", "flash", "/nowhere/CODE.fd"),
        );
        write(
            1,
            "60-good.json",
            &descriptor("\"acpi-s3\"", "flash", there),
        );
        write(1, "70-damaged.json", "{");
        write(1, "readme", "no descriptor");
        let found =
            |directories: &[PathBuf; 2]| uefi_images(&directories.each_ref().map(PathBuf::as_path));
        let images = found(&directories);
        assert_eq!(images.len(), 1);
        assert_eq!(images[0].machines, ["pc-q35-*"]);
        // An administrator's file of the same name hides it.
        write(0, "60-good.json", "{}");
        assert_eq!(found(&directories), []);
    }

    #[test]
    fn mounts_of_huge_pages() {
        let mounts = "proc /proc proc rw 0 0\nhugetlbfs /dev/hugepages hugetlbfs rw,relatime,pagesize=2M 0 0\n\
                      none /mnt/huge hugetlbfs rw,pagesize=1024M 0 0\nnone /mnt/old hugetlbfs rw 0 0\n";
        let meminfo = "MemTotal: 1 kB\nHugepagesize:       2048 kB\n";
        let found: Vec<_> = hugetlbfs(mounts, meminfo)
            .into_iter()
            .map(|(size, place)| format!("{size} {}", place.display()))
            .collect();
        assert_eq!(
            found,
            ["2MiB /dev/hugepages", "1GiB /mnt/huge", "2MiB /mnt/old"]
        );
    }

    #[test]
    fn this_machine_has_a_default_type() {
        let platform = platform(Acceleration::Emulation, false);
        assert!(platform.machine("q35").starts_with("pc-q35-"));
        assert!(platform.cpu_models.contains("qemu64"));
    }
}
