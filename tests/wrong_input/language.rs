//! Mistakes with included files, variables, groups, expressions, and YAML's traps.

use super::{Row, topology};

/// A topology of several files without a mistake.
pub const TOPOLOGY: &str = "\
version: 1
name: crm
include: [common.yaml]
vars: {servers: 2, memory: 128MiB, mtu: 1400}
vswitches:
  data: {subnet: 10.10.0.0/24, mtu: \"{{ vars.mtu }}\"}
defaults:
  image: micro
  split: {cpus: 1, memory: \"{{ vars.memory }}\"}
  vnets: [{vswitch: data}]
groups:
  web: {split: {cpus: 2}}
  spare: {boot_timeout: 2m}
domains:
  web: {groups: [web, spare], count: \"{{ vars.servers }}\"}
  db:
    vnets: [{vswitch: data, ip: 10.10.0.10, mac: \"52:54:00:00:00:01\"}]
    files: [{template: a.tera, to: \"/etc/{{ name }}\", mode: \"0644\", vars: {pool: 64M}}]
    boot_timeout: 3m
";

/// The file that it includes.
pub const COMMON: &str = "\
images:
  micro: {build: {micro: {}}}
domains:
  db: {split: {memory: 256MiB}}
";

const fn common(
    old: &'static str,
    new: &'static str,
    message: &'static str,
    at: &'static str,
    hint: &'static str,
) -> Row {
    Row {
        file: "common.yaml",
        ..topology(old, new, message, at, hint)
    }
}

// One row a line, however long, so that the table can be read as one.
#[rustfmt::skip]
pub const ROWS: &[Row] = &[
    // Traps of YAML.
    topology("\"52:54:00:00:00:01\"", "525400000001", "six pairs", "topology.yaml:17:50", "52:54"),
    topology("\"52:54:00:00:00:01\"", "52:54:00:00:00:0g", "six pairs", "topology.yaml:17:50", "52:54"),
    topology("boot_timeout: 3m", "boot_timeout: 1:20", "not a quantity", "topology.yaml:19:19", "3m"),
    topology("boot_timeout: 3m", "boot_timeout: on", "not a quantity", "topology.yaml:19:19", "3m"),
    topology("boot_timeout: 3m", "boot_timeout: ~", "nothing", "topology.yaml:19:19", "3m"),
    topology("boot_timeout: 3m", "boot_timeout: [3m]", "a text is wanted here, this is a list", "topology.yaml:19:5", "3m"),
    topology("boot_timeout: 3m", "boot_timeout: 721h", "30 days", "topology.yaml:19:19", "3m"),
    topology("mode: \"0644\"", "mode: 0o644", "0o644 is a number", "topology.yaml:18:61", "quotes"),
    topology("mode: \"0644\"", "mode: 0x1a4", "0x1a4 is a number", "topology.yaml:18:61", "quotes"),
    topology("mode: \"0644\"", "mode: 420", "420 is a number", "topology.yaml:18:61", "quotes"),
    topology("{cpus: 2}", "{cpus: 02}", "a whole number from 1 to 1024 is wanted", "topology.yaml:12:23", "as in 1"),
    topology("{cpus: 2}", "{cpus: 2.0}", "2.0 is not a whole number", "topology.yaml:12:23", "from 1"),
    topology("{cpus: 2}", "{cpus: \"2\"}", "a whole number from 1 to 1024 is wanted", "topology.yaml:12:23", "as in 1"),
    topology("{cpus: 2}", "{cpus: yes}", "a whole number from 1 to 1024 is wanted", "topology.yaml:12:23", "as in 1"),
    topology("{cpus: 2}", "{cpus: true}", "a whole number from 1 to 1024 is wanted here, this is a truth value", "topology.yaml:12:23", "as in 1"),
    topology("{cpus: 2}", "{cpus: -2}", "-2 is not a whole number", "topology.yaml:12:23", "from 1"),
    topology("{cpus: 2}", "{cpus: 1e3}", "1000.0 is not a whole number", "topology.yaml:12:23", "from 1"),
    topology("{cpus: 2}", "{cpus: 99999999999999999999}", "a whole number from 1 to 1024 is wanted", "topology.yaml:12:23", "as in 1"),
    topology("{cpus: 2}", "{cpus: .inf}", "a whole number", "topology.yaml:12:23", "as in 1"),
    topology("{cpus: 2}", "{cpus: }", "\"cpus\" is missing", "topology.yaml:12:9", "cpus: 1"),
    topology("{cpus: 2}", "{cpus 2}", "unknown key \"cpus 2\"", "topology.yaml:12:17", "known keys here: cpus"),
    topology("{cpus: 2}", "{cpus:2}", "unknown key \"cpus:2\"", "topology.yaml:12:17", "cpus"),
    topology("name: crm", "name: 007", "'0' is not allowed", "topology.yaml:2:7", "quickstart"),
    topology("name: crm", "name: null", "this is nothing", "topology.yaml:2:7", "quickstart"),
    topology("name: crm", "name: \"\"", "this text is empty", "topology.yaml:2:1", "quickstart"),
    topology("name: crm", "name: [crm]", "this is a list", "topology.yaml:2:1", "quickstart"),
    topology("name: crm", "name: \"crm\\0\"", "is not allowed", "topology.yaml:2:7", "quickstart"),
    topology("name: crm", "name: ../crm", "'.' is not allowed", "topology.yaml:2:7", "quickstart"),
    topology("name: crm", "name: crm/x", "'/' is not allowed", "topology.yaml:2:7", "quickstart"),
    topology("name: crm", "name: crm-", "", "topology.yaml:2:7", "quickstart"),
    topology("name: crm", "name: 1crm", "", "topology.yaml:2:7", "quickstart"),
    topology("name: crm", "name: crém", "'é' is not allowed", "topology.yaml:2:7", "quickstart"),
    topology("name: crm", "name: a-name-that-is-longer-than-any-name-may-be", "40", "topology.yaml:2:7", "quickstart"),
    topology("name: crm", "name: crm\n  x: 1", "not valid YAML", "topology.yaml:3:", ""),
    topology("name: crm", "name: crm\nname: crm", "\"name\" is given twice", "topology.yaml:3:1", "keep one"),
    topology("name: crm", "? name\n: crm\n? [a]\n: 1", "a key must be a plain text", "topology.yaml:4:3", "quotes"),
    topology("name: crm", "name: crm\n%TAG ! x", "not valid YAML", "topology.yaml:3:", ""),
    topology("name: crm", "name: &lab crm", "anchors", "topology.yaml:2:7", "write the value"),
    topology("name: crm", "name: !lab crm", "tags", "topology.yaml:2:7", "leave the tag out"),
    topology("  web: {groups", "\tweb: {groups", "not valid YAML", "topology.yaml:15:1", "spaces"),
    topology("defaults:\n", "defaults: &d\n", "anchors", "topology.yaml:7:11", "write the value"),
    topology("  db:\n", "  db:\n    <<: {image: micro}\n", "merge keys", "topology.yaml:17:5", "write the keys"),
    topology("  db:\n", "  db:\n    image: *d\n", "not valid YAML", "topology.yaml:17:12", ""),
    topology("/etc/{{ name }}", "/etc/\u{7}x", "control character", "topology.yaml:18:42", "remove it"),
    topology("version: 1", "version: 1.0", "1.0 is not a whole number", "topology.yaml:1:10", "whole number"),
    topology("version: 1", "version: \"1\"", "a whole number", "topology.yaml:1:10", "as in 1"),
    topology("version: 1", "version: 0", "0 is not a whole number", "topology.yaml:1:10", "from 1"),
    topology("version: 1", "Version: 1", "unknown key \"Version\"", "topology.yaml:1:1", "\"version\"?"),
    // Included files.
    topology("[common.yaml]", "[comon.yaml]", "comon.yaml cannot be read", "topology.yaml:3:11", "relative"),
    topology("[common.yaml]", "common.yaml", "a list is wanted here, this is a text", "topology.yaml:3:10", "[common.yaml]"),
    topology("[common.yaml]", "[topology.yaml]", "cannot include itself", "topology.yaml:3:11", "leave one"),
    topology("[common.yaml]", "[common.yaml, {a: b}]", "a text is wanted here, this is a map", "topology.yaml:3:24", "common.yaml"),
    topology("[common.yaml]", "[\"{{ lab.name }}.yaml\"]", "holds no expression", "topology.yaml:3:11", "name the file"),
    topology("[common.yaml]", "[/common.yaml]", "absolute path", "topology.yaml:3:11", "relative"),
    topology("[common.yaml]", "[a.tera]", "a.tera cannot be read", "topology.yaml:3:11", "relative"),
    topology("include: [common.yaml]\n", "", "unknown image \"micro\"", "topology.yaml:7:10", "there are no images"),
    common("images:", "image:", "unknown key \"image\"", "common.yaml:1:1", "\"images\"?"),
    common("images:", "include: [topology.yaml]\nimages:", "cannot include itself", "common.yaml:1:11", "leave one"),
    common("images:", "include: [common.yaml]\nimages:", "cannot include itself", "common.yaml:1:11", "leave one"),
    common("256MiB", "256", "256 has no unit", "common.yaml:4:24", "512MiB"),
    common("256MiB", "\"{{ vars.gone }}\"", "field `gone`", "common.yaml:4:24", "fields there"),
    common("  db: {split", "  db: {spilt", "unknown key \"spilt\"", "common.yaml:4:8", "\"split\"?"),
    common("{build: {micro: {}}}", "{build: {micro: {}}", "not valid YAML", "common.yaml:", ""),
    common("{build: {micro: {}}}", "{path: disk.qcow2}", "disk.qcow2 cannot be read", "common.yaml:2:17", "relative"),
    common("images:\n", "images:\n  b: 1\n", "a map is wanted here, this is a number", "common.yaml:2:6", "build"),
    // Variables.
    topology("servers: 2", "servers: 0", "0 is not a whole number from 1", "topology.yaml:15:38", "from 1"),
    topology("servers: 2", "servers: two", "a whole number from 1 to 10000", "topology.yaml:15:38", "as in 1"),
    topology("servers: 2", "server: 2", "field `servers` is not defined", "topology.yaml:15:38", "\"server\"?"),
    topology("servers: 2", "servers: 2, server-port: 1", "no name for a variable", "topology.yaml:4:20", "letters, digits and _"),
    topology("servers: 2", "servers: 2, 2nd: 1", "no name for a variable", "topology.yaml:4:20", "letters, digits and _"),
    topology("servers: 2", "servers: 2, twice: \"{{ vars.servers }}\"", "it holds no expression", "topology.yaml:4:27", "where the variable is used"),
    topology("servers: 2", "servers: 2, p: {env: LABRIG_NO_SUCH_VARIABLE}", "LABRIG_NO_SUCH_VARIABLE is not set", "topology.yaml:4:29", "set it"),
    topology("servers: 2", "servers: 2, p: {env: PATH, default: x}", "unknown key \"default\"", "topology.yaml:4:35", "env"),
    topology("servers: 2", "servers: 2, p: {env: [PATH]}", "a text is wanted here, this is a list", "topology.yaml:4:24", "DB_PASSWORD"),
    topology("servers: 2", "servers: .nan", "not a number that can be kept", "topology.yaml:4:17", "finite"),
    topology("vars: {servers: 2, memory: 128MiB, mtu: 1400}", "vars: [servers]", "a map is wanted here, this is a list", "topology.yaml:4:1", "users"),
    topology("mtu: 1400", "mtu: 10", "10 is not a whole number from 576", "topology.yaml:6:37", "576"),
    topology("128MiB", "128", "128 has no unit", "topology.yaml:9:28", "512MiB"),
    topology("memory: 128MiB,", "memory: {env: PATH},", "field `memory`", "topology.yaml:9:28", "template files see it"),
    // Expressions.
    topology("/etc/{{ name }}", "/etc/{{ nam }}", "undefined variable nam", "topology.yaml:18:36", "\"name\"?"),
    topology("/etc/{{ name }}", "/etc/{{ name", "", "topology.yaml:18:36", ""),
    topology("/etc/{{ name }}", "/etc/{{ name | shout }}", "unknown filter `shout`", "topology.yaml:18:36", ""),
    topology("/etc/{{ name }}", "/etc/{{ domain.name }}", "undefined variable domain", "topology.yaml:18:36", "template files only"),
    topology("/etc/{{ name }}", "/etc/{{ lab.nam }}", "field `nam`", "topology.yaml:18:36", "name"),
    topology("/etc/{{ name }}", "{{ name }}", "is not absolute", "topology.yaml:18:36", "/etc"),
    topology("/etc/{{ name }}", "/etc/../{{ name }}", "steps", "topology.yaml:18:36", "whole path"),
    topology("/etc/{{ name }}", "/etc/{% if vars.typo %}x{% endif %}", "field `typo`", "topology.yaml:18:36", "fields there"),
    topology("/etc/{{ name }}", "/etc/{% if typo %}x{% endif %}", "undefined variable typo", "topology.yaml:18:36", "known here"),
    topology("/etc/{{ name }}", "/etc/{% if name %}x", "", "topology.yaml:18:36", ""),
    topology("/etc/{{ name }}", "/etc/{{ get_env(name='HOME') }}", "", "topology.yaml:18:36", ""),
    topology("/etc/{{ name }}", "/etc/{{ 1 / 0 }}", "", "topology.yaml:18:36", ""),
    topology("mtu: \"{{ vars.mtu }}\"", "mtu: \"{{ index }}\"", "undefined variable index", "topology.yaml:6:37", "known here"),
    topology("mtu: \"{{ vars.mtu }}\"", "mtu: \"{{ vars.mtu }}0\"", "a whole number", "topology.yaml:6:37", "as in 576"),
    topology("mtu: \"{{ vars.mtu }}\"", "mtu: {{ vars.mtu }}", "a key must be a plain text", "topology.yaml:6:", "quotes"),
    topology("\"{{ vars.servers }}\"", "\"{{ index }}\"", "undefined variable index", "topology.yaml:15:38", "known here"),
    topology("name: crm", "name: \"{{ lab.name }}\"", "undefined variable lab", "topology.yaml:2:7", ""),
    topology("name: crm", "name: \"{{ vars.memory }}\"", "'1' is not allowed", "topology.yaml:2:7", "quickstart"),
    // Groups and defaults.
    topology("groups: [web, spare]", "groups: [wbe, spare, web]", "unknown group \"wbe\"", "topology.yaml:15:18", "\"web\"?"),
    topology("groups: [web, spare]", "groups: web", "a list is wanted here, this is a text", "topology.yaml:15:17", "[web]"),
    topology("groups: [web, spare]", "groups: [web, 7]", "7", "topology.yaml:15:23", "web"),
    topology("groups: [web, spare]", "groups: [\"{{ name }}\"]", "undefined variable name", "topology.yaml:15:18", "known here"),
    topology("groups: [web, spare]", "groups: [Web]", "'W' is not allowed", "topology.yaml:15:18", "web"),
    topology("  spare: {boot_timeout: 2m}", "  spare: {boot_timout: 2m}", "unknown key \"boot_timout\"", "topology.yaml:13:11", "\"boot_timeout\"?"),
    topology("  spare: {boot_timeout: 2m}", "  spare: {boot_timeout: 2}", "2 has no unit", "topology.yaml:13:25", "3m"),
    topology("  spare: {boot_timeout: 2m}", "  spare: [a]", "a map is wanted here, this is a list", "topology.yaml:13:3", "count"),
    topology("  spare: {boot_timeout: 2m}", "  spare: {groups: [web]}", "unknown key \"groups\"", "topology.yaml:13:11", "known keys"),
    topology("  spare: {boot_timeout: 2m}", "  Spare: {boot_timeout: 2m}", "'S' is not allowed", "topology.yaml:13:3", "another name"),
    topology("  spare: {boot_timeout: 2m}", "  web: {boot_timeout: 2m}", "\"web\" is given twice", "topology.yaml:13:3", "keep one"),
    topology("  image: micro\n", "  image: micr\n", "unknown image \"micr\"", "topology.yaml:8:10", "\"micro\"?"),
    topology("  image: micro\n", "  groups: [web]\n", "unknown key \"groups\"", "topology.yaml:8:3", "known keys"),
    topology("  image: micro\n", "", "\"image\" is missing", "topology.yaml:14:3", "image: micro"),
    topology("  vnets: [{vswitch: data}]\n", "  vnets: [{vswitch: dat}]\n", "unknown vswitch \"dat\"", "topology.yaml:10:21", "\"data\"?"),
    topology("  vnets: [{vswitch: data}]\n", "  vnets: {vswitch: data}\n", "a list is wanted here, this is a map", "topology.yaml:10:3", "[{vswitch: data}]"),
    topology("  vnets: [{vswitch: data}]\n", "  vnets: [{vswitch: data, ip: 10.10.0.20}]\n", "cannot be given to 2 domains", "topology.yaml:10:31", "leave it out"),
    topology("{groups: [web, spare], count", "{groups: [web, spare], vnets: ~, count", "\"vnets\" is missing", "topology.yaml:15:3", "vnets"),
    topology("  web: {groups", "  web1: {}\n  web: {groups", "two domains would be called \"web1\"", "topology.yaml:16:3", "rename"),
    topology("domains:\n  web", "domains:\n  settings: {vnets: []}\n  web", "cannot be reached", "topology.yaml:15:14", "add one"),
];
