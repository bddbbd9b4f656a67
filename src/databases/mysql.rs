//! MySQL.

use serde_json::Value;

use super::option_file;
use super::{Key, Listener, Server, Setting};
use crate::model::Name;

/// Port of the X protocol, which MySQL 8 listens on unless it is told not to.
const X_PORT: u16 = 33060;

/// MySQL server.
pub(super) struct Mysql;

impl Server for Mysql {
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
        include_str!("../../templates/instances/mysql.cnf.tera")
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
        matches!(section, "mysqld" | "server") || section.starts_with("mysqld-")
    }

    fn tells_clients(&self, section: &str) -> bool {
        option_file::tells_clients(section)
    }

    fn listeners(&self, port: u16, setting: &dyn Fn(&str) -> Option<String>) -> Vec<Listener> {
        let no_x = setting("mysqlx").is_some_and(|value| !option_file::is_on(Some(value)))
            || option_file::is_on(setting("skip_mysqlx"));
        let x = (!no_x).then_some(("mysqlx_port", Some(X_PORT), "mysqlx_bind_address"));
        option_file::listeners(port, setting, x)
    }

    fn other_paths(&self) -> &'static [&'static str] {
        &["mysqlx_socket"]
    }
}
