//! Images as written.

use std::path::PathBuf;

use super::super::guest_path::{file_mode, guest_path};
use super::super::read::{At, Fields, Spot, Written};
use super::super::shape::{Form, GUEST_PATH, Key, MODE, NAME, SHA256, SIZE, Shape};
use super::{file_path, size, word};
use crate::model::{Bytes, Digest, Name};

/// What an image is.
pub(super) const IMAGE: Shape = Shape::new(
    "A read-only disk, a kernel, or both: built by labrig, files that exist, or a download.",
    &[
        Key::new(
            "build",
            Form::Map(&BUILD),
            "{suite: bookworm}",
            "How labrig builds it.",
        ),
        Key::new(
            "path",
            Form::Text,
            "images/db.qcow2",
            "qcow2 or raw disk, relative to this file.",
        ),
        Key::new(
            "kernel",
            Form::Text,
            "images/vmlinuz",
            "Kernel for direct boot.",
        ),
        Key::new(
            "initrd",
            Form::Text,
            "images/initrd",
            "Initial RAM disk that goes with the kernel.",
        ),
        Key::new(
            "url",
            Form::Syntax("^https?://"),
            "https://cloud.debian.org/…/debian-12-generic-amd64.qcow2",
            "qcow2 or raw disk to download; `sha256` must say which.",
        ),
        Key::new(
            "sha256",
            SHA256,
            "\"ba7816bf…\"",
            "Digest of the disk, else of the kernel.",
        ),
        Key::new(
            "cloud_init",
            Form::Truth,
            "true",
            "Whether the image brings cloud-init, which then gives its guests their identity.",
        ),
    ],
);

const BUILD: Shape = Shape::new(
    "A recipe: a Debian disk, a micro image of kernel, busybox and dropbear, or a layer on another image.",
    &[
        Key::new("suite", NAME, "bookworm", "Debian release."),
        Key::new(
            "from",
            NAME,
            "base",
            "Image of this file that it is a copy of, with more in it.",
        ),
        Key::new(
            "packages",
            Form::List(&Form::Text),
            "[mariadb-server]",
            "Debian packages beside the base set.",
        ),
        Key::new(
            "files",
            Form::List(&Form::Map(&BUILD_FILE)),
            "[{from: motd, to: /etc/motd}]",
            "Files put in after the packages.",
        ),
        Key::new(
            "run",
            Form::List(&Form::Text),
            "[useradd bench]",
            "Shell commands run in it as root at last, by sh -e; each must succeed.",
        ),
        Key::new(
            "size",
            SIZE,
            "3GiB",
            "Virtual size of the disk; 3GiB, or that of the image below, when left out.",
        ),
        Key::new(
            "micro",
            Form::Map(&MICRO),
            "{}",
            "Makes a micro image, which has no disk and boots in seconds.",
        ),
    ],
);

const MICRO: Shape = Shape::new(
    "A micro image.",
    &[Key::new(
        "suite",
        NAME,
        "bookworm",
        "Debian release its programs come from.",
    )],
);

const BUILD_FILE: Shape = Shape::new(
    "A file that goes into an image: a copy, or rendered from a template.",
    &[
        Key::new(
            "from",
            Form::Text,
            "files/motd",
            "File to copy, relative to this file.",
        ),
        Key::new(
            "template",
            Form::Text,
            "a.tera",
            "Template, relative to the template directory; it sees lab and vars.",
        ),
        Key::required("to", GUEST_PATH, "/etc/a", "Absolute path in the image."),
        Key::new(
            "mode",
            MODE,
            "\"0644\"",
            "Permission bits in octal; \"0644\" when left out.",
        ),
        Key::new(
            "vars",
            Form::Keyed(&Form::Any),
            "{size: 64M}",
            "Values the template sees as `vars`, beside the topology's.",
        ),
    ],
);

/// Files and commands of one recipe.
const LIST_MAX: usize = 1000;

pub(in super::super) struct ImageSpec {
    pub name: Written<Name>,
    /// None when it was not understood.
    pub source: Option<ImageSourceSpec>,
    pub cloud_init: bool,
}

impl ImageSpec {
    /// The image below it.
    pub fn base(&self) -> Option<&Name> {
        match &self.source {
            Some(ImageSourceSpec::Build(spec)) => match &spec.ground {
                Ground::Image(base) => Some(&base.value),
                Ground::Debian { .. } | Ground::Micro { .. } => None,
            },
            _ => None,
        }
    }
}

pub(in super::super) enum ImageSourceSpec {
    Build(Box<BuildSpec>),
    Path(Box<PathSpec>),
    Url { url: String, sha256: Digest },
}

