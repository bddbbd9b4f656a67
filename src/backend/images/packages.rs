//! Runs mmdebstrap: packages by name to a root filesystem in a tar archive.

use std::path::Path;
use std::time::Duration;

use super::apt::Sources;
use super::builder::BuildError;
use crate::backend::namespaces;
use crate::backend::tool::ToolError;
use crate::ports::Package;

/// Modification time of what is built, so that it does not depend on the day: 2023-11-14.
pub const EPOCH: &str = "1700000000";
/// Longest time for one root filesystem; slow mirrors are the reason.
const LIMIT: Duration = Duration::from_secs(45 * 60);

/// A root filesystem to make.
pub struct Bootstrap<'a> {
    /// Release, as in `bookworm`.
    pub suite: &'a str,
    /// mmdebstrap's variant.
    pub variant: &'a str,
    /// Packages to put in.
    pub packages: Vec<&'a str>,
    /// Further arguments.
    pub arguments: Vec<String>,
}

impl Bootstrap<'_> {
    /// Makes it.
    ///
    /// # Errors
    /// When mmdebstrap fails: no network, an unknown package, no subordinate user ids.
    pub fn run(&self, tar: &Path, progress: &(dyn Fn(&str) + Sync)) -> Result<(), BuildError> {
        let sources = Sources::of_host(self.suite);
        // Beside its target, so that what a killed one leaves is swept with all the rest.
        let directory = tar.with_extension("tmp");
        fs_err::create_dir_all(&directory)?;
        let include =
            (!self.packages.is_empty()).then(|| format!("--include={}", self.packages.join(",")));
        namespaces::as_root("mmdebstrap")
            .env("TMPDIR", directory)
            .env("SOURCE_DATE_EPOCH", EPOCH)
            .env("DEBIAN_FRONTEND", "noninteractive")
            // Kernel packages make no initial RAM disk then: /etc/kernel/postinst.d/initramfs-tools.
            .env("INITRD", "No")
            .arg("--mode=root")
            .arg(format!("--variant={}", self.variant))
            .arg("--architectures=amd64")
            .args(include)
            .args(sources.options())
            .args(&self.arguments)
            .arg(self.suite)
            .arg(tar)
            .args(sources.mirrors())
            .limit(LIMIT)
            .run_heard(&|line| {
                if let Some(step) = step_in(line) {
                    progress(step);
                }
            })
            .map(drop)
            .map_err(|error| self.explained(error))
    }

    /// A wrong name is the commonest failure, and hard to see in all that is said about it.
    fn explained(&self, error: ToolError) -> BuildError {
        let ToolError::Failed { stderr, .. } = &error else {
            return error.into();
        };
        let after = |start| stderr.iter().find_map(|line| line.strip_prefix(start));
        if let Some(package) = after("E: Unable to locate package ") {
            return BuildError::NoPackage {
                suite: self.suite.to_owned(),
                package: package.to_owned(),
            };
        }
        match after("E: the recipe's command failed: ") {
            Some(command) => BuildError::Command {
                command: command.to_owned(),
                source: error,
            },
            None => error.into(),
        }
    }
}

/// What mmdebstrap's line means to the one who waits; most lines mean nothing.
fn step_in(line: &str) -> Option<&str> {
    const STEPS: [(&str, &str); 6] = [
        ("running apt-get update", "fetching package lists"),
        ("downloading packages", "downloading packages"),
        ("extracting archives", "unpacking packages"),
        ("installing essential", "installing the base system"),
        ("installing", "installing packages"),
        ("creating tarball", "packing the root filesystem"),
    ];
    let said = line.strip_prefix("I: ")?;
    // What the recipe's own script tells.
    if let Some(step) = said.strip_prefix("labrig: ") {
        return Some(step);
    }
    STEPS
        .iter()
        .find(|(start, _)| said.starts_with(start))
        .map(|(_, step)| *step)
}

/// Reads package names and versions from names of package files, `NAME_VERSION_ARCH.deb`.
pub fn from_file_names(list: &str) -> Vec<Package> {
    let mut packages: Vec<_> = list
        .lines()
        .filter_map(|line| {
            let mut parts = line.strip_suffix(".deb")?.split('_');
            let (name, version) = (parts.next()?, parts.next()?);
            // The colon of an epoch is written as %3a in file names.
            Some(Package {
                name: name.to_owned(),
                version: version.replace("%3a", ":"),
            })
        })
        .collect();
    packages.sort();
    packages
}

/// Reads the installed packages from dpkg's status file.
pub fn from_status(status: &str) -> Vec<Package> {
    let field = |stanza: &str, name: &str| {
        stanza
            .lines()
            .find_map(|l| l.strip_prefix(name)?.strip_prefix(": ").map(str::to_owned))
    };
    let mut packages: Vec<_> = status
        .split("\n\n")
        .filter(|stanza| field(stanza, "Status").is_some_and(|s| s.ends_with(" installed")))
        .filter_map(|stanza| {
            Some(Package {
                name: field(stanza, "Package")?,
                version: field(stanza, "Version")?,
            })
        })
        .collect();
    packages.sort();
    packages
}

#[cfg(test)]
mod tests {
    use super::*;

    fn package(name: &str, version: &str) -> Package {
        Package {
            name: name.to_owned(),
            version: version.to_owned(),
        }
    }

    #[test]
    fn an_unknown_package_is_named() {
        let bootstrap = Bootstrap {
            suite: "bookworm",
            variant: "minbase",
            packages: Vec::new(),
            arguments: Vec::new(),
        };
        let failed = |line: &str| ToolError::Failed {
            program: "mmdebstrap".to_owned(),
            how: "exited with 25".to_owned(),
            stderr: vec![
                "I: done".to_owned(),
                line.to_owned(),
                "E: mmdebstrap failed to run".to_owned(),
            ],
        };
        let error = bootstrap.explained(failed("E: Unable to locate package mariadb-sever"));
        assert_eq!(error.to_string(), "bookworm has no package mariadb-sever");
        let error = bootstrap.explained(failed("E: the recipe's command failed: make it"));
        assert_eq!(error.to_string(), "the command \"make it\" failed");
        assert!(matches!(
            bootstrap.explained(failed("E: no network")),
            BuildError::Tool(_)
        ));
    }

    #[test]
    fn passes_on_the_steps_only() {
        assert_eq!(
            step_in("I: installing remaining packages inside the chroot..."),
            Some("installing packages")
        );
        assert_eq!(step_in("I: labrig: running id"), Some("running id"));
        assert_eq!(step_in("I: success in 4.8 seconds"), None);
        assert_eq!(step_in("Setting up installing (1.0)"), None);
    }

    #[test]
    fn reads_names_of_package_files() {
        let list = "passwd_1%3a4.13_amd64.deb\npartial\nadduser_3.134_all.deb\n";
        assert_eq!(
            from_file_names(list),
            [package("adduser", "3.134"), package("passwd", "1:4.13")]
        );
    }

    #[test]
    fn reads_installed_packages_only() {
        let status = "Package: b\nStatus: install ok installed\nVersion: 1:2-3\nDescription: x\n Version: 9\n\n\
                      Package: gone\nStatus: deinstall ok config-files\nVersion: 1\n\n\
                      Package: a\nStatus: install ok installed\nVersion: 4\n";
        assert_eq!(
            from_status(status),
            [package("a", "4"), package("b", "1:2-3")]
        );
    }
}
