//! Paths and permissions of files in a guest.

use super::read::{At, Written};

/// The longest path Linux takes (PATH_MAX), with its NUL.
const PATH_MAX: usize = 4096;

/// Files that labrig writes into every guest: its identity, keys and addresses.
const OURS: [&str; 11] = [
    "/etc/hostname",
    "/etc/hosts",
    "/etc/labrig/",
    "/etc/security/limits.d/zz-labrig.conf",
    "/etc/ssh/authorized_keys.d/",
    "/etc/ssh/sshd_config.d/labrig-users.conf",
    "/etc/ssh/ssh_host_",
    "/etc/sysctl.d/zz-labrig.conf",
    "/etc/systemd/system.conf.d/labrig-limits.conf",
    "/etc/systemd/network/10-labrig-",
    "/root/.ssh/authorized_keys",
];

/// An absolute path of a file in a guest.
pub(super) fn guest_path(at: &At<'_>) -> Option<Written<String>> {
    let text = at.text("/etc/labrig.conf")?;
    let path = text.value;
    let wrong = if !path.starts_with('/') {
        Some("is not absolute")
    } else if path.ends_with('/') {
        Some("is a directory, not a file")
    } else if path[1..]
        .split('/')
        .any(|part| matches!(part, "" | "." | ".."))
    {
        Some("holds empty, . or .. steps")
    } else if OURS
        .iter()
        .any(|ours| path == *ours || is_below(path, ours))
    {
        Some("is a file that labrig writes itself")
    } else if path.contains("{{") || path.contains("{%") {
        Some("holds braces, and templates are not rendered here")
    } else if path.chars().any(char::is_control) {
        Some("holds a control character")
    } else if path.len() >= PATH_MAX {
        Some("is too long")
    } else {
        None
    };
    if let Some(wrong) = wrong {
        at.error(
            format!("{path:?} {wrong}"),
            "write the file's whole path, as in /etc/labrig.conf",
        );
        return None;
    }
    Some(Written {
        value: path.to_owned(),
        spot: text.spot,
    })
}

/// Whether `ours` stands for many files, and `path` is one of them.
fn is_below(path: &str, ours: &str) -> bool {
    ours.ends_with(['/', '_', '-']) && path.starts_with(ours)
}

/// Permission bits, as octal text.
pub(super) fn file_mode(at: &At<'_>) -> Option<u32> {
    let text = at.text("\"0644\"")?.value;
    let octal = matches!(text.len(), 3 | 4) && text.bytes().all(|b| (b'0'..=b'7').contains(&b));
    let mode = octal.then(|| u32::from_str_radix(text, 8).ok()).flatten();
    if mode.is_none() {
        at.error(
            format!("{text:?} is not a mode"),
            "write three or four octal digits, as in \"0644\"",
        );
    }
    mode
}
