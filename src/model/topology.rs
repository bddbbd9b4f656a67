//! A lab with everything decided: defaults filled, counts expanded, names bound, addresses fixed.

use std::collections::BTreeMap;
use std::net::Ipv4Addr;
use std::path::PathBuf;

use ipnet::Ipv4Net;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::{Bytes, CpuSet, Digest, Digester, Domain, HostShape, MacAddr, Name};

/// What a lab is. Serialised, it is what locks and archives hold.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Topology {
    /// Which lab this is.
    pub lab: Lab,
    /// The host it is planned for.
    #[serde(default, skip_serializing_if = "LabHost::is_default")]
    pub host: LabHost,
    /// Variables that templates see; secrets are not among them.
    pub vars: serde_json::Map<String, serde_json::Value>,
    /// Environment variables that secret variables come from, by the variable's name.
    pub secrets: BTreeMap<String, String>,
    /// Images by name; only those that a domain uses.
    pub images: BTreeMap<Name, Image>,
    /// Virtual switches by name.
    pub vswitches: BTreeMap<Name, Vswitch>,
    /// Domains, in the file's order with counts expanded.
    pub domains: Vec<Domain>,
}

/// A lab's identity: all object names and addresses derive from it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Lab {
    /// The lab's name.
    pub name: Name,
}

/// The host a lab is planned for.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LabHost {
    /// The host as the topology describes it; none: whatever host it is brought up on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub described: Option<HostShape>,
    /// Hardware threads that are kept for the host itself.
    #[serde(default, skip_serializing_if = "CpuSet::is_empty")]
    pub reserve: CpuSet,
}

impl LabHost {
    fn is_default(&self) -> bool {
        *self == Self::default()
    }
}

/// A read-only disk, a kernel, or both.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Image {
    /// Where it comes from.
    pub source: ImageSource,
    /// What the store finds it by: the digest of the recipe, or of the files' content.
    pub key: Digest,
}

/// Where an image comes from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ImageSource {
    /// Built by labrig from distribution packages.
    Build(ImageRecipe),
    /// Files that exist already. At least one of `disk` and `kernel` is there.
    Path {
        /// qcow2 or raw disk.
        disk: Option<PathBuf>,
        /// Kernel for direct boot; without it the firmware boots the disk.
        kernel: Option<PathBuf>,
        /// Initial RAM disk that goes with the kernel.
        initrd: Option<PathBuf>,
    },
}

/// Which files an image has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ImageParts {
    /// Whether there is a disk.
    pub disk: bool,
    /// Whether there is a kernel for direct boot.
    pub kernel: bool,
    /// Whether there is an initial RAM disk.
    pub initrd: bool,
}

/// How to build an image.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ImageRecipe {
    /// A Debian root filesystem with systemd and OpenSSH, on an ext4 disk.
    Debian {
        /// Release, as in `bookworm`.
        suite: String,
        /// Packages beside the base set; sorted, without repeats.
        packages: Vec<String>,
        /// Virtual size of the disk.
        size: Bytes,
    },
    /// A kernel and an initial RAM disk of busybox and dropbear; no disk, boots in seconds.
    Micro {
        /// Release the packages come from.
        suite: String,
    },
}

/// What a vswitch reaches.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum VswitchMode {
    /// Its own domains and the lab host only.
    Isolated,
    /// Also what the lab host reaches, through address translation.
    Nat,
}

/// A virtual switch.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Vswitch {
    /// What it reaches.
    pub mode: VswitchMode,
    /// Its subnet.
    pub subnet: Ipv4Net,
    /// The lab host's address on it; first host address of the subnet.
    pub gateway: Ipv4Addr,
    /// Largest frame payload in bytes.
    pub mtu: u32,
    /// Name of the bridge device (at most 15 characters, IFNAMSIZ).
    pub bridge: String,
    /// Name of the libvirt network.
    pub network: String,
    /// UUID of the libvirt network.
    pub uuid: Uuid,
}

/// A disk that belongs to one domain.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Disk {
    /// Name, part of the file name; `root` for the overlay on the image.
    pub name: Name,
    /// Virtual size; none: as large as the image.
    pub size: Option<Bytes>,
}

