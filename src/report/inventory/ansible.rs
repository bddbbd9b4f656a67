//! Inventories of Ansible.

use std::borrow::Cow;

use serde_json::{Map, Value, json};

use super::{Entry, Inventory, SSH_PORT, SshWay, Way};

/// Words that YAML 1.1 takes for something else than a text.
const YAML_WORDS: [&str; 9] = ["true", "false", "yes", "no", "on", "off", "y", "n", "null"];

impl Inventory {
    /// The inventory as data: all domains, and a group for each counted group.
    pub fn ansible(&self) -> Value {
        let (mut hosts, mut groups) = (Map::new(), Map::<String, Value>::new());
        for entry in &self.entries {
            let vars = match &entry.way {
                Way::Ssh(way) => self.host_vars(entry, way),
                Way::Local => json!({"ansible_connection": "local"}),
                Way::Closed(_) => continue,
            };
            hosts.insert(entry.name.to_string(), vars);
            if let Some(group) = &entry.group {
                let group = groups
                    .entry(self.group_name(group))
                    .or_insert_with(|| json!({"hosts": {}}));
                group["hosts"][entry.name.as_str()] = json!({});
            }
        }
        let mut all = Map::from_iter([("hosts".to_owned(), Value::from(hosts))]);
        if !groups.is_empty() {
            all.insert("children".to_owned(), groups.into());
        }
        json!({ "all": all })
    }

    /// The inventory as YAML.
    pub fn ansible_yaml(&self) -> String {
        let mut out = format!("# Ansible inventory of lab {}, by labrig.\n", self.lab);
        for line in self.left_out(true) {
            out.push_str(&format!("{line}\n"));
        }
        write_yaml(&self.ansible(), 0, &mut out);
        out
    }

    fn host_vars(&self, entry: &Entry, way: &SshWay) -> Value {
        // Nothing of the user's own configuration holds: it may know other machines by these names.
        let mut args = "-F none".to_owned();
        for (key, value) in way.options(entry, &self.known_hosts) {
            let option = format!("{key}={value}");
            let quoted = shlex::try_quote(&option).unwrap_or(Cow::Borrowed("")); // paths hold no NUL
            args.push_str(&format!(" -o {quoted}"));
        }
        let mut vars = Map::from_iter([
            ("ansible_host".to_owned(), way.address.to_string().into()),
            ("ansible_user".to_owned(), way.user.clone().into()),
            (
                "ansible_ssh_private_key_file".to_owned(),
                way.key.to_string_lossy().into(),
            ),
            ("ansible_ssh_common_args".to_owned(), args.into()),
        ]);
        if way.port != SSH_PORT {
            vars.insert("ansible_port".to_owned(), way.port.into());
        }
        vars.into()
    }

    /// Ansible wants group names of letters, digits and `_`, none of its own and none of a host.
    fn group_name(&self, group: &str) -> String {
        let name = group.replace('-', "_");
        let is_taken = ["all", "ungrouped"].contains(&name.as_str())
            || self.entries.iter().any(|entry| entry.name.as_str() == name);
        if is_taken { name + "_group" } else { name }
    }
}

/// Writes maps in block form; texts in quotes as JSON has them, which YAML reads too.
fn write_yaml(value: &Value, depth: usize, out: &mut String) {
    let Value::Object(map) = value else {
        return;
    };
    for (key, value) in map {
        let quote = if YAML_WORDS.contains(&key.as_str()) {
            "\""
        } else {
            ""
        };
        out.push_str(&format!("{}{quote}{key}{quote}:", "  ".repeat(depth)));
        match value {
            Value::Object(inner) if !inner.is_empty() => {
                out.push('\n');
                write_yaml(value, depth + 1, out);
            }
            _ => out.push_str(&format!(" {value}\n")),
        }
    }
}
