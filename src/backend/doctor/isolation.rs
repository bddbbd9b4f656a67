//! Namespaces, subordinate ids and control groups.

use std::path::Path;

use nix::unistd::{Uid, User};

use super::Finding;
use crate::backend::namespaces;
use crate::backend::tool::ToolError;

/// Smallest range of subordinate ids that has an id for every user of a Debian system.
const SMALLEST_RANGE: u64 = 65536;
/// Controllers that limits of domains and containers take.
const CONTROLLERS: [&str; 4] = ["cpu", "cpuset", "memory", "pids"];

/// Examines them.
pub fn examine() -> Vec<Finding> {
    let mut findings = vec![making_namespaces()];
    if !Uid::effective().is_root() {
        findings.extend([id_range("/etc/subuid"), id_range("/etc/subgid")]);
    }
    findings.push(control_groups());
    findings
}

/// Makes those of a lab, for a try.
fn making_namespaces() -> Finding {
    const NAME: &str = "namespaces";
    let kinds = if Uid::effective().is_root() {
        "network, mount, PID"
    } else {
        "user, network, mount, PID"
    };
    match namespaces::of_lab("true").run() {
        Ok(_) => Finding::good(NAME, format!("{kinds} can be made")),
        Err(error) => Finding::missing(
            NAME,
            format!("{kinds} cannot be made: {}", said(&error)),
            namespace_advice(),
        ),
    }
}

fn namespace_advice() -> String {
    let switch = |path: &str| {
        std::fs::read_to_string(path)
            .map(|text| text.trim().to_owned())
            .unwrap_or_default()
    };
    if switch("/proc/sys/kernel/unprivileged_userns_clone") == "0" {
        return "allow user namespaces: sysctl kernel.unprivileged_userns_clone=1, or run labrig as root".to_owned();
    }
    if switch("/proc/sys/kernel/apparmor_restrict_unprivileged_userns") == "1" {
        return "allow user namespaces: sysctl kernel.apparmor_restrict_unprivileged_userns=0, or run labrig as root"
            .to_owned();
    }
    if switch("/proc/sys/user/max_user_namespaces") == "0" {
        return "allow user namespaces: sysctl user.max_user_namespaces=10000, or run labrig as root".to_owned();
    }
    "scripts/install-packages installs uidmap and gives you subordinate ids; inside a container, start it with \
     more rights"
        .to_owned()
}

/// The last thing a program complained about.
pub fn said(error: &ToolError) -> String {
    match error {
        ToolError::Failed { stderr, .. } if !stderr.is_empty() => stderr[stderr.len() - 1].clone(),
        other => other.to_string(),
    }
}

fn id_range(file: &str) -> Finding {
    let uid = Uid::effective();
    let name = User::from_uid(uid)
        .ok()
        .flatten()
        .map_or_else(|| uid.to_string(), |user| user.name);
    let text = std::fs::read_to_string(file).unwrap_or_default();
    let count = range_count(&text, &name, &uid.to_string());
    if count >= SMALLEST_RANGE {
        return Finding::good(file, format!("{name} has {count} subordinate ids"));
    }
    let advice = format!("scripts/install-packages gives {name} a range");
    Finding::missing(
        file,
        format!("{name} has {count} subordinate ids, {SMALLEST_RANGE} are needed"),
        advice,
    )
}

/// How many subordinate ids a user has, by name or number.
fn range_count(text: &str, name: &str, uid: &str) -> u64 {
    text.lines()
        .filter_map(|line| {
            let mut fields = line.split(':');
            let owner = fields.next()?;
            (owner == name || owner == uid).then(|| fields.nth(1)?.trim().parse::<u64>().ok())?
        })
        .sum()
}

fn control_groups() -> Finding {
    const NAME: &str = "control groups";
    let unified = std::fs::read_to_string("/sys/fs/cgroup/cgroup.controllers").ok();
    let (version, controllers) = match &unified {
        Some(text) => (2, text.split_whitespace().map(str::to_owned).collect()),
        None => (1, mounted_controllers(Path::new("/sys/fs/cgroup"))),
    };
    let absent: Vec<_> = CONTROLLERS
        .iter()
        .filter(|c| !controllers.iter().any(|have| have == *c))
        .copied()
        .collect();
    if absent.is_empty() {
        Finding::good(
            NAME,
            format!("version {version} with {}", controllers.join(", ")),
        )
    } else {
        Finding::poor(
            NAME,
            format!("version {version} without {}", absent.join(", ")),
            "containers and CPU and memory limits need them; mount them, or run labrig where they are delegated",
        )
    }
}

/// Controllers of version 1 have a directory each.
fn mounted_controllers(root: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(root).into_iter().flatten().flatten();
    let mut names: Vec<_> = entries
        .filter(|entry| entry.path().join("cgroup.procs").exists())
        .flat_map(|entry| {
            entry
                .file_name()
                .to_string_lossy()
                .split(',')
                .map(str::to_owned)
                .collect::<Vec<_>>()
        })
        .collect();
    names.sort();
    names.dedup();
    names
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_ranges_by_name_and_number() {
        let text = "root:1:5\nme:100000:65536\n1000:300000:10\nmean:400000:7\ntorn\n";
        assert_eq!(range_count(text, "me", "1000"), 65546);
        assert_eq!(range_count(text, "you", "1001"), 0);
    }

    #[test]
    fn a_directory_without_processes_is_no_controller() {
        let root = tempfile::tempdir().unwrap();
        for name in ["cpu,cpuacct", "memory", "unified-empty"] {
            std::fs::create_dir(root.path().join(name)).unwrap();
        }
        for name in ["cpu,cpuacct", "memory"] {
            std::fs::write(root.path().join(name).join("cgroup.procs"), "").unwrap();
        }
        assert_eq!(
            mounted_controllers(root.path()),
            ["cpu", "cpuacct", "memory"]
        );
    }
}
