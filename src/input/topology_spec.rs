//! A topology file as written: every value with its place, defaults filled, nothing bound yet.
//!
//! What is wrong is noted and left out here, so that later checks still see the rest.

use std::net::Ipv4Addr;
use std::path::PathBuf;
use std::time::Duration;

use ipnet::Ipv4Net;

use super::guest_path::{file_mode, guest_path};
use super::read::{At, Fields, Written};
use crate::model::{Bytes, Digest, ImageRecipe, MacAddr, Name, Seconds, VswitchMode};

/// The only version of the topology language.
const VERSION: u64 = 1;

/// Disks and vnets that a domain may have: its PCI slots hold them all, and the seed disk.
const DEVICES_MAX: usize = 12;

/// Files that labrig renders into one domain.
const FILES_MAX: usize = 1000;

/// Domains that one key may stand for, and that a lab may have.
pub(super) const COUNT_MAX: u64 = 10_000;

pub(super) struct TopologySpec {
    pub name: Option<Written<Name>>,
    pub images: Vec<ImageSpec>,
    pub vswitches: Vec<VswitchSpec>,
    pub domains: Vec<DomainSpec>,
}

pub(super) struct ImageSpec {
    pub name: Written<Name>,
    /// None when it was not understood.
    pub source: Option<ImageSourceSpec>,
}

pub(super) enum ImageSourceSpec {
    Build {
        recipe: ImageRecipe,
        size: Option<Written<Bytes>>,
    },
    Path(Box<PathSpec>),
}

pub(super) struct PathSpec {
    pub disk: Option<Written<PathBuf>>,
    pub kernel: Option<Written<PathBuf>>,
    pub initrd: Option<Written<PathBuf>>,
    pub sha256: Option<Written<Digest>>,
}

pub(super) struct VswitchSpec {
    pub name: Written<Name>,
    pub mode: VswitchMode,
    pub subnet: Option<Written<Ipv4Net>>,
    pub mtu: u32,
}

pub(super) struct DomainSpec {
    /// The key; all domains of a counted group share it.
    pub name: Written<Name>,
    pub count: u32,
    pub image: Option<Written<Name>>,
    pub vcpus: u32,
    pub memory: Bytes,
    pub disks: Vec<DiskSpec>,
    pub vnets: Vec<VnetSpec>,
    pub files: Vec<FileSpec>,
    pub boot_timeout: Seconds,
}

pub(super) struct DiskSpec {
    pub name: Written<Name>,
    pub size: Option<Written<Bytes>>,
}

pub(super) struct VnetSpec {
    /// A name, or a template over `index` that gives one.
    pub vswitch: Written<String>,
    pub ip: Option<Written<Ipv4Addr>>,
    pub mac: Option<Written<MacAddr>>,
}

pub(super) struct FileSpec {
    pub template: Written<String>,
    pub to: Written<String>,
    pub mode: u32,
    pub vars: serde_json::Map<String, serde_json::Value>,
}

impl TopologySpec {
    /// Reads a topology.
    pub fn read(top: &At<'_>) -> Option<Self> {
        let fields = top.fields(&["version", "name", "images", "vswitches", "domains"])?;
        version(&fields, VERSION)?;
        let name = fields
            .need("name", "quickstart")
            .and_then(|at| at.parse("quickstart"));
        let example = "db: {image: …, split: {cpus: 1, memory: 512MiB}, vnets: [{vswitch: data}]}";
        let domains = fields.need("domains", &format!("{{{example}}}"));
        Some(Self {
            name,
            images: named(
                fields.get("images"),
                "micro: {build: {micro: {}}}",
                |name, at| {
                    Some(ImageSpec {
                        name,
                        source: image(at),
                    })
                },
            ),
            vswitches: named(
                fields.get("vswitches"),
                "data: {subnet: 10.10.0.0/24}",
                vswitch,
            ),
            domains: named(domains, example, domain),
        })
    }
}

/// Checks the `version` key. With another version, nothing else of the file can be judged.
pub(super) fn version(fields: &Fields<'_>, known: u64) -> Option<()> {
    let at = fields.need("version", &known.to_string())?;
    let version = at.integer(1, u64::MAX)?;
    if version != known {
        at.error(
            format!("version {version} of this language is not known"),
            format!("this labrig reads version {known}"),
        );
        return None;
    }
    Some(())
}

