//! PostgreSQL.

use serde_json::Value;

use super::{Key, Listener, Server, Setting, plain};
use crate::model::Name;

/// PostgreSQL server.
pub(super) struct Postgresql;

impl Server for Postgresql {
    fn port(&self) -> u16 {
        5432
    }

    fn socket(&self, port: u16) -> String {
        format!("/run/postgresql/{}", socket_name(port))
    }

    fn datadir(&self) -> &'static str {
        "/var/lib/postgresql/data"
    }

    fn pidfile(&self, _instance: &Name, datadir: &str) -> String {
        // The server always writes this one.
        format!("{datadir}/postmaster.pid")
    }

    /// The directory is given to initdb, as `--waldir`.
    fn has_logdir(&self) -> bool {
        true
    }

    fn check_socket(&self, socket: &str, port: u16) -> Option<String> {
        let wanted = socket_name(port);
        let is_it = socket.rsplit('/').next() == Some(&wanted);
        (!is_it).then(|| format!("postgresql names its socket after its port: DIRECTORY/{wanted}"))
    }

    fn extension(&self) -> &'static str {
        "conf"
    }

    fn template(&self) -> &'static str {
        include_str!("../../templates/instances/postgresql.conf.tera")
    }

    /// <https://www.postgresql.org/docs/15/config-setting.html>
    fn line(&self, name: &str, value: &Value) -> String {
        match value {
            Value::Number(number) => format!("{name} = {number}"),
            value => {
                let text = plain(value, ["off", "on"]);
                let text = text.replace('\\', "\\\\").replace('\'', "''");
                format!("{name} = '{text}'")
            }
        }
    }

    fn repeats(&self) -> bool {
        false
    }

    fn read(&self, config: &str) -> Vec<Setting> {
        let lines = config.lines().map(str::trim);
        lines
            .filter(|line| !line.is_empty() && !line.starts_with('#'))
            .map(|line| {
                // The sign between name and value may be left out.
                let end = line.find(|c: char| c == '=' || c.is_whitespace());
                let (name, value) = line.split_at(end.unwrap_or(line.len()));
                let value = value.trim_start().trim_start_matches('=').trim_start();
                Setting {
                    section: String::new(),
                    name: name.to_lowercase(),
                    value: unquoted(value),
                }
            })
            .collect()
    }

    fn options_of(&self, key: Key) -> &'static [&'static str] {
        match key {
            Key::Port => &["port"],
            Key::Datadir => &["data_directory"],
            // unix_socket_directories names a directory, initdb takes logdir, and the file beside
            // postmaster.pid is one more.
            Key::Socket | Key::Logdir | Key::Pidfile => &[],
        }
    }

    fn listeners(&self, port: u16, setting: &dyn Fn(&str) -> Option<String>) -> Vec<Listener> {
        let list = setting("listen_addresses").unwrap_or_else(|| "localhost".to_owned());
        if list.trim().is_empty() {
            return Vec::new();
        }
        let is_any = |address: &str| matches!(address, "*" | "0.0.0.0" | "::");
        let all: Vec<_> = list.split(',').map(str::trim).collect();
        let addresses = match all.iter().any(|address| is_any(address)) {
            true => Vec::new(),
            false => all.into_iter().map(str::to_owned).collect(),
        };
        vec![Listener {
            option: None,
            by_default: false,
            port,
            addresses,
        }]
    }

    fn other_paths(&self) -> &'static [&'static str] {
        &["external_pid_file"]
    }
}

fn socket_name(port: u16) -> String {
    format!(".s.PGSQL.{port}")
}

fn unquoted(value: &str) -> String {
    let Some(rest) = value.strip_prefix('\'') else {
        let end = value.find('#').unwrap_or(value.len());
        return value[..end].trim_end().to_owned();
    };
    let mut text = String::new();
    let mut chars = rest.chars().peekable();
    while let Some(c) = chars.next() {
        match c {
            '\'' if chars.peek() == Some(&'\'') => text.extend(chars.next()),
            '\'' => break,
            '\\' => text.extend(chars.next()),
            c => text.push(c),
        }
    }
    text
}
