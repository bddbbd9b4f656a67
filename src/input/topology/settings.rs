//! Settings of a guest's operating system as written.

use std::collections::BTreeMap;

use super::super::guest_path::guest_path;
use super::super::read::{At, Fields, Spot, Written};
use super::super::shape::{Form, GUEST_PATH, Key, Shape, Word, words};
use super::items;
use crate::model::{Bytes, GuestSettings, Limit, LimitRange, ServiceState, User};

/// Users and keys that one domain may have.
const USERS_MAX: usize = 1000;

/// Open files that a kernel lets a process have unless its sysctl `fs.nr_open` says more.
const NR_OPEN: u64 = 1 << 20;

/// Units that labrig needs to reach a guest, or to see that it is up.
const NEEDED: [&str; 5] = [
    "labrig-ready.service",
    "ssh.service",
    "sshd.service",
    "systemd-networkd.service",
    "systemd-networkd.socket",
];

/// The key `sysctl`.
pub(super) const SYSCTL: Key = Key::new(
    "sysctl",
    Form::Keyed(&Form::Scalar),
    "{net.core.somaxconn: 1024}",
    "Kernel parameters.",
);
/// The key `limits`.
pub(super) const LIMITS: Key = Key::new(
    "limits",
    Form::Map(&LIMIT),
    "{nofile: 32768}",
    "Resource limits of every session and service.",
);
/// The key `packages`.
pub(super) const PACKAGES: Key = Key::new(
    "packages",
    Form::List(&Form::Text),
    "[sysbench]",
    "Debian packages beside those of its image, which labrig builds.",
);
/// The key `services`.
pub(super) const SERVICES: Key = Key::new(
    "services",
    Form::Either(&[
        Form::Keyed(&Form::Words(words::<ServiceState>)),
        Form::List(&Form::Text),
    ]),
    "{cron: disabled}",
    "systemd units and what they are at boot; a list enables them.",
);
/// The key `users`.
pub(super) const USERS: Key = Key::new(
    "users",
    Form::List(&Form::Map(&USER)),
    "[{name: app}]",
    "Users beside those of its image.",
);
/// The key `ssh_keys`.
pub(super) const SSH_KEYS: Key = Key::new(
    "ssh_keys",
    Form::List(&Form::Text),
    "[ssh-ed25519 AAAA…]",
    "Public keys that root may log in with beside labrig's.",
);

/// The keys of a domain that set up its operating system.
const WORDS: [&str; 6] = [
    "sysctl", "limits", "packages", "services", "users", "ssh_keys",
];

const COUNT: Form = Form::Either(&[
    Form::Whole {
        least: 0,
        most: i32::MAX as u64,
    },
    Form::Words(|| vec!["unlimited"]),
    Form::Map(&RANGE),
]);
const SIZE: Form = Form::Either(&[
    super::super::shape::SIZE,
    Form::Words(|| vec!["unlimited"]),
    Form::Map(&RANGE),
]);

const RANGE: Shape = Shape::new(
    "A limit, and the largest one that a process may give itself.",
    &[
        Key::required("soft", Form::Any, "8192", "The limit."),
        Key::required("hard", Form::Any, "16384", "The largest limit."),
    ],
);

const LIMIT: Shape = Shape::new(
    "Resource limits, see getrlimit(2): one value for soft and hard, or {soft, hard}.",
    &[
        Key::new("as", SIZE, "4GiB", "Address space."),
        Key::new("core", SIZE, "unlimited", "Core file."),
        Key::new("data", SIZE, "4GiB", "Data segment."),
        Key::new("fsize", SIZE, "unlimited", "File written."),
        Key::new("memlock", SIZE, "64MiB", "Locked memory."),
        Key::new("msgqueue", SIZE, "819200B", "POSIX message queues."),
        Key::new("nofile", COUNT, "32768", "Open files."),
        Key::new("nproc", COUNT, "4096", "Processes of a user."),
        Key::new("rtprio", COUNT, "50", "Real-time priority."),
        Key::new("sigpending", COUNT, "4096", "Signals that wait."),
        Key::new("stack", SIZE, "8MiB", "Stack."),
    ],
);

