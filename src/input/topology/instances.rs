//! Database instances as written.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use super::super::read::{At, Fields, Spot, Written};
use super::super::shape::{Form, GUEST_PATH, Key as ShapeKey, Shape, Word, words};
use crate::databases::{Key, Server, server};
use crate::model::{DatabaseEngine, Instance, Name};

/// The longest path of a Unix socket, without its NUL: `sun_path` of unix(7).
const SOCKET_MAX: usize = 107;
/// The longest path of anything else (PATH_MAX), without its NUL.
const PATH_MAX: usize = 4095;
/// The port of the SSH server, by which labrig reaches the domain.
const SSH_PORT: u16 = 22;
/// Instances that one domain may have.
const INSTANCES_MAX: usize = 100;

/// A setting: one value, or several where the engine takes an option several times.
const SETTING: Form = Form::Either(&[Form::Scalar, Form::List(&Form::Scalar)]);

/// What an instance is.
pub(super) const INSTANCE: Shape = Shape::merged(
    "A database server on a domain.",
    &[
        ShapeKey::required(
            "engine",
            Form::Words(words::<DatabaseEngine>),
            "mariadb",
            "Which server runs.",
        ),
        ShapeKey::new(
            "port",
            Form::Whole {
                least: 1,
                most: 65535,
            },
            "3306",
            "TCP port; the engine's usual one when left out.",
        ),
        ShapeKey::new(
            "socket",
            GUEST_PATH,
            "/run/mysqld/mysqld.sock",
            "Unix socket; the engine's usual one when left out.",
        ),
        ShapeKey::new(
            "datadir",
            GUEST_PATH,
            "/var/lib/mysql",
            "Directory of the data; the engine's usual one when left out.",
        ),
        ShapeKey::new(
            "logdir",
            GUEST_PATH,
            "/logs",
            "Directory of the transaction logs; inside the data when left out.",
        ),
        ShapeKey::new(
            "pidfile",
            GUEST_PATH,
            "/run/mysqld/main.pid",
            "File for the process id; one with the instance's name when left out.",
        ),
        ShapeKey::new(
            "settings",
            Form::Keyed(&SETTING),
            "{max_connections: 500}",
            "Options of the engine by name. Texts are templates.",
        ),
        ShapeKey::new(
            "template",
            Form::Text,
            "crm/my.cnf.tera",
            "Template of its configuration, relative to the template directory; labrig's own when left out.",
        ),
        ShapeKey::new(
            "vars",
            Form::Keyed(&Form::Any),
            "{pool: 64M}",
            "Values the template sees as `vars`, beside the topology's.",
        ),
    ],
);

impl Word for DatabaseEngine {
    const WORDS: &'static [(&'static str, Self)] = &Self::ALL;
}

/// An instance, with its defaults, and where its parts are written.
pub(in super::super) struct InstanceSpec {
    pub instance: Instance,
    pub spots: InstanceSpots,
}

/// Where the parts of an instance are written.
pub(in super::super) struct InstanceSpots {
    /// Its name.
    pub name: Spot,
    /// Keys that are there.
    pub keys: BTreeMap<Key, Spot>,
    /// Settings by name.
    pub settings: BTreeMap<String, Spot>,
    pub template: Option<Spot>,
}

/// Reads the instances of a domain.
pub(super) fn instances(fields: &Fields<'_>) -> Vec<InstanceSpec> {
    let Some(at) = fields.get("databases") else {
        return Vec::new();
    };
    let named = at.named("main: {engine: mariadb}");
    if named.len() > INSTANCES_MAX {
        at.error(
            format!("{} instances are too many", named.len()),
            format!("at most {INSTANCES_MAX} go on one domain"),
        );
        return Vec::new();
    }
    let read = named.into_iter();
    read.filter_map(|(name, at)| instance(name, &at)).collect()
}

/// Reads an instance.
fn instance(name: Written<Name>, at: &At<'_>) -> Option<InstanceSpec> {
    let fields = at.fields(&INSTANCE)?;
    let engine: DatabaseEngine = fields.get("engine")?.word()?;
    let server = server(engine);
    let mut keys = BTreeMap::new();
    let port_at = fields.get("port");
    let port = match port_at.as_ref() {
        None => server.port(),
        Some(at) => {
            keys.insert(Key::Port, at.spot());
            u16::try_from(at.whole()?).ok()?
        }
    };
    if port == SSH_PORT {
        port_at.as_ref().unwrap_or(at).error(
            "port 22 is that of the SSH server, by which labrig reaches the domain",
            format!("{engine} usually has {}", server.port()),
        );
        return None;
    }
    let mut path = |key: Key, default: Option<String>| match fields.get(key.word()) {
        None => Some(default),
        Some(at) => {
            keys.insert(key, at.spot());
            place_of(&at, key).map(Some)
        }
    };
    let datadir = path(Key::Datadir, Some(server.datadir().to_owned()))??;
    let socket = path(Key::Socket, Some(server.socket(port)))??;
    let pidfile = path(Key::Pidfile, Some(server.pidfile(&name.value, &datadir)))??;
    let logdir = path(Key::Logdir, None)?;
    check_paths(&fields, (engine, server), &socket, port);
    let (settings, setting_spots) = settings(&fields, (engine, server));
    let template = fields.get("template").map(|at| {
        let text = at.text("crm/my.cnf.tera")?;
        Some((text.value.to_owned(), text.spot))
    });
    let (template, template_spot) = match template {
        Some(found) => {
            let (text, spot) = found?;
            (Some(text), Some(spot))
        }
        None => (None, None),
    };
    let vars = fields
        .get("vars")
        .map_or(Some(Map::new()), |at| at.object())?;
    Some(InstanceSpec {
        instance: Instance {
            name: name.value,
            engine,
            port,
            socket,
            datadir,
            logdir,
            pidfile,
            settings,
            template,
            vars,
        },
        spots: InstanceSpots {
            name: name.spot,
            keys,
            settings: setting_spots,
            template: template_spot,
        },
    })
}

