//! Where a lab's files are: pure path arithmetic.

use std::path::{Path, PathBuf};

use super::{Digest, DiskFormat, Medium, Name};

/// Where the host's memory holds files.
pub const RAM: &str = "/dev/shm";

/// The directory of one lab and the places in it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LabPaths {
    root: PathBuf,
}

impl LabPaths {
    /// The lab whose directory is `root` (absolute).
    pub fn new(root: PathBuf) -> Self {
        Self { root }
    }

    /// The directory itself.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// Disks of all domains.
    pub fn disks(&self) -> PathBuf {
        self.root.join("disks")
    }

    /// Disks of all domains that lie in the host's memory: on the tmpfs that every Linux has. The
    /// name tells labs of one name in several state directories apart.
    pub fn ram(&self) -> PathBuf {
        let name = self.root.file_name().unwrap_or_default().to_string_lossy();
        let place = Digest::of(self.root.as_os_str().as_encoded_bytes());
        Path::new(RAM).join(format!("labrig-{name}-{}", place.short(12)))
    }

    /// One domain's disk on a medium. `generation` is the digest of what it was made from, so that a
    /// disk made from something else is another file.
    pub fn disk(
        &self,
        medium: Medium,
        domain: &Name,
        disk: &Name,
        format: DiskFormat,
        generation: Digest,
    ) -> PathBuf {
        let directory = match medium {
            Medium::Disk => self.disks(),
            Medium::Ram => self.ram(),
        };
        let format = format.as_str();
        directory.join(format!("{domain}-{disk}-{}.{format}", generation.short(8)))
    }

    /// One domain's seed disk with the given content; `form` ends its name.
    pub fn seed(&self, domain: &Name, content: Digest, form: &str) -> PathBuf {
        self.disks()
            .join(format!("{domain}-seed-{}.{form}", content.short(8)))
    }

    /// The UEFI variables of one domain.
    pub fn nvram(&self, domain: &Name) -> PathBuf {
        self.root.join("nvram").join(format!("{domain}.fd"))
    }

    /// What one domain prints on its serial console.
    pub fn console(&self, domain: &Name) -> PathBuf {
        self.root.join("console").join(format!("{domain}.log"))
    }

    /// Links to the images it uses.
    pub fn images(&self) -> PathBuf {
        self.root.join("images")
    }

    /// Link to the directory of the image with this key in the store.
    pub fn image(&self, key: Digest) -> PathBuf {
        self.images().join(key.short(16))
    }

    /// There while a domain runs that labrig started; its time of change is that of the start.
    pub fn started(&self, libvirt_name: &str) -> PathBuf {
        self.root.join("started").join(libvirt_name)
    }

    /// There while a started domain is known to be ready.
    pub fn ready(&self, libvirt_name: &str) -> PathBuf {
        self.root.join("ready").join(libvirt_name)
    }

    /// What labrig did to the lab, one JSON object a line.
    pub fn journal(&self) -> PathBuf {
        self.root.join("journal.ndjson")
    }

    /// The lab's secret, from which all its keys derive.
    pub fn secret(&self) -> PathBuf {
        self.root.join("secret")
    }

    /// The lab's record: its host and its resolved topology.
    pub fn record(&self) -> PathBuf {
        self.root.join("lab.json")
    }

    /// The embedded host.
    pub fn host(&self) -> PathBuf {
        self.root.join("host")
    }

    /// Files for the `ssh` program: key, known hosts, configuration.
    pub fn ssh(&self) -> PathBuf {
        self.root.join("ssh")
    }
}
