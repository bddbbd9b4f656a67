//! Finds out whether KVM really works here, by booting a kernel with it.
//!
//! On some machines `/dev/kvm` opens, answers every question and makes virtual machines, and yet no
//! kernel gets past its first steps in one.

use std::io::Write;
use std::path::Path;
use std::time::Duration;

use nix::sys::utsname::uname;
use serde::{Deserialize, Serialize};

use crate::backend::host::qemu_version;
use crate::backend::tool::{Tool, ToolError};
use crate::model::{Acceleration, Digest, Digester};

/// A kernel that boots at all is through with it in a tenth of this.
const LIMIT: Duration = Duration::from_secs(15);
/// What the console says when the kernel has done all of its own work.
const MARKERS: [&str; 2] = ["as init process", "Unable to mount root fs"];
/// Verdicts kept; the oldest go first.
const KEPT: usize = 32;

/// How guests execute here, and why.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Verdict {
    /// How.
    pub acceleration: Acceleration,
    /// Why, as a sentence's beginning: `a kernel boots with KVM`.
    pub reason: String,
}

/// A verdict with what it holds for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Remembered {
    /// Kernel and KVM of the host, and QEMU.
    host: Digest,
    /// The kernel that was booted.
    kernel: Digest,
    verdict: Verdict,
}

/// How guests with this kernel execute here. Boots it the first time, for 15 s at most; later the
/// verdict in the file `cache` serves, as long as the host's kernel, KVM and QEMU are the same.
pub fn acceleration(cache: &Path, kernel: &Path, initrd: Option<&Path>) -> Verdict {
    Probe::of_host().acceleration(cache, kernel, initrd)
}

/// As [`acceleration`], but boots in any case, and remembers anew.
pub fn measure(cache: &Path, kernel: &Path, initrd: Option<&Path>) -> Verdict {
    Probe::of_host().measure(cache, kernel, initrd)
}

/// The newest verdict about this host, whichever kernel it was found with; one that needs no boot
/// is found at once.
pub fn remembered(cache: &Path) -> Option<Verdict> {
    let probe = Probe::of_host();
    if let Some(verdict) = probe.without_boot() {
        return Some(verdict);
    }
    let host = probe.host?;
    read(cache)
        .into_iter()
        .rfind(|known| known.host == host)
        .map(|known| known.verdict)
}

/// What is probed, so that tests can probe something else.
struct Probe {
    device: String,
    qemu: String,
    /// None when QEMU is missing.
    host: Option<Digest>,
}

impl Probe {
    fn of_host() -> Self {
        Self {
            device: "/dev/kvm".to_owned(),
            qemu: "qemu-system-x86_64".to_owned(),
            host: host_digest(),
        }
    }

    fn acceleration(&self, cache: &Path, kernel: &Path, initrd: Option<&Path>) -> Verdict {
        if let Some(verdict) = self.without_boot() {
            return verdict;
        }
        let known = digest_of(kernel).and_then(|kernel| {
            read(cache)
                .into_iter()
                .rfind(|known| Some(known.host) == self.host && known.kernel == kernel)
        });
        known.map_or_else(
            || self.measure(cache, kernel, initrd),
            |known| known.verdict,
        )
    }

    fn measure(&self, cache: &Path, kernel: &Path, initrd: Option<&Path>) -> Verdict {
        if let Some(verdict) = self.without_boot() {
            return verdict;
        }
        let verdict = self.boot(kernel, initrd);
        if let (Some(host), Some(kernel)) = (self.host, digest_of(kernel)) {
            remember(
                cache,
                Remembered {
                    host,
                    kernel,
                    verdict: verdict.clone(),
                },
            );
        }
        verdict
    }

    fn without_boot(&self) -> Option<Verdict> {
        if let Err(error) = std::fs::File::options()
            .read(true)
            .write(true)
            .open(&self.device)
        {
            return Some(emulation(format!("{} does not open: {error}", self.device)));
        }
        self.host
            .is_none()
            .then(|| emulation("qemu-system-x86_64 is not installed".to_owned()))
    }

    /// The guest ends by itself: busybox powers off where the initial RAM disk has it, else the
    /// kernel finds no root disk and gives up.
    fn boot(&self, kernel: &Path, initrd: Option<&Path>) -> Verdict {
        let mut tool = Tool::new(&self.qemu)
            .args([
                "-accel",
                "kvm",
                "-cpu",
                "host",
                "-machine",
                "q35",
                "-m",
                "256",
                "-nodefaults",
                "-no-user-config",
            ])
            .args([
                "-display",
                "none",
                "-serial",
                "stdio",
                "-monitor",
                "none",
                "-no-reboot",
            ])
            .args([
                "-append",
                "console=ttyS0 panic=-1 rdinit=/bin/busybox -- poweroff -f",
            ])
            .arg("-kernel")
            .arg(kernel)
            .limit(LIMIT);
        if let Some(initrd) = initrd {
            tool = tool.arg("-initrd").arg(initrd);
        }
        match tool.run() {
            Ok(console) if boots(&String::from_utf8_lossy(&console)) => Verdict {
                acceleration: Acceleration::Kvm,
                reason: "a kernel boots with KVM".to_owned(),
            },
            Ok(_) => emulation("a kernel under KVM ended before it was up".to_owned()),
            Err(ToolError::Deadline { .. }) => emulation(format!(
                "{} opens, but a kernel under KVM is not up after {} s",
                self.device,
                LIMIT.as_secs()
            )),
            Err(ToolError::Failed { how, stderr, .. }) => {
                let last = stderr
                    .last()
                    .map_or_else(String::new, |line| format!(": {line}"));
                emulation(format!("QEMU {how} with KVM{last}"))
            }
            Err(error) => emulation(format!("QEMU does not run with KVM: {error}")),
        }
    }
}

