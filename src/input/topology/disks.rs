//! Disks as written.

use std::path::PathBuf;

use super::super::read::{At, Fields, Written};
use super::super::shape::{Form, GUEST_PATH, Key, NAME, SIZE, Shape, Word, words};
use super::size;
use crate::model::{
    Bytes, Disk, DiskCache, DiskFormat, DiskSource, Filesystem, IoLimits, Medium, Mount, Name,
};

/// What a disk is.
pub(super) const DISK: Shape = Shape::new(
    "A disk of one domain.",
    &[
        Key::required(
            "name",
            NAME,
            "data",
            "Its name, and the serial that the guest finds it by; `root` is the overlay on the image's disk.",
        ),
        Key::new(
            "size",
            SIZE,
            "1GiB",
            "Virtual size; a root disk is as large as its image when left out.",
        ),
        Key::new(
            "on",
            Form::Words(words::<On>),
            "ram",
            "What it lies on: the lab's directory (disk, when left out), the host's memory (ram), a logical volume that exists (lvm), a file that exists (file). The last two are used as they are, and never made, wiped or removed.",
        ),
        Key::new(
            "path",
            Form::Text,
            "/dev/vg0/db",
            "The logical volume, or the file, which is relative to the topology.",
        ),
        Key::new(
            "format",
            Form::Words(words::<DiskFormat>),
            "raw",
            "Format of the file: qcow2 when left out, raw for `ram` and `file`.",
        ),
        Key::new(
            "cache",
            Form::Words(words::<DiskCache>),
            "none",
            "How the host caches it, as libvirt calls it; QEMU's own choice when left out.",
        ),
        Key::new(
            "io",
            Form::Map(&IO),
            "{write_iops: 500}",
            "How much may go through it.",
        ),
        Key::new(
            "filesystem",
            Form::Words(words::<Filesystem>),
            "ext4",
            "Filesystem that the guest makes on it when it is blank; `mount` says where it goes.",
        ),
        Key::new(
            "mount",
            GUEST_PATH,
            "/data",
            "Directory that the guest mounts it on at every boot.",
        ),
        Key::new(
            "mount_options",
            Form::List(&Form::Text),
            "[noatime]",
            "Options of the mount.",
        ),
    ],
);

const IO: Shape = Shape::new(
    "Limits of a disk.",
    &[
        Key::new("read_iops", IOPS, "500", "Reads per second."),
        Key::new("write_iops", IOPS, "500", "Writes per second."),
        Key::new(
            "read_bandwidth",
            BANDWIDTH,
            "100MiB/s",
            "Bytes read per second.",
        ),
        Key::new(
            "write_bandwidth",
            BANDWIDTH,
            "100MiB/s",
            "Bytes written per second.",
        ),
    ],
);

/// The most that QEMU's throttle takes (`THROTTLE_VALUE_MAX`, include/qemu/throttle.h).
const RATE_MAX: u64 = 1_000_000_000_000_000;
const IOPS: Form = Form::Whole {
    least: 1,
    most: RATE_MAX,
};
const BANDWIDTH: Form = Form::Syntax("^[0-9]+ ?(B|kB|MB|GB|TB|KiB|MiB|GiB|TiB)/s$");

/// What a disk lies on, as written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum On {
    Disk,
    Ram,
    Lvm,
    File,
}

impl Word for On {
    const WORDS: &'static [(&'static str, Self)] = &[
        ("disk", Self::Disk),
        ("ram", Self::Ram),
        ("lvm", Self::Lvm),
        ("file", Self::File),
    ];
}

impl Word for DiskFormat {
    const WORDS: &'static [(&'static str, Self)] = &[("qcow2", Self::Qcow2), ("raw", Self::Raw)];
}

impl Word for DiskCache {
    const WORDS: &'static [(&'static str, Self)] = &Self::ALL;
}

impl Word for Filesystem {
    const WORDS: &'static [(&'static str, Self)] = &[("ext4", Self::Ext4), ("xfs", Self::Xfs)];
}

/// A disk, with the places of what is checked against other things.
#[derive(Clone)]
pub(in super::super) struct DiskSpec {
    pub name: Written<Name>,
    /// All of it; the path of a file is as written.
    pub disk: Disk,
    pub size: Option<Written<Bytes>>,
    /// Of a volume or a file.
    pub path: Option<Written<PathBuf>>,
    pub filesystem: Option<Written<Filesystem>>,
    pub mount: Option<Written<String>>,
}

impl DiskSpec {
    /// Whether it is the overlay on the image.
    pub fn is_root(&self) -> bool {
        self.name.value.as_str() == "root"
    }
}