fn named<T>(
    at: Option<At<'_>>,
    example: &str,
    read: impl Fn(Written<Name>, &At<'_>) -> Option<T>,
) -> Vec<T> {
    let entries = at.map(|at| at.named(example)).unwrap_or_default();
    entries
        .into_iter()
        .filter_map(|(name, at)| read(name, &at))
        .collect()
}

fn image(at: &At<'_>) -> Option<ImageSourceSpec> {
    let fields = at.fields(&["build", "path", "kernel", "initrd", "sha256"])?;
    let path = |key: &str| fields.get(key).and_then(|at| file_path(&at));
    let spec = PathSpec {
        disk: path("path"),
        kernel: path("kernel"),
        initrd: path("initrd"),
        sha256: fields
            .get("sha256")
            .and_then(|at| at.parse("\"ba7816bf…\" (64 digits)")),
    };
    let has_files = ["path", "kernel", "initrd", "sha256"]
        .iter()
        .any(|key| fields.get(key).is_some());
    match fields.get("build") {
        Some(build) if has_files => {
            build.error(
                "an image is either built or made of files",
                "keep build, or path and kernel",
            );
            None
        }
        Some(build) => recipe(&build),
        None if fields.get("path").is_none() && fields.get("kernel").is_none() => {
            at.error(
                "nothing says where this image comes from",
                "add build, or path or kernel",
            );
            None
        }
        None => {
            if let (Some(initrd), None) = (fields.get("initrd"), fields.get("kernel")) {
                initrd.error(
                    "an initrd needs a kernel",
                    "add kernel, or leave initrd out",
                );
            }
            Some(ImageSourceSpec::Path(Box::new(spec)))
        }
    }
}

/// A file on this machine, relative to the file that names it.
fn file_path(at: &At<'_>) -> Option<Written<PathBuf>> {
    let text = at.text("images/db.qcow2")?;
    if text.value.contains('\0') {
        at.error(
            "a path cannot hold a NUL character",
            "as in images/db.qcow2",
        );
        return None;
    }
    Some(Written {
        value: text.value.into(),
        spot: text.spot,
    })
}

fn recipe(at: &At<'_>) -> Option<ImageSourceSpec> {
    let fields = at.fields(&["suite", "packages", "size", "micro"])?;
    if let Some(micro) = fields.get("micro") {
        for key in ["suite", "packages", "size"] {
            if let Some(other) = fields.get(key) {
                other.error(
                    format!("a micro image has no {key:?} here"),
                    "its suite goes inside: {micro: {suite: bookworm}}",
                );
            }
        }
        let fields = micro.fields(&["suite"])?;
        let suite = fields
            .get("suite")
            .map_or(Some("bookworm".to_owned()), |at| suite(&at))?;
        return Some(ImageSourceSpec::Build {
            recipe: ImageRecipe::Micro {
                suite,
                files: Vec::new(),
            },
            size: None,
        });
    }
    let suite = fields.need("suite", "bookworm").and_then(|at| suite(&at))?;
    let mut packages: Vec<String> = fields
        .get("packages")
        .map(|at| at.items("mariadb-server, sysbench"))
        .unwrap_or_default()
        .iter()
        .filter_map(package)
        .collect();
    packages.sort_unstable();
    packages.dedup();
    let written = fields
        .get("size")
        .and_then(|at| size(&at, Bytes::mib(512), "3GiB"));
    let size = written.as_ref().map_or(Bytes(3 << 30), |w| w.value);
    let recipe = ImageRecipe::Debian {
        suite,
        packages,
        files: Vec::new(),
        run: Vec::new(),
        size,
    };
    Some(ImageSourceSpec::Build {
        recipe,
        size: written,
    })
}

fn suite(at: &At<'_>) -> Option<String> {
    word(at, "bookworm", |c| {
        c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-'
    })
}

/// A Debian package name (Debian Policy 5.6.7), perhaps with `=VERSION` or `/RELEASE`.
fn package(at: &At<'_>) -> Option<String> {
    let allowed = |c: char| c.is_ascii_alphanumeric() || "+-.=/:~".contains(c);
    word(at, "mariadb-server", allowed)
}

/// A text of some characters only, that starts with a letter or digit: it goes into command lines.
pub(super) fn word(at: &At<'_>, example: &str, allowed: impl Fn(char) -> bool) -> Option<String> {
    let text = at.text(example)?.value;
    let wrong = text
        .chars()
        .find(|c| !allowed(*c))
        .or_else(|| text.chars().next().filter(|c| !c.is_ascii_alphanumeric()));
    if let Some(c) = wrong {
        at.error(
            format!("{c:?} is not allowed here"),
            format!("as in {example}"),
        );
        return None;
    }
    Some(text.to_owned())
}

fn size(at: &At<'_>, least: Bytes, example: &str) -> Option<Written<Bytes>> {
    let size: Written<Bytes> = at.parse(example)?;
    if size.value < least {
        at.error(
            format!("{} is too small", size.value),
            format!("at least {least}"),
        );
        return None;
    }
    // A file of a size that a signed 64-bit offset cannot reach is refused everywhere.
    if size.value.0 > i64::MAX as u64 {
        at.error(
            format!("{} is too large", size.value),
            format!("as in {example}"),
        );
        return None;
    }
    Some(size)
}

fn vswitch(name: Written<Name>, at: &At<'_>) -> Option<VswitchSpec> {
    let fields = at.fields(&["mode", "subnet", "mtu"])?;
    let modes = [
        ("isolated", VswitchMode::Isolated),
        ("nat", VswitchMode::Nat),
    ];
    Some(VswitchSpec {
        name,
        mode: fields
            .get("mode")
            .and_then(|at| at.choice(&modes))
            .unwrap_or(VswitchMode::Isolated),
        subnet: fields
            .need("subnet", "10.10.0.0/24")
            .and_then(|at| subnet(&at)),
        // IPv4 hosts must take 576 bytes (RFC 791); virtio-net takes no more than 65535.
        mtu: fields
            .get("mtu")
            .and_then(|at| at.integer(576, 65535))
            .map_or(1500, |n| n as u32),
    })
}

fn subnet(at: &At<'_>) -> Option<Written<Ipv4Net>> {
    let text = at.text("10.10.0.0/24")?;
    let Ok(net) = text.value.parse::<Ipv4Net>() else {
        at.error(
            format!("{:?} is not an IPv4 subnet", text.value),
            "write a network and its prefix length, as in 10.10.0.0/24",
        );
        return None;
    };
    if net.trunc() != net {
        at.error(
            format!("{net} is an address inside a subnet"),
            format!("the subnet itself is {}", net.trunc()),
        );
        return None;
    }
    if !(8..=30).contains(&net.prefix_len()) {
        at.error(
            format!(
                "a prefix length of {} leaves no usable subnet",
                net.prefix_len()
            ),
            "prefix lengths from 8 to 30 can be used",
        );
        return None;
    }
    let first = net.network();
    if first.is_loopback()
        || first.is_multicast()
        || first.octets()[0] == 0
        || first.octets()[0] > 239
    {
        at.error(
            format!("{net} is not for hosts"),
            "use a private network: part of 10.0.0.0/8, 172.16.0.0/12 or 192.168.0.0/16",
        );
        return None;
    }
    Some(Written {
        value: net,
        spot: text.spot,
    })
}

fn domain(name: Written<Name>, at: &At<'_>) -> Option<DomainSpec> {
    let fields = at.fields(&[
        "count",
        "image",
        "split",
        "disks",
        "vnets",
        "files",
        "boot_timeout",
    ])?;
    let (vcpus, memory) = split(&fields);
    let list = |key: &str, example: &str, most: usize| {
        fields
            .get(key)
            .map(|at| items(&at, example, most))
            .unwrap_or_default()
    };
    let vnets = fields.need("vnets", "[{vswitch: data}]").map(|at| {
        let items = items(&at, "{vswitch: data}", DEVICES_MAX);
        if items.is_empty() && at.is_list() {
            at.error(
                "a domain without a vnet cannot be reached",
                "add one, as in [{vswitch: data}]",
            );
        }
        items
    });
    Some(DomainSpec {
        name,
        count: fields
            .get("count")
            .and_then(|at| at.integer(1, COUNT_MAX))
            .map_or(1, |n| n as u32),
        image: fields
            .need("image", "micro")
            .and_then(|at| at.parse("micro")),
        vcpus,
        memory,
        disks: list("disks", "{name: data, size: 1GiB}", DEVICES_MAX)
            .iter()
            .filter_map(disk)
            .collect(),
        vnets: vnets.unwrap_or_default().iter().filter_map(vnet).collect(),
        files: list("files", "{template: a.tera, to: /etc/a}", FILES_MAX)
            .iter()
            .filter_map(file)
            .collect(),
        boot_timeout: fields
            .get("boot_timeout")
            .and_then(|at| time_span(&at, "3m"))
            .map_or(Seconds(Duration::from_secs(300)), |w| w.value),
    })
}

/// A list's items, when there are not too many.
fn items<'a>(at: &At<'a>, example: &str, most: usize) -> Vec<At<'a>> {
    let items = at.items(example);
    if items.len() > most {
        at.error(
            format!("{} entries are too many", items.len()),
            format!("at most {most} go here"),
        );
        return Vec::new();
    }
    items
}

