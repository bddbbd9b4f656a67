//! OpenLDAP's slapd, configured by a slapd.conf.

use serde_json::Value;

use super::{Key, Listener, Server, Setting, plain};
use crate::model::Name;

/// OpenLDAP's slapd with its memory-mapped database.
pub(super) struct Openldap;

impl Server for Openldap {
    fn port(&self) -> u16 {
        389
    }

    fn socket(&self, _port: u16) -> String {
        "/run/slapd/ldapi".to_owned()
    }

    fn datadir(&self) -> &'static str {
        "/var/lib/ldap"
    }

    fn pidfile(&self, instance: &Name, _datadir: &str) -> String {
        format!("/run/slapd/{instance}.pid")
    }

    /// back-mdb keeps no transaction logs.
    fn has_logdir(&self) -> bool {
        false
    }

    fn extension(&self) -> &'static str {
        "conf"
    }

    fn template(&self) -> &'static str {
        include_str!("../../templates/instances/slapd.conf.tera")
    }

    /// A directive takes several arguments, so a text stands as it is written.
    fn line(&self, name: &str, value: &Value) -> String {
        format!("{name} {}", plain(value, ["off", "on"]))
    }

    fn read(&self, config: &str) -> Vec<Setting> {
        let mut settings: Vec<Setting> = Vec::new();
        let mut section = String::new();
        let mut databases = 0;
        for line in config.lines() {
            if line.trim().is_empty() || line.starts_with('#') {
                continue;
            }
            // A line that begins with white space goes on with the one before.
            if line.starts_with(char::is_whitespace) {
                if let Some(last) = settings.last_mut() {
                    last.value.push(' ');
                    last.value.push_str(line.trim());
                }
                continue;
            }
            let (name, value) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
            let (name, value) = (name.to_lowercase(), value.trim());
            if name == "database" {
                value.clone_into(&mut section);
            }
            // Where a second database is, is a matter of the template alone.
            if name == "directory" {
                databases += 1;
                if databases > 1 {
                    continue;
                }
            }
            settings.push(Setting {
                section: section.clone(),
                name,
                value: value.trim_matches('"').to_owned(),
            });
        }
        settings
    }

    fn options_of(&self, key: Key) -> &'static [&'static str] {
        match key {
            Key::Datadir => &["directory"],
            Key::Pidfile => &["pidfile"],
            // Ports and sockets are said when slapd is started.
            Key::Port | Key::Socket | Key::Logdir => &[],
        }
    }

    fn listeners(&self, port: u16, _setting: &dyn Fn(&str) -> Option<String>) -> Vec<Listener> {
        vec![Listener {
            option: None,
            by_default: false,
            port,
            addresses: Vec::new(),
        }]
    }

    fn other_paths(&self) -> &'static [&'static str] {
        &["argsfile"]
    }
}