const USER: Shape = Shape::new(
    "A user of a guest.",
    &[
        Key::required("name", Form::Text, "app", "Login name."),
        Key::new(
            "groups",
            Form::List(&Form::Text),
            "[adm]",
            "Groups beside its own; made where they are missing.",
        ),
        Key::new("shell", GUEST_PATH, "/bin/bash", "Its shell."),
        Key::new(
            "ssh_keys",
            Form::List(&Form::Text),
            "[ssh-ed25519 AAAA…]",
            "Public keys it may log in with.",
        ),
        Key::new(
            "system",
            Form::Truth,
            "true",
            "Whether it is one for a service, without a home directory.",
        ),
        Key::new(
            "password",
            Form::Text,
            "\"$6$…\"",
            "Its password, hashed as `openssl passwd -6` does; none when left out.",
        ),
    ],
);

impl Word for ServiceState {
    const WORDS: &'static [(&'static str, Self)] = &[
        ("enabled", Self::Enabled),
        ("disabled", Self::Disabled),
        ("masked", Self::Masked),
    ];
}

/// Settings as written.
#[derive(Default)]
pub(in super::super) struct SettingsSpec {
    pub settings: GuestSettings,
    /// Packages beside those of the image; sorted, without repeats.
    pub packages: Vec<String>,
    /// Where the keys that are there are written, by their words; single limits as `limits.NAME`.
    pub spots: BTreeMap<String, Spot>,
}

