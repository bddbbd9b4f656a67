//! MariaDB.

use serde_json::Value;

use super::option_file;
use super::{Key, Listener, Server, Setting};
use crate::model::Name;

/// MariaDB server, as Debian packages it.
pub(super) struct Mariadb;

impl Server for Mariadb {
    fn port(&self) -> u16 {
        3306
    }

    fn socket(&self, _port: u16) -> String {
        "/run/mysqld/mysqld.sock".to_owned()
    }

    fn datadir(&self) -> &'static str {
        "/var/lib/mysql"
    }

    fn pidfile(&self, instance: &Name, _datadir: &str) -> String {
        format!("/run/mysqld/{instance}.pid")
    }

    fn has_logdir(&self) -> bool {
        true
    }

    fn extension(&self) -> &'static str {
        "cnf"
    }

    fn template(&self) -> &'static str {
        include_str!("../../templates/instances/mariadb.cnf.tera")
    }

    fn line(&self, name: &str, value: &Value) -> String {
        option_file::line(name, value)
    }

    fn read(&self, config: &str) -> Vec<Setting> {
        option_file::read(config)
    }

    fn options_of(&self, key: Key) -> &'static [&'static str] {
        option_file::options_of(key)
    }

    fn reads(&self, section: &str) -> bool {
        matches!(
            section,
            "mysqld" | "server" | "client-server" | "mariadb" | "mariadbd"
        ) || section.starts_with("mariadb-")
            || section.starts_with("mariadbd-")
    }

    fn tells_clients(&self, section: &str) -> bool {
        option_file::tells_clients(section)
    }

    fn listeners(&self, port: u16, setting: &dyn Fn(&str) -> Option<String>) -> Vec<Listener> {
        // extra_port is off unless it is set, and shares the address of port.
        option_file::listeners(port, setting, Some(("extra_port", None, "bind_address")))
    }
}