/// Reads a disk.
pub(super) fn disk(at: &At<'_>) -> Option<DiskSpec> {
    let fields = at.fields(&DISK)?;
    let name: Written<Name> = fields.get("name")?.parse("data")?;
    check_serial(&fields, &name.value);
    let on = fields.get("on").map_or(Some(On::Disk), |at| at.word())?;
    let is_root = name.value.as_str() == "root";
    check_fit(&fields, on, is_root);
    let size = match fields.get("size") {
        Some(at) => Some(size(&at, Bytes::mib(1), "1GiB")?),
        None if on == On::Ram || (on == On::Disk && !is_root) => {
            fields.need("size", "1GiB");
            return None;
        }
        None => None,
    };
    let path = match (on, fields.get("path")) {
        (On::Lvm, Some(at)) => Some(volume_path(&at)?),
        (On::File, Some(at)) => Some(super::file_path(&at)?),
        (On::Lvm, None) => {
            fields.need("path", "/dev/vg0/db");
            return None;
        }
        (On::File, None) => {
            fields.need("path", "disks/db.raw");
            return None;
        }
        (On::Disk | On::Ram, _) => None,
    };
    let format: Option<DiskFormat> = match fields.get("format") {
        Some(at) => Some(at.word()?),
        None => None,
    };
    let made = |on, default| DiskSource::Made {
        on,
        format: format.unwrap_or(default),
        size: size.as_ref().map(|size| size.value),
    };
    let source = match (on, &path) {
        (On::Disk, _) => made(Medium::Disk, DiskFormat::Qcow2),
        (On::Ram, _) if is_root => made(Medium::Ram, DiskFormat::Qcow2),
        (On::Ram, _) => made(Medium::Ram, DiskFormat::Raw),
        (On::Lvm, Some(path)) => DiskSource::Volume {
            path: path.value.clone(),
        },
        (On::File, Some(path)) => DiskSource::File {
            path: path.value.clone(),
            format: format.unwrap_or(DiskFormat::Raw),
        },
        (On::Lvm | On::File, None) => return None,
    };
    let cache = fields.get("cache").and_then(|at| {
        let cache: DiskCache = at.word()?;
        if on == On::Ram && cache.is_direct() {
            at.error(
                format!(
                    "a disk in RAM has no cache to go past, as {:?} does",
                    cache.as_str()
                ),
                "leave cache out",
            );
        }
        Some(cache)
    });
    let filesystem = fields.get("filesystem").and_then(|at| {
        Some(Written {
            value: at.word::<Filesystem>()?,
            spot: at.spot(),
        })
    });
    let mount = fields.get("mount").and_then(|at| mount_point(&at));
    let options = mount_options(&fields);
    Some(DiskSpec {
        disk: Disk {
            name: name.value.clone(),
            source,
            cache,
            io: fields.get("io").map(|at| io(&at)).unwrap_or_default(),
            mount: filesystem
                .as_ref()
                .zip(mount.as_ref())
                .map(|(filesystem, mount)| Mount {
                    filesystem: filesystem.value,
                    at: mount.value.clone(),
                    options,
                }),
        },
        name,
        size,
        path,
        filesystem,
        mount,
    })
}

/// The guest finds the disk by its name, which goes into a field of a few bytes.
fn check_serial(fields: &Fields<'_>, name: &Name) {
    let Some(at) = fields.get("name") else { return };
    if name.as_str().len() > Disk::SERIAL_MAX {
        at.error(
            format!(
                "a disk's name has {} characters at most, this has {}",
                Disk::SERIAL_MAX,
                name.as_str().len()
            ),
            "the guest finds the disk by it: shorten it",
        );
    } else if name.as_str() == Disk::SEED_SERIAL {
        at.error(
            format!("{name} is the seed disk's name"),
            "choose another name",
        );
    }
}

/// Notes keys that do not go together.
fn check_fit(fields: &Fields<'_>, on: On, is_root: bool) {
    let refuse = |keys: &[&str], message: &str, hint: &str| {
        for key in keys {
            if let Some(at) = fields.get(key) {
                at.error(format!("{key} has no meaning for {message}"), hint);
            }
        }
    };
    match on {
        On::Disk | On::Ram => refuse(
            &["path"],
            "a disk that labrig makes",
            "leave it out, or say `on: file` or `on: lvm`",
        ),
        On::Lvm => refuse(
            &["size", "format"],
            "a logical volume, which is used as it is",
            "leave it out",
        ),
        On::File => refuse(
            &["size"],
            "a file that exists, which is used as it is",
            "leave it out",
        ),
    }
    if is_root {
        refuse(
            &["format", "filesystem", "mount", "mount_options"],
            "the root disk, an overlay on the image",
            "leave it out, or give the disk another name",
        );
        if let (On::Lvm | On::File, Some(at)) = (on, fields.get("on")) {
            at.error(
                "the root disk is an overlay on the image",
                "put it on disk or ram, or give the disk another name",
            );
        }
        return;
    }
    let both = "filesystem says what is made, mount where it goes: say both or neither";
    match (fields.get("filesystem"), fields.get("mount")) {
        (Some(at), None) => at.error("a filesystem that is mounted nowhere", both),
        (None, Some(at)) => at.error("a mount without a filesystem", both),
        _ => {}
    }
    if let (None, Some(at)) = (fields.get("mount"), fields.get("mount_options")) {
        at.error(
            "options of a mount that is not there",
            "add mount, or leave them out",
        );
    }
}

