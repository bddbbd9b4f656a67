//! Disks of a domain: what they are made of, how they are attached, where the guest mounts them.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use super::{Bytes, Name};

/// A disk of one domain.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Disk {
    /// Name, and the serial that the guest finds it by; `root` for the overlay on the image.
    pub name: Name,
    /// What it is made of.
    pub source: DiskSource,
    /// How the host caches it; none: the hypervisor's own choice.
    #[serde(default)]
    pub cache: Option<DiskCache>,
    /// How much may go through it.
    #[serde(default)]
    pub io: IoLimits,
    /// Where the guest mounts it.
    #[serde(default)]
    pub mount: Option<Mount>,
}

/// What a disk is made of.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum DiskSource {
    /// A file that labrig makes, and removes with the lab: the overlay on the image if it is the
    /// root disk, else empty.
    Made {
        /// What the file lies on.
        on: Medium,
        /// Format of the file; an overlay is qcow2.
        format: DiskFormat,
        /// Virtual size; none: as large as the image.
        size: Option<Bytes>,
    },
    /// A logical volume that exists, used as it is. labrig never makes, wipes or removes one.
    Volume {
        /// The block device, `/dev/VG/LV`.
        path: PathBuf,
    },
    /// A file that exists, used as it is. labrig never removes it.
    File {
        /// The file.
        path: PathBuf,
        /// Its format.
        format: DiskFormat,
    },
}

/// What a file that labrig makes lies on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Medium {
    /// The lab's directory.
    Disk,
    /// The host's memory: a tmpfs.
    Ram,
}

/// How a disk file is laid out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum DiskFormat {
    /// QEMU's own: grows with what is written.
    Qcow2,
    /// The bare content.
    Raw,
}

/// How the host caches a disk: libvirt's `cache` attribute (formatdomain, "Hard drives").
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum DiskCache {
    /// Past the host's page cache.
    None,
    /// Through the page cache, each write onto the medium before it is done.
    Writethrough,
    /// Through the page cache.
    Writeback,
    /// As `none`, and each write onto the medium before it is done.
    Directsync,
    /// As `writeback`, and the guest's flushes are ignored.
    Unsafe,
}

/// How much may go through a disk; none: as much as there is.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct IoLimits {
    /// Reads per second.
    pub read_iops: Option<u64>,
    /// Writes per second.
    pub write_iops: Option<u64>,
    /// Bytes read per second.
    pub read_bandwidth: Option<Bytes>,
    /// Bytes written per second.
    pub write_bandwidth: Option<Bytes>,
}

/// Where the guest mounts a disk. The filesystem is made when the disk is blank, and never else.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Mount {
    /// Filesystem.
    pub filesystem: Filesystem,
    /// Absolute path in the guest.
    pub at: String,
    /// Mount options; empty: the filesystem's own choice.
    pub options: Vec<String>,
}

/// A filesystem that guests make.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Filesystem {
    /// ext4.
    Ext4,
    /// XFS.
    Xfs,
}

impl Disk {
    /// Longest serial of a virtio disk (`VIRTIO_BLK_ID_BYTES`, virtio 1.2, section 5.2.6).
    pub const SERIAL_MAX: usize = 20;
    /// Serial of the seed disk, which no other may have.
    pub const SEED_SERIAL: &'static str = "labrig-seed";

    /// A qcow2 file in the lab's directory: the overlay on an image, which may leave the size to it,
    /// or an empty disk.
    pub fn made(name: Name, size: Option<Bytes>) -> Self {
        Self {
            name,
            source: DiskSource::Made {
                on: Medium::Disk,
                format: DiskFormat::Qcow2,
                size,
            },
            cache: None,
            io: IoLimits::default(),
            mount: None,
        }
    }

    /// Memory of the host that it may come to take.
    pub fn memory(&self) -> Bytes {
        match &self.source {
            DiskSource::Made {
                on: Medium::Ram,
                size,
                ..
            } => size.unwrap_or_default(),
            _ => Bytes(0),
        }
    }
}

impl DiskFormat {
    /// Bytes at the beginning of a file that tell its format.
    pub const HEADER: usize = 32;

    /// The format of a disk file by its beginning, and the virtual size where the format holds one. A
    /// qcow2 file begins with "QFI\xfb" and has its size as a big-endian number at byte 24 (QEMU,
    /// docs/interop/qcow2.txt); all else is raw.
    pub fn of_header(header: &[u8; Self::HEADER]) -> (Self, Option<Bytes>) {
        match header {
            [b'Q', b'F', b'I', 0xfb, .., a, b, c, d, e, f, g, h] => {
                let size = u64::from_be_bytes([*a, *b, *c, *d, *e, *f, *g, *h]);
                (Self::Qcow2, Some(Bytes(size)))
            }
            _ => (Self::Raw, None),
        }
    }

    /// Its name in libvirt and QEMU.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Qcow2 => "qcow2",
            Self::Raw => "raw",
        }
    }
}

impl DiskCache {
    /// All of them, with their names in libvirt.
    pub const ALL: [(&'static str, Self); 5] = [
        ("none", Self::None),
        ("writethrough", Self::Writethrough),
        ("writeback", Self::Writeback),
        ("directsync", Self::Directsync),
        ("unsafe", Self::Unsafe),
    ];

    /// Its name in libvirt.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Writethrough => "writethrough",
            Self::Writeback => "writeback",
            Self::Directsync => "directsync",
            Self::Unsafe => "unsafe",
        }
    }

    /// Whether it goes past the page cache, which a tmpfs cannot do.
    pub const fn is_direct(self) -> bool {
        matches!(self, Self::None | Self::Directsync)
    }
}

impl Filesystem {
    /// Its name.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Ext4 => "ext4",
            Self::Xfs => "xfs",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_disk_file_is_known_by_its_header() {
        let mut header = [0; DiskFormat::HEADER];
        assert_eq!(DiskFormat::of_header(&header), (DiskFormat::Raw, None));
        header[..4].copy_from_slice(b"QFI\xfb");
        header[24..].copy_from_slice(&5_u64.to_be_bytes());
        let found = DiskFormat::of_header(&header);
        assert_eq!(found, (DiskFormat::Qcow2, Some(Bytes(5))));
    }
}