/// CPUs and memory. What is wrong is noted; the stand-ins are never used then.
fn split(fields: &Fields<'_>) -> (u32, Bytes) {
    let split = fields
        .need("split", "{cpus: 1, memory: 512MiB}")
        .and_then(|at| at.fields(&["cpus", "memory"]));
    let Some(split) = split else {
        return (1, Bytes::mib(512));
    };
    let cpus = split.need("cpus", "1").and_then(|at| at.integer(1, 1024));
    let memory = split
        .need("memory", "512MiB")
        .and_then(|at| size(&at, Bytes::mib(32), "512MiB"));
    (
        cpus.map_or(1, |n| n as u32),
        memory.map_or(Bytes::mib(512), |w| w.value),
    )
}

/// A time span above zero.
pub(super) fn time_span(at: &At<'_>, example: &str) -> Option<Written<Seconds>> {
    let span: Written<Seconds> = at.parse(example)?;
    let day = Duration::from_secs(24 * 3600);
    if span.value.0.is_zero() || span.value.0 > 30 * day {
        at.error(
            "a time from above zero to 30 days is wanted here",
            format!("as in {example}"),
        );
        return None;
    }
    Some(span)
}

fn disk(at: &At<'_>) -> Option<DiskSpec> {
    let fields = at.fields(&["name", "size"])?;
    let name: Written<Name> = fields.need("name", "data")?.parse("data")?;
    let size = match fields.get("size") {
        Some(at) => Some(size(&at, Bytes::mib(1), "1GiB")?),
        None if name.value.as_str() == "root" => None,
        None => {
            fields.need("size", "1GiB");
            return None;
        }
    };
    Some(DiskSpec { name, size })
}

