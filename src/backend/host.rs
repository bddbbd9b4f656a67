//! Measures the host a lab runs on.

use nix::sys::utsname::uname;

use super::host_shape::usable_cpus;
use super::platform::machine_types;
use crate::backend::tool::Tool;
use crate::model::{Acceleration, Bytes, HostFacts};
use crate::ports::PortError;

/// What stands for a version that nobody tells.
const UNKNOWN: &str = "unknown";

/// Measures this host. `libvirt` is the version that the lab's libvirtd tells, when there is one.
///
/// # Errors
/// When `/proc` or the scheduler does not say what every Linux does.
pub fn facts(acceleration: Acceleration, libvirt: Option<&str>) -> Result<HostFacts, PortError> {
    let system = uname().map_err(|e| PortError::fatal("ask for the kernel's version", e))?;
    let memory = fs_err::read_to_string("/proc/meminfo")?;
    Ok(HostFacts {
        acceleration,
        cpu_model: cpu_model(&fs_err::read_to_string("/proc/cpuinfo")?)
            .unwrap_or(UNKNOWN)
            .to_owned(),
        threads: u32::try_from(usable_cpus()?.len()).unwrap_or(u32::MAX),
        memory: memory_field(&memory, "MemTotal")?,
        memory_free: memory_field(&memory, "MemAvailable")?,
        kernel: system.release().to_string_lossy().into_owned(),
        libvirt: libvirt.unwrap_or(UNKNOWN).to_owned(),
        machines: machine_types(),
        qemu: qemu_version().unwrap_or_else(|| UNKNOWN.to_owned()),
    })
}

/// QEMU's version as in `7.2.22`; none when it is not installed.
pub fn qemu_version() -> Option<String> {
    let printed = Tool::new("qemu-system-x86_64")
        .arg("--version")
        .run()
        .ok()?;
    version_in(&String::from_utf8_lossy(&printed)).map(str::to_owned)
}

/// Model name of the first CPU.
fn cpu_model(cpuinfo: &str) -> Option<&str> {
    let line = cpuinfo.lines().find(|l| l.starts_with("model name"))?;
    line.split_once(':').map(|(_, name)| name.trim())
}

/// A field of `/proc/meminfo`, which counts in KiB and calls them kB.
pub fn memory_field(meminfo: &str, name: &str) -> Result<Bytes, PortError> {
    let number = meminfo.lines().find_map(|line| {
        line.strip_prefix(name)?
            .strip_prefix(':')?
            .trim()
            .strip_suffix(" kB")
    });
    let missing = || {
        PortError::new(
            crate::ports::ErrorKind::Fatal,
            format!("find {name} in /proc/meminfo"),
        )
    };
    number
        .and_then(|n| n.parse::<u64>().ok())
        .map(|kib| Bytes(kib << 10))
        .ok_or_else(missing)
}

/// The number in `QEMU emulator version 7.2.22 (Debian …)`.
fn version_in(printed: &str) -> Option<&str> {
    printed
        .lines()
        .next()?
        .split_once(" version ")?
        .1
        .split([' ', '('])
        .next()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_what_linux_and_qemu_print() {
        assert_eq!(
            cpu_model("processor\t: 0\nmodel name\t: Some CPU @ 2 GHz\nmodel name\t: B\n"),
            Some("Some CPU @ 2 GHz")
        );
        assert_eq!(
            version_in("QEMU emulator version 7.2.22 (Debian 1:7.2)\nCopyright\n"),
            Some("7.2.22")
        );
        let meminfo = "MemTotal:       2048 kB\nMemFree: 1 kB\nMemAvailable:   1024 kB\n";
        assert_eq!(memory_field(meminfo, "MemTotal").unwrap(), Bytes::mib(2));
        assert_eq!(
            memory_field(meminfo, "MemAvailable").unwrap(),
            Bytes::mib(1)
        );
        assert!(memory_field(meminfo, "Mem").is_err());
    }

    #[test]
    fn this_host_can_be_measured() {
        let facts = facts(Acceleration::Emulation, None).unwrap();
        assert!(
            facts.threads >= 1 && facts.memory >= facts.memory_free && facts.memory_free > Bytes(0)
        );
        assert_eq!(facts.libvirt, "unknown");
    }
}
