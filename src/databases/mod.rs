//! What labrig knows of each database server: its defaults, how it is configured, and what two of
//! them on one machine cannot share. Pure; one file a server.

mod conflicts;
mod mariadb;
mod mysql;
mod openldap;
mod option_file;
mod postgresql;
#[cfg(test)]
mod tests;

use serde_json::Value;

pub use conflicts::{Claim, Clash, Origin, Resource, claims, clashes};

use crate::model::{DatabaseEngine, Instance, Name};

/// Directory of the instances' configurations.
pub const CONFIG_DIRECTORY: &str = "/etc/labrig/instances";

/// The keys of an instance that say what it takes of its machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Key {
    /// `port`.
    Port,
    /// `socket`.
    Socket,
    /// `datadir`.
    Datadir,
    /// `logdir`.
    Logdir,
    /// `pidfile`.
    Pidfile,
}

/// An option as a server finds it in its configuration.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Setting {
    /// The section it is in, where the syntax has sections.
    pub section: String,
    /// Its name in the one spelling that labrig compares: lower case, `_` for `-` where the server
    /// takes both.
    pub name: String,
    /// Its value, without quotes.
    pub value: String,
}

/// A TCP port that a server takes beside that of the key `port`, or instead of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Listener {
    /// The option that sets it; none: the key `port`.
    pub option: Option<&'static str>,
    /// Whether it is what the server takes when the option is not there.
    pub by_default: bool,
    /// The port.
    pub port: u16,
    /// Addresses it listens on; empty: on all.
    pub addresses: Vec<String>,
}

/// A kind of database server.
pub trait Server: Sync {
    /// TCP port when none is said.
    fn port(&self) -> u16;

    /// Unix socket when none is said.
    fn socket(&self, port: u16) -> String;

    /// Directory of the data when none is said.
    fn datadir(&self) -> &'static str;

    /// File for the process id when none is said; it differs between instances.
    fn pidfile(&self, instance: &Name, datadir: &str) -> String;

    /// Whether transaction logs can have a directory of their own.
    fn has_logdir(&self) -> bool;

    /// What is wrong with a socket, if anything is.
    fn check_socket(&self, _socket: &str, _port: u16) -> Option<String> {
        None
    }

    /// Ending of the configuration's file name.
    fn extension(&self) -> &'static str;

    /// The template of its configuration that labrig brings along.
    fn template(&self) -> &'static str;

    /// One option as a line of its configuration. Values hold no control characters.
    fn line(&self, name: &str, value: &Value) -> String;

    /// Whether an option may be given several times.
    fn repeats(&self) -> bool {
        true
    }

    /// The options in a configuration, in order; of several with one name the last counts.
    fn read(&self, config: &str) -> Vec<Setting>;

    /// Options that say the same as a key, as [`Setting::name`] spells them.
    fn options_of(&self, key: Key) -> &'static [&'static str];

    /// Whether the server itself reads a section; other programs read the others.
    fn reads(&self, _section: &str) -> bool {
        true
    }

    /// Whether a section tells clients how to reach the server.
    fn tells_clients(&self, _section: &str) -> bool {
        false
    }

    /// The TCP ports it listens on, that of `port` first. `setting` looks up an option of its
    /// configuration.
    fn listeners(&self, port: u16, setting: &dyn Fn(&str) -> Option<String>) -> Vec<Listener>;

    /// Options beside the keys' that name a Unix socket or a file of the server's own.
    fn other_paths(&self) -> &'static [&'static str] {
        &[]
    }
}

/// What is known of an engine.
pub fn server(engine: DatabaseEngine) -> &'static dyn Server {
    match engine {
        DatabaseEngine::Mariadb => &mariadb::Mariadb,
        DatabaseEngine::Mysql => &mysql::Mysql,
        DatabaseEngine::Postgresql => &postgresql::Postgresql,
        DatabaseEngine::Openldap => &openldap::Openldap,
    }
}

/// Where the configuration of an instance is.
pub fn config_path(instance: &Instance) -> String {
    let extension = server(instance.engine).extension();
    format!("{CONFIG_DIRECTORY}/{}.{extension}", instance.name)
}

impl Key {
    /// Every key.
    pub const ALL: [Self; 5] = [
        Self::Port,
        Self::Socket,
        Self::Datadir,
        Self::Logdir,
        Self::Pidfile,
    ];

    /// The word for it in a topology.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Port => "port",
            Self::Socket => "socket",
            Self::Datadir => "datadir",
            Self::Logdir => "logdir",
            Self::Pidfile => "pidfile",
        }
    }

    /// What an instance says for it.
    pub fn of(self, instance: &Instance) -> Option<String> {
        match self {
            Self::Port => Some(instance.port.to_string()),
            Self::Socket => Some(instance.socket.clone()),
            Self::Datadir => Some(instance.datadir.clone()),
            Self::Logdir => instance.logdir.clone(),
            Self::Pidfile => Some(instance.pidfile.clone()),
        }
    }
}

/// An option of a configuration that contradicts a key of its instance.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Contradiction {
    /// The key.
    pub key: Key,
    /// What the key says.
    pub said: String,
    /// What the configuration says instead.
    pub setting: Setting,
}

/// Finds options that say something else than the keys of their instance, those that other programs
/// read (a `[client]` section) included.
pub fn contradictions(instance: &Instance, settings: &[Setting]) -> Vec<Contradiction> {
    let server = server(instance.engine);
    let mut found = Vec::new();
    for key in Key::ALL {
        // Where logs are inside the data, an option may well say so.
        let said = key.of(instance).unwrap_or_else(|| instance.datadir.clone());
        for setting in settings {
            let counts = server.reads(&setting.section) || server.tells_clients(&setting.section);
            if counts
                && server.options_of(key).contains(&setting.name.as_str())
                && trimmed(&setting.value) != trimmed(&said)
            {
                found.push(Contradiction {
                    key,
                    said: said.clone(),
                    setting: setting.clone(),
                });
            }
        }
    }
    found
}

/// A path without the slash at its end.
fn trimmed(path: &str) -> &str {
    match path.trim_end_matches('/') {
        "" => path,
        path => path,
    }
}

/// A plain value as text; truth values in the words given.
fn plain(value: &Value, truth: [&str; 2]) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Bool(value) => truth[usize::from(*value)].to_owned(),
        other => other.to_string(),
    }
}