fn vnet(at: &At<'_>) -> Option<VnetSpec> {
    let fields = at.fields(&["vswitch", "ip", "mac"])?;
    let ip = fields.get("ip").and_then(|at| {
        let text = at.text("10.10.0.10")?;
        let Ok(value) = text.value.parse() else {
            at.error(
                format!("{:?} is not an IPv4 address", text.value),
                "as in 10.10.0.10",
            );
            return None;
        };
        Some(Written {
            value,
            spot: text.spot,
        })
    });
    let mac = fields.get("mac").and_then(|at| mac(&at));
    let vswitch = fields.need("vswitch", "data")?.text("data")?;
    let vswitch = Written {
        value: vswitch.value.to_owned(),
        spot: vswitch.spot,
    };
    Some(VnetSpec { vswitch, ip, mac })
}

fn mac(at: &At<'_>) -> Option<Written<MacAddr>> {
    let mac: Written<MacAddr> = at.parse("\"52:54:00:12:34:56\"")?;
    // libvirt gives fe:… to its own end of every port, and takes zeros for none (src/util/virmacaddr.c).
    let text = mac.value.to_string();
    if text.starts_with("fe:") || text == "00:00:00:00:00:00" {
        at.error(format!("{text} is reserved"), "as in \"52:54:00:12:34:56\"");
        return None;
    }
    Some(mac)
}

fn file(at: &At<'_>) -> Option<FileSpec> {
    let fields = at.fields(&["template", "to", "mode", "vars"])?;
    let template = fields
        .need("template", "a.tera")
        .and_then(|at| at.text("a.tera"));
    let to = fields.need("to", "/etc/a").and_then(|at| guest_path(&at));
    let mode = fields.get("mode").map_or(Some(0o644), |at| file_mode(&at));
    let vars = fields
        .get("vars")
        .map_or(Some(serde_json::Map::new()), |at| at.object());
    let template = template?;
    Some(FileSpec {
        template: Written {
            value: template.value.to_owned(),
            spot: template.spot,
        },
        to: to?,
        mode: mode?,
        vars: vars?,
    })
}