fn boots(console: &str) -> bool {
    MARKERS.iter().any(|marker| console.contains(marker))
}

fn emulation(reason: String) -> Verdict {
    Verdict {
        acceleration: Acceleration::Emulation,
        reason,
    }
}

fn digest_of(kernel: &Path) -> Option<Digest> {
    Digest::of_reader(std::fs::File::open(kernel).ok()?).ok()
}

/// What a verdict holds for, apart from the kernel that is booted.
fn host_digest() -> Option<Digest> {
    let qemu = qemu_version()?;
    let mut digester = Digester::default().field(&qemu);
    if let Ok(system) = uname() {
        digester = digester
            .field(system.release().as_encoded_bytes())
            .field(system.version().as_encoded_bytes());
    }
    for module in ["kvm", "kvm_intel", "kvm_amd"] {
        for file in ["version", "srcversion"] {
            digester = digester
                .field(std::fs::read(format!("/sys/module/{module}/{file}")).unwrap_or_default());
        }
    }
    Some(digester.finish())
}

/// A file that cannot be read holds no verdict: the worst that follows is another boot.
fn read(cache: &Path) -> Vec<Remembered> {
    std::fs::read(cache)
        .ok()
        .and_then(|bytes| serde_json::from_slice(&bytes).ok())
        .unwrap_or_default()
}

/// A verdict that cannot be kept is found again next time.
fn remember(cache: &Path, verdict: Remembered) {
    let mut all = read(cache);
    all.retain(|known| (known.host, known.kernel) != (verdict.host, verdict.kernel));
    all.push(verdict);
    let kept = &all[all.len().saturating_sub(KEPT)..];
    let write = || -> std::io::Result<()> {
        let directory = cache.parent().unwrap_or(Path::new("."));
        fs_err::create_dir_all(directory)?;
        let mut file = tempfile::NamedTempFile::new_in(directory)?;
        file.write_all(&serde_json::to_vec_pretty(kept)?)?;
        file.persist(cache)?;
        Ok(())
    };
    if let Err(error) = write() {
        tracing::debug!(%error, cache = %cache.display(), "the KVM verdict is not remembered");
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;
    use std::path::PathBuf;

    use super::*;

    /// A host whose QEMU is a script, which counts its runs in the file `runs`.
    struct Host {
        directory: tempfile::TempDir,
        probe: Probe,
    }

    impl Host {
        fn with(script: &str) -> Self {
            let directory = tempfile::tempdir().unwrap();
            let qemu = directory.path().join("qemu");
            let runs = directory.path().join("runs");
            std::fs::write(
                &qemu,
                format!("#!/bin/sh\necho x >>{}\n{script}\n", runs.display()),
            )
            .unwrap();
            std::fs::set_permissions(&qemu, std::fs::Permissions::from_mode(0o755)).unwrap();
            std::fs::write(directory.path().join("kernel"), "kernel").unwrap();
            let probe = Probe {
                device: "/dev/null".to_owned(),
                qemu: qemu.to_str().unwrap().to_owned(),
                host: Some(Digest::of("host")),
            };
            Self { directory, probe }
        }

        fn path(&self, name: &str) -> PathBuf {
            self.directory.path().join(name)
        }

        fn ask(&self) -> Verdict {
            self.probe
                .acceleration(&self.path("cache/kvm.json"), &self.path("kernel"), None)
        }

        fn runs(&self) -> usize {
            std::fs::read_to_string(self.path("runs")).map_or(0, |text| text.lines().count())
        }
    }

    #[test]
    fn a_kernel_that_boots_is_kvm_and_is_booted_once() {
        let host = Host::with("echo 'Run /bin/busybox as init process'");
        assert_eq!(host.ask().acceleration, Acceleration::Kvm);
        assert_eq!(host.ask().acceleration, Acceleration::Kvm);
        assert_eq!(host.runs(), 1);
    }

    #[test]
    fn another_kernel_or_host_is_probed_again() {
        let mut host = Host::with("echo 'Run /init as init process'");
        host.ask();
        std::fs::write(host.path("kernel"), "another").unwrap();
        host.ask();
        host.probe.host = Some(Digest::of("after an upgrade"));
        host.ask();
        assert_eq!(host.runs(), 3);
    }

    #[test]
    fn a_failing_qemu_is_emulation_with_its_own_words() {
        let verdict = Host::with("echo 'failed to set MSR 0x4b564d02' >&2; exit 1").ask();
        assert_eq!(verdict.acceleration, Acceleration::Emulation);
        assert!(
            verdict.reason.contains("failed to set MSR"),
            "{}",
            verdict.reason
        );
    }

    #[test]
    fn an_early_end_is_emulation() {
        assert_eq!(
            Host::with("echo 'Booting the kernel.'").ask().acceleration,
            Acceleration::Emulation
        );
    }

    #[test]
    fn without_the_device_nothing_is_booted() {
        let mut host = Host::with("echo 'Run /init as init process'");
        host.probe.device = "/nonexistent/kvm".to_owned();
        assert_eq!(host.ask().acceleration, Acceleration::Emulation);
        assert_eq!(host.runs(), 0);
    }

    #[test]
    fn a_damaged_memory_costs_a_boot_only() {
        let host = Host::with("echo 'Run /init as init process'");
        std::fs::create_dir(host.path("cache")).unwrap();
        std::fs::write(host.path("cache/kvm.json"), "{torn").unwrap();
        assert_eq!(host.ask().acceleration, Acceleration::Kvm);
        host.ask();
        assert_eq!(host.runs(), 1);
    }
}