/// A path that a server's configuration can hold, without a slash at its end.
fn place_of(at: &At<'_>, key: Key) -> Option<String> {
    let example = match key {
        Key::Socket => "/tmp/mysql.sock",
        Key::Pidfile => "/run/mysqld/main.pid",
        _ => "/srv/data",
    };
    let text = at.text(example)?.value;
    let path = match text.trim_end_matches('/') {
        "" => text,
        path => path,
    };
    let longest = if key == Key::Socket {
        SOCKET_MAX
    } else {
        PATH_MAX
    };
    let taken = |c: char| c.is_ascii_alphanumeric() || "/._-+@%:,=".contains(c);
    let of_kernel = |top: &str| path == top || path.starts_with(&format!("{top}/"));
    let wrong = if !path.starts_with('/') {
        "is not absolute".to_owned()
    } else if path == "/" {
        "is the root of the whole system".to_owned()
    } else if path[1..]
        .split('/')
        .any(|part| matches!(part, "" | "." | ".."))
    {
        "holds empty, . or .. steps".to_owned()
    } else if let Some(c) = path.chars().find(|c| !taken(*c)) {
        format!("holds {c:?}, which not every configuration takes in a path")
    } else if ["/proc", "/sys", "/etc/labrig"]
        .iter()
        .any(|top| of_kernel(top))
    {
        "is not for servers to write to".to_owned()
    } else if path.len() > longest {
        format!("is longer than {longest} characters")
    } else {
        return Some(path.to_owned());
    };
    at.error(format!("{path:?} {wrong}"), format!("as in {example}"));
    None
}

fn check_paths(
    fields: &Fields<'_>,
    (engine, server): (DatabaseEngine, &dyn Server),
    socket: &str,
    port: u16,
) {
    if let Some(at) = fields.get("socket")
        && let Some(wrong) = server.check_socket(socket, port)
    {
        let wanted = server.socket(port);
        at.error(wrong, format!("as in {wanted}, or leave it out"));
    }
    if let Some(at) = fields.get("logdir")
        && !server.has_logdir()
    {
        let message = format!("{engine} has no transaction logs apart from its data");
        at.error(message, "leave logdir out");
    }
}

/// The settings with their spots. What is wrong is noted, and left out.
fn settings(
    fields: &Fields<'_>,
    (engine, server): (DatabaseEngine, &dyn Server),
) -> (Map<String, Value>, BTreeMap<String, Spot>) {
    let (mut settings, mut spots) = (Map::new(), BTreeMap::new());
    let entries = fields
        .get("settings")
        .map(|at| at.entries("max_connections: 500"))
        .unwrap_or_default();
    for (name, at) in entries {
        let word = |c: char| c.is_ascii_alphanumeric() || "_.-".contains(c);
        if !name.value.starts_with(|c: char| c.is_ascii_alphabetic())
            || !name.value.chars().all(word)
        {
            let message = format!("{:?} is no name of an option", name.value);
            at.error(message, "as in max_connections");
            continue;
        }
        let value = if !at.is_list() {
            one_value(&at)
        } else if server.repeats() {
            let items = at.items("a, b");
            let values: Option<Vec<Value>> = items.iter().map(one_value).collect();
            values.map(Value::Array)
        } else {
            at.error(
                format!("{engine} takes an option once only"),
                "write one text, as in 'a, b'",
            );
            None
        };
        if let Some(value) = value {
            settings.insert(name.value.to_owned(), value);
            spots.insert(name.value.to_owned(), at.spot());
        }
    }
    (settings, spots)
}

fn one_value(at: &At<'_>) -> Option<Value> {
    let value = at.scalar("500")?;
    let bad = value
        .as_str()
        .is_some_and(|text| text.chars().any(char::is_control));
    if bad {
        at.error(
            "an option's value is one line",
            "leave line breaks and tabs out",
        );
        return None;
    }
    Some(value)
}
