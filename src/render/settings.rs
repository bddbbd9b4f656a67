//! A guest's settings as files of its seed.
//!
//! Kinds of guests differ in how they take them, see [`System`]. Whether they did is asked by
//! `/etc/labrig/check`, which runs when the guest is up.

use std::fmt::Write as _;

use super::seed::Entry;
use crate::model::{GuestSettings, ImageSource, Limit, LimitRange, User};

/// The script that says which settings a guest did not take.
const CHECK: &str = "/etc/labrig/check";
/// The script that carries out what files alone cannot; the first process runs it.
const APPLY: &str = "/etc/labrig/apply";

/// The kinds of systems a guest may have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum System {
    /// systemd, OpenSSH with PAM, and Debian's tools for users.
    Systemd,
    /// busybox and dropbear: no users but root, no services.
    Micro,
}

impl System {
    /// The system of an image. Of files that labrig did not build it is taken for granted that they
    /// are a whole system.
    pub fn of(source: &ImageSource) -> Self {
        match source {
            ImageSource::Build(recipe) if recipe.is_micro() => Self::Micro,
            _ => Self::Systemd,
        }
    }

    /// Whether it can set a limit.
    pub const fn takes(self, limit: Limit) -> bool {
        match self {
            Self::Systemd => true,
            Self::Micro => shell_flag(limit).is_some(),
        }
    }
}

/// The files that bring a guest its settings. Keys of root are not among them: they share a file
/// with labrig's.
pub(super) fn entries(system: System, settings: &GuestSettings) -> Vec<Entry> {
    let mut entries = Vec::new();
    let mut add = |path: &str, mode, content: String| {
        if !content.is_empty() {
            entries.push(Entry::new(path, mode, content));
        }
    };
    let checks = !(settings.sysctl.is_empty()
        && settings.limits.is_empty()
        && settings.services.is_empty()
        && settings.users.is_empty());
    if checks {
        add(CHECK, 0o755, include_str!("assets/check.sh").to_owned());
    }
    add("/etc/labrig/sysctl", 0o644, sysctl_check(settings));
    add("/etc/labrig/limits", 0o644, limits_check(settings));
    match system {
        System::Micro => add(APPLY, 0o644, micro_apply(settings)),
        System::Systemd => {
            add(APPLY, 0o755, include_str!("assets/apply.sh").to_owned());
            add("/etc/sysctl.d/zz-labrig.conf", 0o644, sysctl_conf(settings));
            add(
                "/etc/security/limits.d/zz-labrig.conf",
                0o644,
                limits_conf(settings),
            );
            add(
                "/etc/systemd/system.conf.d/labrig-limits.conf",
                0o644,
                manager_conf(settings),
            );
            let services = settings.services.iter();
            let services = services.map(|(unit, state)| format!("{unit} {state}\n"));
            add("/etc/labrig/services", 0o644, services.collect());
            let users = settings.users.iter().map(user_line);
            add("/etc/labrig/users", 0o600, users.collect());
            let with_keys: Vec<_> = settings
                .users
                .iter()
                .filter(|user| !user.ssh_keys.is_empty())
                .collect();
            if !with_keys.is_empty() {
                add(
                    "/etc/ssh/sshd_config.d/labrig-users.conf",
                    0o644,
                    "AuthorizedKeysFile .ssh/authorized_keys /etc/ssh/authorized_keys.d/%u\n"
                        .to_owned(),
                );
            }
            for user in with_keys {
                add(
                    &format!("/etc/ssh/authorized_keys.d/{}", user.name),
                    0o644,
                    user.ssh_keys.join("\n") + "\n",
                );
            }
        }
    }
    entries
}

/// `KEY = VALUE`, for systemd-sysctl, which sets them before services start.
fn sysctl_conf(settings: &GuestSettings) -> String {
    let lines = settings.sysctl.iter();
    lines
        .map(|(key, value)| format!("{key} = {value}\n"))
        .collect()
}

/// `KEY PATH VALUE`.
fn sysctl_check(settings: &GuestSettings) -> String {
    let lines = settings.sysctl.iter();
    lines
        .map(|(key, value)| format!("{key} {} {value}\n", GuestSettings::sysctl_path(key)))
        .collect()
}

/// `NAME SOFT HARD KERNEL'S NAME`, in the kernel's unit.
fn limits_check(settings: &GuestSettings) -> String {
    let lines = settings.limits.iter();
    lines
        .map(|(limit, LimitRange { soft, hard })| {
            let [soft, hard] = [soft, hard].map(|value| in_unit(*value, 1));
            format!("{limit} {soft} {hard} {}\n", limit.kernel_name())
        })
        .collect()
}

/// For pam_limits. What holds for everybody does not hold for root unless it is said.
fn limits_conf(settings: &GuestSettings) -> String {
    let mut text = String::new();
    for (limit, LimitRange { soft, hard }) in &settings.limits {
        for who in ["*", "root"] {
            for (kind, value) in [("hard", hard), ("soft", soft)] {
                let value = in_unit(*value, limit.unit());
                let _ = writeln!(text, "{who} {kind} {limit} {value}");
            }
        }
    }
    text
}