/// Reads the settings among the keys of a domain.
pub(super) fn settings(
    fields: &Fields<'_>,
    package: fn(&At<'_>) -> Option<String>,
) -> SettingsSpec {
    let mut spec = SettingsSpec::default();
    for word in WORDS {
        if let Some(at) = fields.get(word) {
            spec.spots.insert(word.to_owned(), at.spot());
        }
    }
    let list = |key: &str, example: &str| {
        let at = fields.get(key);
        at.map(|at| items(&at, example, USERS_MAX))
            .unwrap_or_default()
    };
    spec.packages = list("packages", "sysbench")
        .iter()
        .filter_map(package)
        .collect();
    spec.packages.sort_unstable();
    spec.packages.dedup();
    if let Some(at) = fields.get("sysctl") {
        spec.settings.sysctl = sysctl(&at);
    }
    if let Some(at) = fields.get("limits") {
        limits(&at, &mut spec);
    }
    if let Some(at) = fields.get("services") {
        spec.settings.services = services(&at);
    }
    let mut names: BTreeMap<String, Spot> = BTreeMap::new();
    for at in list("users", "{name: app}") {
        if let Some(user) = user(&at) {
            if let Some(other) = names.insert(user.name.clone(), at.spot()) {
                let message = format!("user {:?} is here twice", user.name);
                at.conflict(message, "keep one of them", &other);
            }
            spec.settings.users.push(user);
        }
    }
    spec.settings.ssh_keys = list("ssh_keys", "ssh-ed25519 AAAA…")
        .iter()
        .filter_map(ssh_key)
        .collect();
    spec
}

fn sysctl(at: &At<'_>) -> BTreeMap<String, String> {
    let mut found: BTreeMap<String, String> = BTreeMap::new();
    let mut paths: BTreeMap<String, (String, Spot)> = BTreeMap::new();
    for (key, at) in at.entries("net.core.somaxconn: 1024") {
        let key = key.value;
        let allowed = |c: char| c.is_ascii_alphanumeric() || "._-/".contains(c);
        let path = GuestSettings::sysctl_path(key);
        let parts = || path.split('/');
        if !key.chars().all(allowed)
            || parts().count() < 2
            || parts().any(|p| matches!(p, "" | "." | ".."))
        {
            at.error(
                format!("{key:?} is no kernel parameter"),
                "as in net.core.somaxconn",
            );
            continue;
        }
        let Some(value) = at.scalar("1024") else {
            continue;
        };
        let text = match &value {
            serde_json::Value::String(text) => text.clone(),
            serde_json::Value::Bool(_) => {
                at.error("the kernel wants a number here", "write 1 or 0");
                continue;
            }
            other => other.to_string(),
        };
        if text.contains('\'') || text.chars().any(|c| c.is_control() && c != '\t') {
            at.error(
                "a kernel parameter is one line without quotes",
                "as in \"4096 87380 6291456\"",
            );
            continue;
        }
        if let Some((other, spot)) = paths.insert(path, (key.to_owned(), at.spot())) {
            let message = format!("{key} and {other} are the same kernel parameter");
            at.conflict(message, "keep one of them", &spot);
            continue;
        }
        let parts: Vec<_> = text.split_whitespace().collect();
        found.insert(key.to_owned(), parts.join(" "));
    }
    found
}

fn limits(at: &At<'_>, spec: &mut SettingsSpec) {
    let Some(fields) = at.fields(&LIMIT) else {
        return;
    };
    for (word, limit) in Limit::ALL {
        let Some(at) = fields.get(word) else { continue };
        let range = if at.is_map() {
            at.fields(&RANGE).and_then(|fields| {
                let (soft, hard) = (fields.get("soft")?, fields.get("hard")?);
                Some((limit_value(&soft, limit)?, limit_value(&hard, limit)?))
            })
        } else {
            limit_value(&at, limit).map(|value| (value, value))
        };
        let Some((soft, hard)) = range else { continue };
        if hard.is_some_and(|hard| soft.is_none_or(|soft| soft > hard)) {
            at.error(
                "the soft limit is above the hard one",
                "raise hard, or lower soft",
            );
            continue;
        }
        if limit == Limit::Nofile && !has_room_for(hard, &spec.settings) {
            at.error(
                format!("a kernel lets no process have more than {NR_OPEN} open files"),
                "raise sysctl fs.nr_open as well, or lower the limit",
            );
            continue;
        }
        spec.spots.insert(format!("limits.{word}"), at.spot());
        spec.settings
            .limits
            .insert(limit, LimitRange { soft, hard });
    }
}

/// Whether the kernel grants so many open files. It is asked before the limits are set: else nobody
/// could log in any more.
fn has_room_for(files: Option<u64>, settings: &GuestSettings) -> bool {
    let most = settings.sysctl.get("fs.nr_open");
    let most = most.and_then(|most| most.parse().ok()).unwrap_or(NR_OPEN);
    files.is_some_and(|files| files <= most)
}

/// A limit's value; none for unlimited.
#[allow(
    clippy::option_option,
    reason = "the outer one: whether it was understood"
)]
fn limit_value(at: &At<'_>, limit: Limit) -> Option<Option<u64>> {
    if at.is_text("unlimited") {
        return Some(None);
    }
    if !limit.is_size() {
        return at.integer(0, i32::MAX as u64).map(Some);
    }
    let size: Written<Bytes> = at.parse("64MiB")?;
    if !size.value.0.is_multiple_of(limit.unit()) {
        at.error(
            format!("{} is no whole number of KiB", size.value),
            "as in 64MiB",
        );
        return None;
    }
    Some(Some(size.value.0))
}

fn services(at: &At<'_>) -> BTreeMap<String, ServiceState> {
    let mut found: BTreeMap<String, (ServiceState, Spot)> = BTreeMap::new();
    let mut add = |at: &At<'_>, name: &str, state: ServiceState| {
        let Some(unit) = unit(at, name) else { return };
        if NEEDED.contains(&unit.as_str()) && state != ServiceState::Enabled {
            at.error(
                format!("labrig needs {unit} to reach the domain"),
                "leave it out",
            );
        } else if let Some((_, other)) = found.insert(unit.clone(), (state, at.spot())) {
            at.conflict(format!("{unit} is here twice"), "keep one of them", &other);
        }
    };
    if at.is_list() {
        for at in at.items("cron") {
            if let Some(text) = at.text("cron") {
                add(&at, text.value, ServiceState::Enabled);
            }
        }
    } else {
        for (name, at) in at.entries("cron: disabled") {
            if let Some(state) = at.word() {
                add(&at, name.value, state);
            }
        }
    }
    let states = found.into_iter();
    states.map(|(unit, (state, _))| (unit, state)).collect()
}

