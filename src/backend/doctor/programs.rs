//! Programs that labrig runs.

use std::path::Path;

use nix::unistd::{Uid, User};

use super::Finding;
use crate::backend::tool;

/// A program: its name, what it is for, the Debian package it comes in.
struct Program(&'static str, &'static str, &'static str);

const PROGRAMS: [Program; 12] = [
    Program("qemu-system-x86_64", "virtual machines", "qemu-system-x86"),
    Program("qemu-img", "disks", "qemu-utils"),
    Program("libvirtd", "labs", "libvirt-daemon"),
    Program("dnsmasq", "addresses of domains", "dnsmasq-base"),
    Program("ip", "vswitches", "iproute2"),
    Program("iptables", "vswitches of mode nat", "iptables"),
    Program("unshare", "the embedded host", "util-linux"),
    Program("mount", "building images", "mount"),
    Program("mmdebstrap", "building images", "mmdebstrap"),
    Program("mke2fs", "building images", "e2fsprogs"),
    Program("zstd", "building images", "zstd"),
    Program("ssh", "`labrig ssh`", "openssh-client"),
];
/// Needed by ordinary users only.
const ORDINARY: [Program; 2] = [
    Program("newuidmap", "labs of ordinary users", "uidmap"),
    Program("newgidmap", "labs of ordinary users", "uidmap"),
];
/// The user that libvirt's QEMU driver wants to find.
const LIBVIRT_USER: &str = "libvirt-qemu";
/// Where a lab's own directories are mounted.
const LIBVIRT_DIRECTORIES: [&str; 4] = [
    "/etc/libvirt",
    "/var/lib/libvirt",
    "/var/log/libvirt",
    "/var/cache/libvirt",
];

/// Examines them.
pub fn examine() -> Vec<Finding> {
    let ordinary: &[Program] = if Uid::effective().is_root() {
        &[]
    } else {
        &ORDINARY
    };
    let mut findings: Vec<_> = PROGRAMS
        .iter()
        .chain(ordinary)
        .map(|program| finding(program, tool::find(program.0).as_deref()))
        .collect();
    findings.push(libvirt_user(
        User::from_name(LIBVIRT_USER).ok().flatten().is_some(),
    ));
    findings.push(libvirt_directories());
    findings
}

fn finding(&Program(name, purpose, package): &Program, found: Option<&Path>) -> Finding {
    match found {
        Some(path) => Finding::good(name, format!("{} for {purpose}", path.display())),
        None => Finding::missing(
            name,
            format!("not found, for {purpose}"),
            format!(
                "install the package {package}; scripts/install-packages installs all that is needed"
            ),
        ),
    }
}

fn libvirt_user(is_there: bool) -> Finding {
    if is_there {
        return Finding::good(LIBVIRT_USER, "the user is there");
    }
    Finding::missing(
        LIBVIRT_USER,
        "libvirt's QEMU driver does not start without the user",
        "scripts/install-packages makes it",
    )
}

fn libvirt_directories() -> Finding {
    const NAME: &str = "libvirt directories";
    let absent: Vec<_> = LIBVIRT_DIRECTORIES
        .into_iter()
        .filter(|d| !Path::new(d).is_dir())
        .collect();
    if absent.is_empty() {
        return Finding::good(NAME, "a lab's own are mounted over them");
    }
    Finding::missing(
        NAME,
        format!("not there: {}", absent.join(", ")),
        "scripts/install-packages makes them",
    )
}

#[cfg(test)]
mod tests {
    use super::super::State;
    use super::*;

    #[test]
    fn a_program_that_is_missing_is_named_with_its_package() {
        let missing = finding(&PROGRAMS[0], None);
        assert_eq!(missing.state, State::Missing);
        assert!(missing.advice.unwrap().contains("qemu-system-x86;"));
        assert_eq!(
            finding(&PROGRAMS[0], Some(Path::new("/usr/bin/x"))).state,
            State::Good
        );
    }
}