/// For systemd's services.
fn manager_conf(settings: &GuestSettings) -> String {
    let mut text = String::new();
    for (limit, LimitRange { soft, hard }) in &settings.limits {
        if text.is_empty() {
            text.push_str("[Manager]\n");
        }
        let [soft, hard] = [soft, hard].map(|value| match value {
            Some(value) => value.to_string(),
            None => "infinity".to_owned(),
        });
        let name = limit.to_string().to_uppercase();
        let _ = writeln!(text, "DefaultLimit{name}={soft}:{hard}");
    }
    text
}

/// Read by the first process of a micro guest in its own shell: what it is limited to, everything
/// it starts is limited to.
fn micro_apply(settings: &GuestSettings) -> String {
    let mut text = String::new();
    for (key, value) in &settings.sysctl {
        let path = GuestSettings::sysctl_path(key);
        let _ = writeln!(text, "echo '{value}' >'/proc/sys/{path}'");
    }
    for (limit, LimitRange { soft, hard }) in &settings.limits {
        if let Some((flag, unit)) = shell_flag(*limit) {
            let [soft, hard] = [soft, hard].map(|value| in_unit(*value, unit));
            // Down as well as up: neither may pass the other.
            let _ = writeln!(
                text,
                "ulimit -S{flag} {soft}\nulimit -H{flag} {hard}\nulimit -S{flag} {soft}"
            );
        }
    }
    if text.is_empty() {
        return text;
    }
    // What does not work is told by check.sh.
    format!("{{\n{text}}} 2>/dev/null\n")
}

/// The letter of busybox' ulimit for a limit, and the unit it counts in; none: a micro guest cannot
/// take it.
const fn shell_flag(limit: Limit) -> Option<(char, u64)> {
    let letter = match limit {
        Limit::As => 'v',
        Limit::Data => 'd',
        Limit::Fsize => return Some(('f', 512)),
        Limit::Memlock => 'l',
        Limit::Msgqueue => 'q',
        Limit::Nofile => 'n',
        Limit::Nproc => 'u',
        Limit::Rtprio => 'r',
        Limit::Sigpending => 'i',
        Limit::Stack => 's',
        // dropbear switches core files off for good.
        Limit::Core => return None,
    };
    Some((letter, limit.unit()))
}

fn in_unit(value: Option<u64>, unit: u64) -> String {
    value.map_or_else(
        || "unlimited".to_owned(),
        |value| (value / unit).to_string(),
    )
}

/// `NAME:SYSTEM:SHELL:GROUPS:PASSWORD`.
fn user_line(user: &User) -> String {
    let system = if user.system { "system" } else { "" };
    format!(
        "{}:{system}:{}:{}:{}\n",
        user.name,
        user.shell,
        user.groups.join(","),
        user.password.as_deref().unwrap_or_default()
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::ServiceState;

    fn settings() -> GuestSettings {
        let range = |soft, hard| LimitRange { soft, hard };
        let user = User {
            name: "app".to_owned(),
            system: false,
            shell: "/bin/bash".to_owned(),
            groups: vec!["adm".to_owned(), "web".to_owned()],
            ssh_keys: vec!["ssh-ed25519 AAAA me".to_owned()],
            password: None,
        };
        GuestSettings {
            sysctl: [
                ("net.ipv4.tcp_rmem", "4096 87380 6291456"),
                ("vm.swappiness", "1"),
            ]
            .map(|(key, value)| (key.to_owned(), value.to_owned()))
            .into(),
            limits: [
                (Limit::Memlock, range(Some(64 << 20), None)),
                (Limit::Nofile, range(Some(8192), Some(16368))),
            ]
            .into(),
            services: [("cron.service".to_owned(), ServiceState::Masked)].into(),
            users: vec![user],
            ssh_keys: Vec::new(),
        }
    }

    fn shown(system: System, settings: &GuestSettings) -> String {
        let mut text = String::new();
        for entry in entries(system, settings) {
            let (path, mode, content) = entry.parts();
            let content = match content.starts_with("#!") {
                true => "(script)\n",
                false => content,
            };
            let _ = write!(text, "== {path} {mode:04o}\n{content}");
        }
        text
    }

    #[test]
    fn a_guest_with_systemd_gets_its_settings_as_files() {
        insta::assert_snapshot!(shown(System::Systemd, &settings()));
    }

    #[test]
    fn a_micro_guest_gets_them_as_commands_of_its_first_process() {
        insta::assert_snapshot!(shown(System::Micro, &settings()));
    }

    #[test]
    fn without_settings_there_is_only_what_undoes_earlier_ones() {
        let none = GuestSettings::default();
        assert_eq!(shown(System::Micro, &none), "");
        let systemd = shown(System::Systemd, &none);
        assert_eq!(systemd, "== /etc/labrig/apply 0755\n(script)\n");
    }
}
