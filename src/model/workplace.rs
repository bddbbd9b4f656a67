//! Where labrig keeps its own things on a machine.

use super::{Domain, DomainKind, Lab, LabPaths, LabSecret};

/// Directories of labrig on a machine, each without blanks at the places that labrig chooses.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Workplace {
    /// The runner and units of work.
    pub units: String,
    /// What is known of delivered files, and what they replaced.
    pub files: String,
}

impl Workplace {
    /// That of a domain. With a private host, what is written on it stays in the lab.
    ///
    /// On machines that are not the lab's own, the lab keeps all in one directory of its own, by
    /// which another lab of the same name is told apart. A path that is not absolute begins where a
    /// login does.
    pub fn of(
        domain: &Domain,
        lab: &Lab,
        paths: &LabPaths,
        secret: &LabSecret,
        has_private_host: bool,
    ) -> Self {
        let name = &domain.name;
        match domain.kind {
            DomainKind::Vm(_) | DomainKind::Container(_) => Self {
                units: "/run/labrig".to_owned(),
                files: "/var/lib/labrig".to_owned(),
            },
            DomainKind::Host if has_private_host => Self {
                units: format!("/run/labrig/{name}"),
                files: format!("/var/lib/labrig/{name}"),
            },
            DomainKind::Host => Self::in_one(paths.machine(name).display().to_string()),
            DomainKind::External(_) => {
                let id = secret.derive("workplace").short(8);
                Self::in_one(format!(".local/state/labrig/{}-{id}.{name}", lab.name))
            }
        }
    }

    fn in_one(directory: String) -> Self {
        Self {
            units: directory.clone(),
            files: directory,
        }
    }
}