fn io(at: &At<'_>) -> IoLimits {
    let Some(fields) = at.fields(&IO) else {
        return IoLimits::default();
    };
    let count = |key| fields.get(key).and_then(|at| at.whole());
    let bandwidth = |key| fields.get(key).and_then(|at| bandwidth(&at));
    IoLimits {
        read_iops: count("read_iops"),
        write_iops: count("write_iops"),
        read_bandwidth: bandwidth("read_bandwidth"),
        write_bandwidth: bandwidth("write_bandwidth"),
    }
}

/// Bytes per second.
fn bandwidth(at: &At<'_>) -> Option<Bytes> {
    const EXAMPLE: &str = "100MiB/s";
    let text = at.text(EXAMPLE)?.value;
    let Some(size) = text.strip_suffix("/s") else {
        at.error(
            format!("{text:?} is no size per second"),
            format!("as in {EXAMPLE}"),
        );
        return None;
    };
    match size.trim_end().parse::<Bytes>() {
        Ok(bytes) if (1..=RATE_MAX).contains(&bytes.0) => Some(bytes),
        Ok(_) => {
            at.error(
                format!("{text:?} is out of range"),
                format!("from 1B/s to {RATE_MAX}B/s"),
            );
            None
        }
        Err(e) => {
            at.error(e.to_string(), format!("as in {EXAMPLE}"));
            None
        }
    }
}

/// A logical volume's device.
fn volume_path(at: &At<'_>) -> Option<Written<PathBuf>> {
    let text = at.text("/dev/vg0/db")?;
    let is_device = text
        .value
        .strip_prefix("/dev/")
        .is_some_and(|rest| rest.split('/').all(|part| !matches!(part, "" | "." | "..")));
    if !is_device || text.value.chars().any(char::is_control) {
        at.error(
            format!("{:?} is no device of a logical volume", text.value),
            "as in /dev/vg0/db",
        );
        return None;
    }
    Some(Written {
        value: text.value.into(),
        spot: text.spot,
    })
}

/// Directories of the system, which a guest needs as they are.
const SYSTEM: [&str; 13] = [
    "/bin", "/boot", "/dev", "/etc", "/lib", "/lib64", "/proc", "/root", "/run", "/sbin", "/sys",
    "/usr", "/var",
];
/// Those in which nothing of a disk's can be.
const KERNEL: [&str; 4] = ["/dev", "/proc", "/run", "/sys"];

/// A directory in a guest that a disk can be mounted on. It goes into a table whose columns blanks
/// part.
fn mount_point(at: &At<'_>) -> Option<Written<String>> {
    let text = at.text("/data")?;
    let path = text.value;
    let is_below = |directory: &str| {
        path.strip_prefix(directory)
            .is_some_and(|rest| rest.starts_with('/'))
    };
    let wrong = if !path.starts_with('/') {
        Some("is not absolute")
    } else if path == "/" {
        Some("is the root disk's")
    } else if path[1..]
        .split('/')
        .any(|part| matches!(part, "" | "." | ".."))
    {
        Some("holds empty, . or .. steps")
    } else if SYSTEM.contains(&path) || KERNEL.iter().any(|directory| is_below(directory)) {
        Some("belongs to the system")
    } else if path == "/etc/labrig" || path == "/var/lib" || path.starts_with("/var/lib/labrig") {
        Some("is labrig's own")
    } else if !path
        .chars()
        .all(|c| c.is_ascii_alphanumeric() || "/._-+@".contains(c))
    {
        Some("holds a character that a mount point here cannot have")
    } else {
        None
    };
    if let Some(wrong) = wrong {
        at.error(
            format!("{path:?} {wrong}"),
            "name a directory of its own, as in /data or /var/lib/mysql",
        );
        return None;
    }
    Some(Written {
        value: path.to_owned(),
        spot: text.spot,
    })
}

fn mount_options(fields: &Fields<'_>) -> Vec<String> {
    let items = fields
        .get("mount_options")
        .map(|at| at.items("noatime"))
        .unwrap_or_default();
    let allowed = |c: char| c.is_ascii_alphanumeric() || "_=.:/+-".contains(c);
    items
        .iter()
        .filter_map(|at| super::word(at, "noatime", allowed))
        .collect()
}
