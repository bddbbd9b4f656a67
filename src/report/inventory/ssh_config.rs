//! Configuration of the `ssh` program.

use super::{Inventory, Way};

impl Inventory {
    /// A block for each domain that is reached by SSH, for `ssh -F` or an `Include`.
    pub fn ssh_config(&self) -> String {
        let mut out = format!("# Domains of lab {}, by labrig.\n", self.lab);
        for line in self.left_out(false) {
            out.push_str(&format!("{line}\n"));
        }
        for entry in &self.entries {
            let Way::Ssh(way) = &entry.way else {
                continue;
            };
            let mut lines = vec![
                ("HostName", way.address.to_string()),
                ("Port", way.port.to_string()),
                ("User", quoted(&way.user)),
                ("IdentityFile", quoted(&way.key.to_string_lossy())),
            ];
            lines.extend(way.options(entry, &self.known_hosts));
            out.push_str(&format!("\nHost {}\n", entry.name));
            for (key, value) in lines {
                out.push_str(&format!("  {key} {value}\n"));
            }
        }
        out
    }
}

/// A value as one word of the configuration: in quotes where it is not one by itself.
pub(super) fn quoted(value: &str) -> String {
    let value = without_tokens(value);
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_./%+@:".contains(c);
    if !value.is_empty() && value.chars().all(is_plain) {
        return value;
    }
    format!("\"{}\"", value.replace('\\', "\\\\").replace('"', "\\\""))
}

/// `%` is ssh's own sign for tokens.
pub(super) fn without_tokens(value: &str) -> String {
    value.replace('%', "%%")
}