pub(in super::super) struct BuildSpec {
    pub ground: Ground,
    pub packages: Vec<String>,
    pub files: Vec<BuildFileSpec>,
    pub run: Vec<String>,
    pub size: Option<Written<Bytes>>,
    /// Where packages, commands or a size are asked for, which a layer on a micro image cannot have.
    pub more_than_files: Vec<(&'static str, Spot)>,
}

/// What a recipe starts from.
pub(in super::super) enum Ground {
    Debian { suite: String },
    Micro { suite: String },
    Image(Written<Name>),
}

pub(in super::super) struct BuildFileSpec {
    pub content: BuildContentSpec,
    pub to: Written<String>,
    pub mode: u32,
}

pub(in super::super) enum BuildContentSpec {
    From(Written<PathBuf>),
    Template {
        template: Written<String>,
        vars: serde_json::Map<String, serde_json::Value>,
    },
}

pub(in super::super) struct PathSpec {
    pub disk: Option<Written<PathBuf>>,
    pub kernel: Option<Written<PathBuf>>,
    pub initrd: Option<Written<PathBuf>>,
    pub sha256: Option<Written<Digest>>,
}

/// Reads an image.
pub(super) fn image(name: Written<Name>, at: &At<'_>) -> Option<ImageSpec> {
    let fields = at.fields(&IMAGE)?;
    let cloud_init = fields.get("cloud_init").and_then(|at| at.boolean());
    check_cloud_init(&fields, cloud_init == Some(true));
    Some(ImageSpec {
        name,
        source: source(at, &fields),
        cloud_init: cloud_init == Some(true),
    })
}

/// cloud-init is on disks that come from elsewhere.
fn check_cloud_init(fields: &Fields<'_>, cloud_init: bool) {
    let Some(at) = fields.get("cloud_init").filter(|_| cloud_init) else {
        return;
    };
    if fields.get("build").is_some() {
        at.error(
            "an image that labrig builds takes labrig's own seed",
            "leave cloud_init out",
        );
    } else if fields.get("path").is_none() && fields.get("url").is_none() {
        at.error(
            "an image without a disk has no cloud-init",
            "add path or url, or leave cloud_init out",
        );
    }
}

fn source(at: &At<'_>, fields: &Fields<'_>) -> Option<ImageSourceSpec> {
    let given = in_order(
        ["build", "url", "path", "kernel"]
            .into_iter()
            .filter(|key| *key != "kernel" || fields.get("path").is_none())
            .filter_map(|key| fields.get(key)),
    );
    if let [first, second, ..] = given.as_slice() {
        second.error_beside(
            "an image comes from one place",
            "keep one of build, url, and path with kernel and initrd",
            first,
            "the other one",
        );
        return None;
    }
    let sha256 = || {
        fields
            .get("sha256")
            .and_then(|at| at.parse::<Digest>("\"ba7816bf…\" (64 digits)"))
    };
    if let Some(build) = fields.get("build") {
        if let Some(at) = fields.get("sha256") {
            at.error(
                "nobody knows the digest of what is yet to be built",
                "leave sha256 out",
            );
        }
        return build_spec(&build).map(|spec| ImageSourceSpec::Build(Box::new(spec)));
    }
    if let Some(at) = fields.get("url") {
        let url = url(&at);
        if fields.get("sha256").is_none() {
            at.error(
                "a download needs the digest of what it is to bring",
                "add sha256: the site lists it, or `sha256sum` gives it for a file you trust",
            );
            return None;
        }
        return Some(ImageSourceSpec::Url {
            sha256: sha256()?.value,
            url: url?,
        });
    }
    if fields.get("path").is_none() && fields.get("kernel").is_none() {
        at.error(
            "nothing says where this image comes from",
            "add build, url, path or kernel",
        );
        return None;
    }
    if let (Some(initrd), None) = (fields.get("initrd"), fields.get("kernel")) {
        initrd.error(
            "an initrd needs a kernel",
            "add kernel, or leave initrd out",
        );
    }
    let path = |key: &str| fields.get(key).and_then(|at| file_path(&at));
    Some(ImageSourceSpec::Path(Box::new(PathSpec {
        disk: path("path"),
        kernel: path("kernel"),
        initrd: path("initrd"),
        sha256: sha256(),
    })))
}

/// Values in the order of the file: of two that do not go together, the later one is noted.
fn in_order<'a>(values: impl Iterator<Item = At<'a>>) -> Vec<At<'a>> {
    let mut values: Vec<_> = values.collect();
    values.sort_by_key(|at| (at.spot().span.line, at.spot().span.column));
    values
}

/// An address by HTTP. What is secret in it would end up in archives.
fn url(at: &At<'_>) -> Option<String> {
    const EXAMPLE: &str = "as in https://example.org/debian-12.qcow2";
    let text = at.text("https://example.org/debian-12.qcow2")?.value;
    let rest = text
        .strip_prefix("https://")
        .or_else(|| text.strip_prefix("http://"));
    let Some(rest) = rest else {
        let message = match text.split_once("://") {
            Some((scheme, _)) => format!("{scheme:?} is no way to download an image"),
            None => format!("{text:?} is no address"),
        };
        at.error(
            message,
            format!("http and https are, {EXAMPLE}; a file here goes by path"),
        );
        return None;
    };
    let host = rest.split(['/', '?', '#']).next().unwrap_or_default();
    if host.contains('@') {
        at.error(
            "a user or password in an address would be kept in archives",
            "take a place that asks for none, or download the file and use path",
        );
        return None;
    }
    if host.is_empty() || text.chars().any(|c| c.is_whitespace() || c.is_control()) {
        at.error(format!("{text:?} is no address"), EXAMPLE);
        return None;
    }
    Some(text.to_owned())
}

