//! Option files of MySQL and MariaDB: sections, `name = value`, dashes and underscores alike.
//!
//! <https://mariadb.com/kb/en/configuring-mariadb-with-option-files/>

use serde_json::Value;

use super::{Key, Listener, Setting, plain};

/// Port of the administrative connection when only its address is said.
const ADMIN_PORT: u16 = 33062;

/// One option as a line.
pub(super) fn line(name: &str, value: &Value) -> String {
    let value = plain(value, ["OFF", "ON"]);
    let needs_quotes =
        value.is_empty() || value.trim() != value || value.contains(['#', '\'', '"', '\\', ';']);
    match needs_quotes {
        true => format!(
            "{name} = \"{}\"",
            value.replace('\\', "\\\\").replace('"', "\\\"")
        ),
        false => format!("{name} = {value}"),
    }
}

/// The options of a file. What it includes is not looked at.
pub(super) fn read(config: &str) -> Vec<Setting> {
    let mut section = String::new();
    let mut settings = Vec::new();
    for line in config.lines().map(str::trim) {
        if line.is_empty() || line.starts_with(['#', ';', '!']) {
            continue;
        }
        if let Some(name) = line.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
            name.0.trim().clone_into(&mut section);
            continue;
        }
        let (name, value) = line.split_once('=').unwrap_or((line, ""));
        let name = name.trim().to_lowercase().replace('-', "_");
        settings.push(Setting {
            section: section.clone(),
            name: name.strip_prefix("loose_").unwrap_or(&name).to_owned(),
            value: unquoted(value.trim()),
        });
    }
    settings
}

fn unquoted(value: &str) -> String {
    for quote in ['"', '\''] {
        if let Some(rest) = value.strip_prefix(quote)
            && let Some((inner, _)) = rest.rsplit_once(quote)
        {
            return inner.replace("\\\"", "\"").replace("\\\\", "\\");
        }
    }
    // A # begins a comment in the middle of a line as well.
    let end = value.find(" #").unwrap_or(value.len());
    value[..end].trim_end().to_owned()
}

/// The options that say the same as a key.
pub(super) const fn options_of(key: Key) -> &'static [&'static str] {
    match key {
        Key::Port => &["port"],
        Key::Socket => &["socket"],
        Key::Datadir => &["datadir"],
        Key::Logdir => &["innodb_log_group_home_dir"],
        Key::Pidfile => &["pid_file"],
    }
}

/// Whether a section is of the usual client programs.
pub(super) fn tells_clients(section: &str) -> bool {
    [
        "client",
        "mysql",
        "mysqladmin",
        "mysqldump",
        "mariadb-client",
    ]
    .contains(&section)
        || section.starts_with("client-")
}

/// The ports of `port`, `admin_port` and `extra`: an option with the port it has by default and the
/// option of its address.
pub(super) fn listeners(
    port: u16,
    setting: &dyn Fn(&str) -> Option<String>,
    extra: Option<(&'static str, Option<u16>, &'static str)>,
) -> Vec<Listener> {
    let addresses = |option: &str| setting(option).map_or_else(Vec::new, |list| addresses(&list));
    let number = |option: &str| setting(option)?.parse::<u16>().ok().filter(|&p| p > 0);
    let mut found = Vec::new();
    if !is_on(setting("skip_networking")) {
        found.push(Listener {
            option: None,
            by_default: false,
            port,
            addresses: addresses("bind_address"),
        });
    }
    if setting("admin_address").is_some() {
        found.push(Listener {
            option: Some("admin_port"),
            by_default: setting("admin_port").is_none(),
            port: number("admin_port").unwrap_or(ADMIN_PORT),
            addresses: addresses("admin_address"),
        });
    }
    if let Some((option, default, address)) = extra
        && let Some(port) = number(option).or(default)
    {
        found.push(Listener {
            option: Some(option),
            by_default: setting(option).is_none(),
            port,
            addresses: addresses(address),
        });
    }
    found
}

/// Addresses of a list; none for all.
fn addresses(list: &str) -> Vec<String> {
    let all: Vec<_> = list
        .split(',')
        .map(|address| address.trim().to_owned())
        .collect();
    let is_any = |address: &String| matches!(address.as_str(), "" | "*" | "0.0.0.0" | "::");
    match all.iter().any(is_any) {
        true => Vec::new(),
        false => all,
    }
}

/// Whether an option is there and on; one without a value is.
pub(super) fn is_on(value: Option<String>) -> bool {
    value.is_some_and(|value| {
        matches!(
            value.to_lowercase().as_str(),
            "" | "1" | "on" | "true" | "yes"
        )
    })
}
