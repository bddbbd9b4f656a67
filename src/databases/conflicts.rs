//! What servers on one machine cannot share: ports, sockets, files, directories.

use std::collections::HashMap;
use std::path::Path;

use super::{Key, Setting, server};
use crate::model::Instance;

/// Something that one instance alone can have on its machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Claim {
    /// Who takes it: a number of the caller's.
    pub owner: usize,
    /// What of it says so.
    pub origin: Origin,
    /// What is taken.
    pub resource: Resource,
}

/// What makes a claim.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Origin {
    /// A key of the instance, or its default.
    Key(Key),
    /// An option of its configuration.
    Option(String),
    /// What the server takes because this option is not there.
    Absent(String),
    /// A file that is rendered into the domain.
    File,
}

/// What is taken.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Resource {
    /// A TCP port on some addresses; on all when there are none.
    Port(u16, Vec<String>),
    /// A file or socket.
    File(String),
    /// A directory with all below it.
    Directory(String),
}

/// Two claims that exclude each other, by their position in the list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Clash {
    /// The one that comes first in the list.
    pub first: usize,
    /// The other one.
    pub second: usize,
}

/// All that an instance takes, with `settings` as its configuration has them.
pub fn claims(owner: usize, instance: &Instance, settings: &[Setting]) -> Vec<Claim> {
    let server = server(instance.engine);
    let setting = |name: &str| {
        let own = settings.iter().rev().filter(|s| server.reads(&s.section));
        own.filter(|s| s.name == name)
            .map(|s| s.value.clone())
            .next()
    };
    let claim = |origin, resource| Claim {
        owner,
        origin,
        resource,
    };
    let mut claims: Vec<_> = server
        .listeners(instance.port, &setting)
        .into_iter()
        .map(|listener| {
            let origin = match listener.option {
                None => Origin::Key(Key::Port),
                Some(option) if listener.by_default => Origin::Absent(option.to_owned()),
                Some(option) => Origin::Option(option.to_owned()),
            };
            let addresses = listener.addresses.iter().flat_map(|a| by_number(a));
            claim(origin, Resource::Port(listener.port, addresses.collect()))
        })
        .collect();
    for key in [Key::Socket, Key::Datadir, Key::Logdir, Key::Pidfile] {
        let path = key.of(instance).map(|path| one_name(&path));
        claims.extend(path.map(|path| {
            let resource = match key {
                Key::Datadir | Key::Logdir => Resource::Directory(path),
                _ => Resource::File(path),
            };
            claim(Origin::Key(key), resource)
        }));
    }
    let others = server.other_paths().iter().filter_map(|&name| {
        let path = setting(name).filter(|path| path.starts_with('/'))?;
        Some(claim(
            Origin::Option(name.to_owned()),
            Resource::File(one_name(&path)),
        ))
    });
    claims.extend(others);
    // What is in its own directories is taken with them.
    let directories: Vec<_> = claims
        .iter()
        .filter_map(|claim| match &claim.resource {
            Resource::Directory(path) => Some(path.clone()),
            _ => None,
        })
        .collect();
    claims.retain(|claim| match &claim.resource {
        Resource::File(file) => !directories.iter().any(|d| Path::new(file).starts_with(d)),
        _ => true,
    });
    claims
}

/// `/var/run` is `/run` on every system that labrig knows.
fn one_name(path: &str) -> String {
    let path = super::trimmed(path);
    match path.strip_prefix("/var/run/") {
        Some(rest) => format!("/run/{rest}"),
        None => path.to_owned(),
    }
}

fn by_number(address: &str) -> Vec<String> {
    match address {
        "localhost" => vec!["127.0.0.1".to_owned(), "::1".to_owned()],
        other => vec![other.to_owned()],
    }
}

/// Finds claims on one machine that exclude each other. Each claim is told of once: with the first
/// one that it meets.
pub fn clashes(claims: &[Claim]) -> Vec<Clash> {
    let mut found = port_clashes(claims);
    found.extend(path_clashes(claims));
    found.sort_by_key(|clash| (clash.second, clash.first));
    found
}

fn port_clashes(claims: &[Claim]) -> Vec<Clash> {
    let mut by_port: HashMap<u16, Vec<usize>> = HashMap::new();
    let mut found = Vec::new();
    for (second, claim) in claims.iter().enumerate() {
        let Resource::Port(port, addresses) = &claim.resource else {
            continue;
        };
        let earlier = by_port.entry(*port).or_default();
        let meets = |&&first: &&usize| match &claims[first].resource {
            Resource::Port(_, others) => {
                others.is_empty()
                    || addresses.is_empty()
                    || others.iter().any(|address| addresses.contains(address))
            }
            _ => false,
        };
        found.extend(
            earlier
                .iter()
                .find(meets)
                .map(|&first| Clash { first, second }),
        );
        earlier.push(second);
    }
    found
}

fn path_clashes(claims: &[Claim]) -> Vec<Clash> {
    let path = |i: usize| match &claims[i].resource {
        Resource::File(path) | Resource::Directory(path) => Path::new(path),
        Resource::Port(..) => Path::new(""),
    };
    let mut order: Vec<usize> = (0..claims.len())
        .filter(|&i| !matches!(claims[i].resource, Resource::Port(..)))
        .collect();
    // Paths are ordered by their steps: what is below a path follows it at once.
    order.sort_by(|&a, &b| path(a).cmp(path(b)).then(a.cmp(&b)));
    let mut above: Vec<usize> = Vec::new();
    let mut found = Vec::new();
    for i in order {
        while above
            .last()
            .is_some_and(|&last| !path(i).starts_with(path(last)))
        {
            above.pop();
        }
        let met = above
            .iter()
            .rev()
            .find(|&&other| excludes(&claims[other], &claims[i]));
        found.extend(met.map(|&other| Clash {
            first: other.min(i),
            second: other.max(i),
        }));
        above.push(i);
    }
    found
}

/// Whether a path excludes one that is the same or below.
fn excludes(above: &Claim, below: &Claim) -> bool {
    let (Resource::File(a) | Resource::Directory(a), Resource::File(b) | Resource::Directory(b)) =
        (&above.resource, &below.resource)
    else {
        return false;
    };
    match (above.owner == below.owner, &above.resource, &below.resource) {
        (false, ..) => !(above.origin == Origin::File && below.origin == Origin::File),
        // A server may keep its logs with its data.
        (true, Resource::Directory(_), Resource::Directory(_)) => a != b,
        (true, ..) => true,
    }
}