/// A domain's port on a vswitch.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Vnet {
    /// Key into [`Topology::vswitches`].
    pub vswitch: Name,
    /// Its MAC address.
    pub mac: MacAddr,
    /// Its address, reserved in the network's DHCP.
    pub ip: Ipv4Addr,
}

/// A file in the guest, from a template.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct GuestFile {
    /// Template, relative to the template directory.
    pub template: String,
    /// Absolute path in the guest.
    pub to: String,
    /// Permission bits.
    pub mode: u32,
    /// Values the template sees as `vars`.
    pub vars: serde_json::Map<String, serde_json::Value>,
}

impl Topology {
    /// Finds a domain by name.
    pub fn domain(&self, name: &str) -> Option<&Domain> {
        self.domains.iter().find(|d| d.name.as_str() == name)
    }
}

impl Image {
    /// The key of an image made of files: from the digests of those that there are.
    pub fn path_key(
        disk: Option<Digest>,
        kernel: Option<Digest>,
        initrd: Option<Digest>,
    ) -> Digest {
        [disk, kernel, initrd]
            .iter()
            .fold(Digester::default(), |digester, part| match part {
                Some(digest) => digester.field(digest.bytes()),
                None => digester.field(""),
            })
            .finish()
    }
}

impl ImageSource {
    /// The files that an image from here has, known before it is made.
    pub const fn holds(&self) -> ImageParts {
        match self {
            Self::Build(recipe) => ImageParts {
                disk: match recipe {
                    ImageRecipe::Debian { .. } => true,
                    ImageRecipe::Micro { .. } => false,
                },
                kernel: true,
                initrd: true,
            },
            Self::Path {
                disk,
                kernel,
                initrd,
            } => ImageParts {
                disk: disk.is_some(),
                kernel: kernel.is_some(),
                initrd: initrd.is_some(),
            },
        }
    }
}

impl ImageRecipe {
    /// The key of an image built from this recipe. The store adds which builder built it.
    pub fn key(&self) -> Digest {
        match self {
            Self::Debian {
                suite,
                packages,
                size,
            } => packages
                .iter()
                .fold(
                    Digester::default()
                        .field("debian")
                        .field(suite)
                        .field(size.0.to_be_bytes()),
                    Digester::field,
                )
                .finish(),
            Self::Micro { suite } => Digester::default().field("micro").field(suite).finish(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_tell_recipes_apart() {
        let debian = |suite: &str, packages: &[&str], size| ImageRecipe::Debian {
            suite: suite.to_owned(),
            packages: packages.iter().map(|p| (*p).to_owned()).collect(),
            size: Bytes::mib(size),
        };
        let recipes = [
            debian("bookworm", &["a", "b"], 1),
            debian("bookworm", &["ab"], 1),
            debian("bookworm", &["a", "b"], 2),
            debian("trixie", &["a", "b"], 1),
            ImageRecipe::Micro {
                suite: "bookworm".to_owned(),
            },
        ];
        let keys: std::collections::BTreeSet<_> = recipes.iter().map(ImageRecipe::key).collect();
        assert_eq!(keys.len(), recipes.len());
    }

    #[test]
    fn what_an_image_holds_is_known_before_it_is_made() {
        let parts = |disk, kernel, initrd| ImageParts {
            disk,
            kernel,
            initrd,
        };
        let micro = ImageRecipe::Micro {
            suite: "bookworm".to_owned(),
        };
        let files = |disk: Option<&str>, kernel: Option<&str>| ImageSource::Path {
            disk: disk.map(PathBuf::from),
            kernel: kernel.map(PathBuf::from),
            initrd: None,
        };
        for (source, held) in [
            (ImageSource::Build(micro), parts(false, true, true)),
            (files(Some("disk.raw"), None), parts(true, false, false)),
            (files(None, Some("vmlinuz")), parts(false, true, false)),
        ] {
            assert_eq!(source.holds(), held, "{source:?}");
        }
    }

    #[test]
    fn a_file_counts_in_its_own_role() {
        let digest = Some(Digest::of("x"));
        assert_ne!(
            Image::path_key(digest, None, None),
            Image::path_key(None, digest, None)
        );
    }
}