/// The whole name of a unit, see systemd.unit(5).
fn unit(at: &At<'_>, name: &str) -> Option<String> {
    const SUFFIXES: [&str; 6] = [
        ".service", ".socket", ".timer", ".target", ".mount", ".path",
    ];
    let allowed = |c: char| c.is_ascii_alphanumeric() || ":-_.\\@".contains(c);
    let name_is_good = name.starts_with(|c: char| c.is_ascii_alphanumeric())
        && name.len() < 250
        && name.chars().all(allowed);
    if !name_is_good {
        at.error(
            format!("{name:?} is no name of a unit"),
            "as in cron.service",
        );
        return None;
    }
    Some(match SUFFIXES.iter().any(|suffix| name.ends_with(suffix)) {
        true => name.to_owned(),
        false => format!("{name}.service"),
    })
}

fn user(at: &At<'_>) -> Option<User> {
    let fields = at.fields(&USER)?;
    let name_at = fields.get("name")?;
    let name = login(&name_at)?;
    if name == "root" {
        name_at.error(
            "root is there in every guest",
            "ssh_keys of the domain are keys of root",
        );
        return None;
    }
    let list = |key: &str, example: &str| {
        let at = fields.get(key);
        at.map(|at| items(&at, example, USERS_MAX))
            .unwrap_or_default()
    };
    let system = fields
        .get("system")
        .map_or(Some(false), |at| at.boolean())?;
    let shell = match fields.get("shell") {
        Some(at) => shell(&at)?,
        None if system => "/usr/sbin/nologin".to_owned(),
        None => "/bin/bash".to_owned(),
    };
    Some(User {
        name,
        system,
        shell,
        groups: list("groups", "adm").iter().filter_map(login).collect(),
        ssh_keys: list("ssh_keys", "ssh-ed25519 AAAA…")
            .iter()
            .filter_map(ssh_key)
            .collect(),
        password: match fields.get("password") {
            Some(at) => Some(password(&at)?),
            None => None,
        },
    })
}

/// A user's or group's name, as useradd(8) takes it.
fn login(at: &At<'_>) -> Option<String> {
    let name = at.text("app")?.value;
    let allowed = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_' || c == '-';
    let good = name.len() <= 32
        && name.starts_with(|c: char| c.is_ascii_lowercase() || c == '_')
        && name.chars().all(allowed);
    if !good {
        at.error(
            format!("{name:?} is no name for a user or group"),
            "at most 32 of a-z, 0-9, _ and -, a letter first, as in app",
        );
        return None;
    }
    Some(name.to_owned())
}

fn shell(at: &At<'_>) -> Option<String> {
    let path = guest_path(at)?.value;
    if path.contains([':', ' ', '\'']) {
        at.error(format!("{path:?} is no shell"), "as in /bin/bash");
        return None;
    }
    Some(path)
}

/// A hash as crypt(5) describes it.
fn password(at: &At<'_>) -> Option<String> {
    let text = at.text("\"$6$…\"")?.value;
    let method = text.strip_prefix('$').and_then(|rest| rest.split_once('$'));
    let known = ["1", "2a", "2b", "2y", "5", "6", "7", "gy", "y"];
    let allowed = |c: char| c.is_ascii_alphanumeric() || "./$=,".contains(c);
    let good = method.is_some_and(|(method, rest)| known.contains(&method) && rest.len() > 8)
        && text.chars().all(allowed);
    if !good {
        // The text itself may be somebody's password.
        at.error(
            "this is no hashed password",
            "`openssl passwd -6` asks for a password and prints its hash",
        );
        return None;
    }
    Some(text.to_owned())
}

fn ssh_key(at: &At<'_>) -> Option<String> {
    let text = at.text("ssh-ed25519 AAAA…")?.value.trim();
    if text.contains("PRIVATE KEY") {
        at.error(
            "this is a private key",
            "give the public one, from the file that ends in .pub",
        );
        return None;
    }
    if let Err(e) = text.parse::<ssh_key::authorized_keys::Entry>() {
        at.error(
            format!("this is no public key: {e}"),
            "copy the line of a file that ends in .pub",
        );
        return None;
    }
    Some(text.to_owned())
}
