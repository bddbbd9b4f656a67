//! Database instances: servers that run on a domain, several of which may share one.

use std::fmt;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::Name;

/// A database server program.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum DatabaseEngine {
    /// MariaDB server.
    Mariadb,
    /// MySQL server.
    Mysql,
    /// PostgreSQL server.
    Postgresql,
    /// OpenLDAP's slapd.
    Openldap,
}

/// A database server on a domain.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Instance {
    /// Its name; no other instance of its domain has it.
    pub name: Name,
    /// What runs.
    pub engine: DatabaseEngine,
    /// TCP port it listens on.
    pub port: u16,
    /// Unix socket it listens on.
    pub socket: String,
    /// Directory of its data.
    pub datadir: String,
    /// Directory of its transaction logs; none: they are inside [`Self::datadir`].
    pub logdir: Option<String>,
    /// File it writes its process id to.
    pub pidfile: String,
    /// Options of the engine, in the file's order: a value, or a list of values for an option that
    /// may be given several times. Texts are templates.
    pub settings: Map<String, Value>,
    /// Template of its configuration, relative to the template directory; none: labrig's own.
    pub template: Option<String>,
    /// Values the template sees as `vars`.
    pub vars: Map<String, Value>,
}

impl DatabaseEngine {
    /// Every engine, with the word for it in a topology.
    pub const ALL: [(&'static str, Self); 4] = [
        ("mariadb", Self::Mariadb),
        ("mysql", Self::Mysql),
        ("postgresql", Self::Postgresql),
        ("openldap", Self::Openldap),
    ];
}

impl fmt::Display for DatabaseEngine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Mariadb => "mariadb",
            Self::Mysql => "mysql",
            Self::Postgresql => "postgresql",
            Self::Openldap => "openldap",
        })
    }
}