fn build_spec(at: &At<'_>) -> Option<BuildSpec> {
    let fields = at.fields(&BUILD)?;
    let ground = ground(&fields)?;
    let list = |key: &str, example: &str| {
        fields
            .get(key)
            .map(|at| super::items(&at, example, LIST_MAX))
            .unwrap_or_default()
    };
    let mut packages: Vec<String> = list("packages", "mariadb-server, sysbench")
        .iter()
        .filter_map(package)
        .collect();
    packages.sort_unstable();
    packages.dedup();
    let size = fields
        .get("size")
        .and_then(|at| size(&at, Bytes::mib(512), "3GiB"));
    let more_than_files: Vec<_> = ["packages", "run", "size"]
        .into_iter()
        .filter_map(|key| Some((key, fields.get(key)?.spot())))
        .collect();
    if let Ground::Micro { .. } = ground {
        for (key, _) in &more_than_files {
            if let Some(at) = fields.get(key) {
                at.error(
                    format!("a micro image has no {key}"),
                    "files go into it; for more, build a Debian image",
                );
            }
        }
    }
    Some(BuildSpec {
        ground,
        packages,
        files: list("files", "{from: files/motd, to: /etc/motd}")
            .iter()
            .filter_map(build_file)
            .collect(),
        run: list("run", "useradd bench")
            .iter()
            .filter_map(|at| command(at))
            .collect(),
        size,
        more_than_files,
    })
}

fn ground(fields: &Fields<'_>) -> Option<Ground> {
    let given = in_order(
        ["micro", "from", "suite"]
            .into_iter()
            .filter_map(|key| fields.get(key)),
    );
    if let [first, second, ..] = given.as_slice() {
        second.error_beside(
            "a recipe starts from one thing",
            "keep one of suite, micro and from; a micro image's suite goes inside: {micro: {suite: bookworm}}",
            first,
            "the other one",
        );
        return None;
    }
    if let Some(at) = fields.get("from") {
        return Some(Ground::Image(at.parse("base")?));
    }
    if let Some(at) = fields.get("micro") {
        let suite = at
            .fields(&MICRO)?
            .get("suite")
            .map_or(Some("bookworm".to_owned()), |at| suite(&at))?;
        return Some(Ground::Micro { suite });
    }
    let suite = fields.need("suite", "bookworm").and_then(|at| suite(&at))?;
    Some(Ground::Debian { suite })
}

fn build_file(at: &At<'_>) -> Option<BuildFileSpec> {
    let fields = at.fields(&BUILD_FILE)?;
    let to = fields.get("to").and_then(|at| guest_path(&at));
    let mode = fields.get("mode").map_or(Some(0o644), |at| file_mode(&at));
    let content = match (fields.get("from"), fields.get("template")) {
        (Some(from), Some(template)) => {
            template.error_beside(
                "a file is either copied or rendered",
                "keep from or template",
                &from,
                "the other one",
            );
            return None;
        }
        (None, None) => {
            at.error("nothing says what is in this file", "add from or template");
            return None;
        }
        (Some(from), None) => {
            if let Some(vars) = fields.get("vars") {
                vars.error(
                    "a file that is copied has no variables",
                    "leave vars out, or use template instead of from",
                );
            }
            BuildContentSpec::From(file_path(&from)?)
        }
        (None, Some(template)) => {
            let text = template.text("a.tera")?;
            BuildContentSpec::Template {
                template: Written {
                    value: text.value.to_owned(),
                    spot: text.spot,
                },
                vars: fields
                    .get("vars")
                    .map_or(Some(serde_json::Map::new()), |at| at.object())?,
            }
        }
    };
    Some(BuildFileSpec {
        content,
        to: to?,
        mode: mode?,
    })
}

/// A command for the shell.
fn command(at: &At<'_>) -> Option<String> {
    let text = at.text("useradd bench")?.value;
    if text.contains('\0') {
        at.error(
            "a command cannot hold a NUL character",
            "as in useradd bench",
        );
        return None;
    }
    Some(text.to_owned())
}

fn suite(at: &At<'_>) -> Option<String> {
    word(at, "bookworm", |c| {
        c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-'
    })
}

/// A Debian package name (Debian Policy 5.6.7), perhaps with `=VERSION` or `/RELEASE`.
pub(super) fn package(at: &At<'_>) -> Option<String> {
    let allowed = |c: char| c.is_ascii_alphanumeric() || "+-.=/:~".contains(c);
    word(at, "mariadb-server", allowed)
}
