//! Wrong inputs, one mistake each: the note says what, where and what to do.

#![allow(clippy::unwrap_used, reason = "a test may fail")]

#[path = "wrong_input/language.rs"]
mod language;

use std::fs;
use std::path::Path;

use labrig::input::{self, Options};

/// A topology without a mistake; rows below change one thing in it.
const TOPOLOGY: &str = "\
version: 1
name: quickstart
images:
  micro: {build: {micro: {}}}
  deb: {build: {suite: bookworm, packages: [mariadb-server], size: 3GiB}}
  mine: {path: disk.img}
vswitches:
  data: {subnet: 10.10.0.0/24}
  client1: {subnet: 10.10.1.0/24}
  client2: {mode: nat, subnet: 10.10.2.0/24, mtu: 1500}
domains:
  db:
    image: deb
    split: {cpus: 1, memory: 512MiB}
    disks: [{name: root, size: 4GiB}, {name: data, size: 1GiB}]
    vnets: [{vswitch: data, ip: 10.10.0.10, mac: \"52:54:00:00:00:01\"}]
    files: [{template: a.tera, to: /etc/a, mode: \"0644\", vars: {pool: 64M}}]
    boot_timeout: 3m
  web:
    count: 2
    image: micro
    split: {cpus: 1, memory: 160MiB}
    vnets: [{vswitch: data}, {vswitch: \"client{{ index }}\"}]
  own:
    image: mine
    split: {cpus: 2, memory: 1GiB}
    vnets: [{vswitch: data, ip: 10.10.0.11}]
";

const PLAYBOOK: &str = "\
version: 1
name: oltp
topology: topology.yaml
roles: {server: [db], load: [web]}
factors:
  threads: [1, 2, 4]
design: {repetitions: 6, order: blocks, seed: 7}
setup:
  - {on: server, run: \"prepare {{ domains.db.ip }}\"}
  - {on: server, copy: {from: f.sh, to: /root/f.sh, mode: \"0755\"}}
trial:
  - {on: server, template: {template: a.tera, to: /etc/b, vars: {pool: \"{{ threads }}M\"}}}
  - {on: [server, web1], service: {restart: mariadb}}
  - {on: server, wait: {port: 3306}, timeout: 10s}
  - {on: load, load: {run: \"go {{ threads }}\", adapter: sysbench, expect: 10s, timeout: 40s}}
metrics: {tps: {primary: true, unit: 1/s, better: higher}, p95: {unit: ms, better: lower}}
reproduce: {within: 10%}
";

const TEMPLATE: &str = "pool = {{ vars.pool }}\nself = {{ domain.name }}\n";

fn lay(directory: &Path, topology: &[u8], playbook: &[u8], template: &str) {
    fs::create_dir(directory.join("templates")).unwrap();
    fs::write(directory.join("topology.yaml"), topology).unwrap();
    fs::write(directory.join("playbook.yaml"), playbook).unwrap();
    fs::write(directory.join("templates/a.tera"), template).unwrap();
    fs::write(directory.join("f.sh"), "true\n").unwrap();
    fs::write(directory.join("disk.img"), [0; 4096]).unwrap();
}

#[test]
fn the_examples_themselves_have_no_notes() {
    for table in TABLES {
        let directory = tempfile::tempdir().unwrap();
        fs::write(directory.path().join("common.yaml"), table.common).unwrap();
        lay(
            directory.path(),
            table.topology.as_bytes(),
            table.playbook.as_bytes(),
            TEMPLATE,
        );
        let file = directory.path().join("playbook.yaml");
        let loaded = input::load_playbook(&file, &Options::default());
        let loaded = loaded.unwrap_or_else(|notes| panic!("{notes}"));
        assert_eq!(loaded.topology.warnings.to_string(), "");
        assert_eq!(loaded.playbook.warnings.to_string(), "");
    }
}

/// One mistake: a text of a file is replaced by another.
struct Row {
    file: &'static str,
    old: &'static str,
    new: &'static str,
    message: &'static str,
    /// File, line and column of the note.
    at: &'static str,
    /// Part of the hint.
    hint: &'static str,
}

const fn topology(
    old: &'static str,
    new: &'static str,
    message: &'static str,
    at: &'static str,
    hint: &'static str,
) -> Row {
    Row {
        file: "topology.yaml",
        old,
        new,
        message,
        at,
        hint,
    }
}

const fn playbook(
    old: &'static str,
    new: &'static str,
    message: &'static str,
    at: &'static str,
    hint: &'static str,
) -> Row {
    Row {
        file: "playbook.yaml",
        old,
        new,
        message,
        at,
        hint,
    }
}

const fn template(
    old: &'static str,
    new: &'static str,
    message: &'static str,
    at: &'static str,
    hint: &'static str,
) -> Row {
    Row {
        file: "templates/a.tera",
        old,
        new,
        message,
        at,
        hint,
    }
}

const DIGEST: &str =
    "{path: disk.img, sha256: 0000000000000000000000000000000000000000000000000000000000000000}";
const DISKS: &str = "disks: [{name: root, size: 4GiB}, {name: data, size: 1GiB}]";

// One row a line, however long, so that the table can be read as one.
#[rustfmt::skip]
const ROWS: &[Row] = &[
    // YAML itself.
    topology("name: quickstart", "name: [quick", "not valid YAML", "topology.yaml:3:7", ""),
    topology("    image: deb", "\timage: deb", "not valid YAML", "topology.yaml:13:1", "spaces"),
    topology("name: quickstart", "name: a\nname: b", "\"name\" is given twice", "topology.yaml:3:1", "keep one"),
    topology("    image: deb", "    image: &x deb", "anchors", "topology.yaml:13:12", "write the value"),
    topology("    image: deb", "    image: *x", "not valid YAML", "topology.yaml:13:12", ""),
    topology("  db:\n", "  db:\n    <<: {image: deb}\n", "merge keys", "topology.yaml:13:5", "write the keys"),
    topology("    image: deb", "    image: !!str deb", "tags", "topology.yaml:13:12", "quotes"),
    topology("vswitches:", "---\nvswitches:", "second document", "topology.yaml:7:1", "one document"),
    // Keys and kinds.
    topology("version: 1\n", "", "\"version\" is missing", "topology.yaml:1:1", "version: 1"),
    topology("version: 1", "version: 2", "version 2", "topology.yaml:1:10", "version 1"),
    topology("version: 1", "version: one", "a whole number", "topology.yaml:1:10", "as in 1"),
    topology("name: quickstart\n", "", "\"name\" is missing", "topology.yaml:1:1", "quickstart"),
    topology("name: quickstart", "name: Quick_start", "'Q' is not allowed", "topology.yaml:2:7", "quickstart"),
    topology("name: quickstart", "name: true", "a truth value", "topology.yaml:2:7", "quotes"),
    topology("    boot_timeout", "    boot_timout", "unknown key \"boot_timout\"", "topology.yaml:18:5", "\"boot_timeout\"?"),
    topology("    image: deb", "    kind: vm\n    image: deb", "unknown key \"kind\"", "topology.yaml:13:5", "known keys"),
    topology("  db:\n", "  DB:\n", "'D' is not allowed", "topology.yaml:12:3", "another name"),
    topology("domains:\n", "domain:\n", "unknown key \"domain\"", "topology.yaml:11:1", "\"domains\"?"),
    topology("    image: deb\n", "", "\"image\" is missing", "topology.yaml:12:3", "image: micro"),
    topology("split: {cpus: 1, memory: 512MiB}", "split: 1", "a map is wanted here, this is a number", "topology.yaml:14:12", "cpus"),
    topology("cpus: 1, memory: 512MiB", "memory: 512MiB", "\"cpus\" is missing", "topology.yaml:14:5", "cpus: 1"),
    topology("cpus: 1, memory: 512MiB", "cpus: 1.5, memory: 512MiB", "1.5 is not a whole number", "topology.yaml:14:19", "from 1"),
    topology("cpus: 1, memory: 512MiB", "cpus: 0, memory: 512MiB", "0 is not a whole number", "topology.yaml:14:19", "from 1"),
    topology("count: 2", "count: 0", "0 is not a whole number from 1", "topology.yaml:20:12", "from 1"),
    topology("count: 2", "count: 10001", "10001 is not", "topology.yaml:20:12", "10000"),
    topology("mode: nat", "mode: bridged", "\"bridged\" is not known", "topology.yaml:10:19", "bridge"),
    topology("mtu: 1500", "mtu: 100", "100 is not", "topology.yaml:10:51", "576"),
    // Quantities and addresses.
    topology("memory: 512MiB", "memory: 512", "512 has no unit", "topology.yaml:14:30", "512MiB"),
    topology("memory: 512MiB", "memory: 512MB2", "not a quantity", "topology.yaml:14:30", "512MiB"),
    topology("memory: 512MiB", "memory: 512M", "unknown unit \"M\"", "topology.yaml:14:30", "512MiB"),
    topology("memory: 512MiB", "memory: 512KiB", "too small", "topology.yaml:14:30", "32MiB"),
    topology("memory: 512MiB", "memory: 99999999TiB", "too large", "topology.yaml:14:30", "512MiB"),
    topology("boot_timeout: 3m", "boot_timeout: 180", "180 has no unit", "topology.yaml:18:19", "3m"),
    topology("boot_timeout: 3m", "boot_timeout: 0s", "above zero", "topology.yaml:18:19", "3m"),
    topology("10.10.0.0/24", "10.10.0.0", "not an IPv4 subnet", "topology.yaml:8:18", "10.10.0.0/24"),
    topology("10.10.0.0/24", "10.10.0.7/24", "an address inside a subnet", "topology.yaml:8:18", "10.10.0.0/24"),
    topology("10.10.0.0/24", "10.10.0.0/31", "prefix length of 31", "topology.yaml:8:18", "from 8 to 30"),
    topology("10.10.0.0/24", "127.0.0.0/24", "not for hosts", "topology.yaml:8:18", "private"),
    topology("10.10.1.0/24", "10.10.0.128/25", "overlaps 10.10.0.0/24 of vswitch \"data\"", "topology.yaml:9:21", "its own"),
    topology("10.10.0.0/24", "10.10.0.0/29", "is outside", "topology.yaml:16:33", "10.10.0.6"),
    topology("ip: 10.10.0.10", "ip: 10.10.1.10", "outside the vswitch's subnet", "topology.yaml:16:33", "10.10.0.2 to 10.10.0.254"),
    topology("ip: 10.10.0.10", "ip: 10.10.0.1", "lab host's own", "topology.yaml:16:33", "10.10.0.2"),
    topology("ip: 10.10.0.10", "ip: 10.10.0.0", "subnet's own", "topology.yaml:16:33", "10.10.0.2"),
    topology("ip: 10.10.0.10", "ip: 10.10.0.255", "broadcast", "topology.yaml:16:33", "10.10.0.2"),
    topology("ip: 10.10.0.10", "ip: 10.10.0.11", "10.10.0.11 is given twice", "topology.yaml:27:33", "free one"),
    topology("ip: 10.10.0.10", "ip: ten", "\"ten\" is not an IPv4 address", "topology.yaml:16:33", "10.10.0.10"),
    topology("52:54:00:00:00:01", "52:54:00:00:01", "six pairs", "topology.yaml:16:50", "52:54"),
    topology("52:54:00:00:00:01", "01:54:00:00:00:01", "unicast", "topology.yaml:16:50", "52:54"),
    topology("\"52:54:00:00:00:01\"", "525400000001", "six pairs", "topology.yaml:16:50", "52:54"),
    topology("ip: 10.10.0.11", "mac: \"52:54:00:00:00:01\"", "52:54:00:00:00:01 is given twice", "topology.yaml:27:34", "change one"),
    topology("[{vswitch: data}, {", "[{vswitch: data, ip: 10.10.0.20}, {", "cannot be given to 2 domains", "topology.yaml:23:33", "leave it out"),
    topology("52:54:00:00:00:01", "fe:54:00:00:00:01", "is reserved", "topology.yaml:16:50", "52:54"),
    // Names that must exist.
    topology("[{vswitch: data}, {", "[{vswitch: date}, {", "unknown vswitch \"date\"", "topology.yaml:23:23", "\"data\"?"),
    topology("count: 2", "count: 3", "unknown vswitch \"client3\" (for index 3)", "topology.yaml:23:40", "client"),
    topology("client{{ index }}", "client{{ idx }}", "undefined variable idx", "topology.yaml:23:40", "index"),
    topology("client{{ index }}", "data", "second vnet on vswitch \"data\"", "topology.yaml:23:40", "remove one"),
    topology("image: mine", "image: nine", "unknown image \"nine\"", "topology.yaml:25:12", "\"mine\"?"),
    topology("    vnets: [{vswitch: data, ip: 10.10.0.11}]\n", "", "\"vnets\" is missing", "topology.yaml:24:3", "vswitch"),
    topology("vnets: [{vswitch: data, ip: 10.10.0.11}]", "vnets: []", "cannot be reached", "topology.yaml:27:5", "add one"),
    topology("  own:", "  web2:", "two domains would be called \"web2\"", "topology.yaml:24:3", "rename"),
    // Images and disks.
    topology("{path: disk.img}", "{path: gone.img}", "gone.img cannot be read", "topology.yaml:6:16", "relative"),
    topology("{path: disk.img}", DIGEST, "another content", "topology.yaml:6:34", "its sha256 is ad7facb2"),
    topology("{path: disk.img}", "{path: disk.img, sha256: abc}", "64 hexadecimal digits", "topology.yaml:6:34", "64"),
    topology("{path: disk.img}", "{}", "where this image comes from", "topology.yaml:6:3", "build"),
    topology("{path: disk.img}", "{path: disk.img, initrd: disk.img}", "needs a kernel", "topology.yaml:6:34", "kernel"),
    topology("suite: bookworm", "suite: Bookworm", "'B' is not allowed", "topology.yaml:5:24", "bookworm"),
    topology("mariadb-server", "\"--help\"", "'-' is not allowed", "topology.yaml:5:45", "mariadb-server"),
    topology("size: 4GiB", "size: 2GiB", "smaller than its image", "topology.yaml:15:32", "larger"),
    topology("image: deb\n", "image: micro\n", "no disk", "topology.yaml:15:20", "another name"),
    topology(DISKS, "disks: [{name: data, size: 1GiB}, {name: data, size: 1GiB}]", "two disks are called \"data\"", "topology.yaml:15:46", "rename"),
    topology(DISKS, "disks: [{name: data}]", "\"size\" is missing", "topology.yaml:15:13", "1GiB"),
    topology("{path: disk.img}", "{path: disk.img, build: {micro: {}}}", "comes from one place", "topology.yaml:6:26", "keep one"),
    topology("{path: disk.img}", "{path: disk.img, url: https://a.example/b}", "comes from one place", "topology.yaml:6:31", "keep one"),
    topology("{path: disk.img}", "{url: https://a.example/b.qcow2}", "needs the digest", "topology.yaml:6:15", "sha256"),
    topology("{path: disk.img}", "{url: https://a.example/b.qcow2, sha256: 12ab}", "64 hexadecimal digits", "topology.yaml:6:50", "64"),
    topology("{path: disk.img}", "{url: \"ftp://a.example/b\", sha256: ad7facb2586fc6e966c004d7d1d16b024f5805ff7cb47c7a85dabd8b48892ca7}", "\"ftp\" is no way", "topology.yaml:6:15", ""),
    topology("{path: disk.img}", "{url: \"file:///a/b\", sha256: ad7facb2586fc6e966c004d7d1d16b024f5805ff7cb47c7a85dabd8b48892ca7}", "\"file\" is no way", "topology.yaml:6:15", ""),
    topology("{path: disk.img}", "{url: \"a.example/b\", sha256: ad7facb2586fc6e966c004d7d1d16b024f5805ff7cb47c7a85dabd8b48892ca7}", "is no address", "topology.yaml:6:15", ""),
    topology("{path: disk.img}", "{url: \"https:///b\", sha256: ad7facb2586fc6e966c004d7d1d16b024f5805ff7cb47c7a85dabd8b48892ca7}", "is no address", "topology.yaml:6:15", ""),
    topology("{path: disk.img}", "{url: \"https://me:pw@a.example/b\", sha256: ad7facb2586fc6e966c004d7d1d16b024f5805ff7cb47c7a85dabd8b48892ca7}", "kept in archives", "topology.yaml:6:15", ""),
    topology("{path: disk.img}", "{kernel: disk.img, cloud_init: true}", "without a disk has no cloud-init", "topology.yaml:6:40", "leave cloud_init out"),
    topology("{path: disk.img}", "{path: disk.img, cloud_init: yes}", "true or false", "topology.yaml:6:38", "true"),
    topology("{build: {micro: {}}}", "{build: {micro: {}}, cloud_init: true}", "labrig's own seed", "topology.yaml:4:43", "leave cloud_init out"),
    topology("{build: {micro: {}}}", "{build: {micro: {}}, sha256: ad7facb2586fc6e966c004d7d1d16b024f5805ff7cb47c7a85dabd8b48892ca7}", "yet to be built", "topology.yaml:4:39", "leave sha256 out"),
    topology("{micro: {}}", "{micro: {}, size: 1GiB}", "a micro image has no size", "topology.yaml:4:36", "Debian"),
    topology("{micro: {}}", "{micro: {}, packages: [jq]}", "a micro image has no packages", "topology.yaml:4:30", "Debian"),
    topology("{micro: {}}", "{micro: {}, run: [id]}", "a micro image has no run", "topology.yaml:4:30", "Debian"),
    topology("{micro: {}}", "{micro: {}, suite: bookworm}", "starts from one thing", "topology.yaml:4:37", "inside"),
    topology("{micro: {}}", "{micro: {}, from: deb}", "starts from one thing", "topology.yaml:4:36", "keep one"),
    topology("{micro: {}}", "{}", "\"suite\" is missing", "topology.yaml:4:11", "bookworm"),
    topology("{micro: {}}", "{from: dep}", "unknown image \"dep\"", "topology.yaml:4:25", "\"deb\"?"),
    topology("{micro: {}}", "{from: mine}", "not built by labrig", "topology.yaml:4:25", "layers go on"),
    topology("{micro: {}}", "{from: micro}", "a layer on itself: micro on micro", "topology.yaml:4:25", "suite"),
    topology("{suite: bookworm, packages: [mariadb-server], size: 3GiB}", "{from: micro, packages: [jq]}", "a micro image has no packages", "topology.yaml:5:30", "Debian"),
    topology("{suite: bookworm, packages: [mariadb-server], size: 3GiB}", "{from: micro, run: [id]}", "a micro image has no run", "topology.yaml:5:30", "Debian"),
    topology("{path: disk.img}", "{build: {from: deb, size: 1GiB}}", "smaller than that of the image below", "topology.yaml:6:35", "larger"),
    topology("{suite: bookworm, packages: [mariadb-server], size: 3GiB}", "{suite: bookworm, run: id}", "a list is wanted", "topology.yaml:5:39", "useradd"),
    topology("{suite: bookworm, packages: [mariadb-server], size: 3GiB}", "{suite: bookworm, run: [\"\"]}", "text is empty", "topology.yaml:5:40", "useradd"),
    topology("{suite: bookworm, packages: [mariadb-server], size: 3GiB}", "{suite: bookworm, files: [{to: /etc/x}]}", "nothing says what is in this file", "topology.yaml:5:42", "from or template"),
    topology("{suite: bookworm, packages: [mariadb-server], size: 3GiB}", "{suite: bookworm, files: [{from: f.sh, template: a.tera, to: /etc/x}]}", "either copied or rendered", "topology.yaml:5:65", "keep"),
    topology("{suite: bookworm, packages: [mariadb-server], size: 3GiB}", "{suite: bookworm, files: [{from: g.sh, to: /etc/x}]}", "g.sh cannot be read", "topology.yaml:5:49", "relative"),
    topology("{suite: bookworm, packages: [mariadb-server], size: 3GiB}", "{suite: bookworm, files: [{from: f.sh, to: x}]}", "is not absolute", "topology.yaml:5:59", "whole path"),
    topology("{suite: bookworm, packages: [mariadb-server], size: 3GiB}", "{suite: bookworm, files: [{from: f.sh, to: /etc/x, vars: {a: 1}}]}", "copied has no variables", "topology.yaml:5:67", "template"),
    topology("{suite: bookworm, packages: [mariadb-server], size: 3GiB}", "{suite: bookworm, files: [{from: f.sh, to: /etc/x}, {from: f.sh, to: /etc/x}]}", "/etc/x is written twice", "topology.yaml:5:85", "keep one"),
    topology("{suite: bookworm, packages: [mariadb-server], size: 3GiB}", "{suite: bookworm, files: [{template: b.tera, to: /etc/x}]}", "\"b.tera\" is not in", "topology.yaml:5:53", "\"a.tera\"?"),
    topology("{suite: bookworm, packages: [mariadb-server], size: 3GiB}", "{suite: bookworm, files: [{template: a.tera, to: /etc/x, vars: {pool: 1}}]}", "undefined template variable \"domain\"", "templates/a.tera:2:11", "lab and vars"),
    topology("{name: data, size: 1GiB}", "{name: data, size: 1GiB, on: disc}", "\"disc\" is not known", "topology.yaml:15:68", "\"disk\"?"),
    topology("{name: data, size: 1GiB}", "{name: data, on: ram}", "\"size\" is missing", "topology.yaml:15:39", "1GiB"),
    topology("{name: data, size: 1GiB}", "{name: data, size: 1GiB, on: ram, cache: none}", "no cache to go past", "topology.yaml:15:80", "leave cache out"),
    topology("{name: data, size: 1GiB}", "{name: data, size: 1GiB, cache: writeback2}", "\"writeback2\" is not known", "topology.yaml:15:71", "\"writeback\"?"),
    topology("{name: data, size: 1GiB}", "{name: data, size: 1GiB, path: x}", "path has no meaning", "topology.yaml:15:70", "on: file"),
    topology("{name: data, size: 1GiB}", "{name: data, on: lvm}", "\"path\" is missing", "topology.yaml:15:39", "/dev/vg0/db"),
    topology("{name: data, size: 1GiB}", "{name: data, on: lvm, path: vg0/db}", "no device of a logical volume", "topology.yaml:15:67", "/dev/vg0/db"),
    topology("{name: data, size: 1GiB}", "{name: data, on: lvm, path: /dev/../etc/x}", "no device of a logical volume", "topology.yaml:15:67", "/dev/vg0/db"),
    topology("{name: data, size: 1GiB}", "{name: data, on: lvm, path: /dev/vg0/db, size: 1GiB}", "size has no meaning", "topology.yaml:15:86", "leave it out"),
    topology("{name: data, size: 1GiB}", "{name: data, on: lvm, path: /dev/vg0/db, format: raw}", "format has no meaning", "topology.yaml:15:88", "leave it out"),
    topology("{name: data, size: 1GiB}", "{name: data, on: file}", "\"path\" is missing", "topology.yaml:15:39", "disks/db.raw"),
    topology("{name: data, size: 1GiB}", "{name: data, on: file, path: a.raw, size: 1GiB}", "size has no meaning", "topology.yaml:15:81", "leave it out"),
    topology("{name: data, size: 1GiB}", "{name: data, on: file, path: a.raw}, {name: more, on: file, path: a.raw}", "two disks", "topology.yaml:15:105", "name another"),
    topology("{name: data, size: 1GiB}", "{name: data, size: 1GiB, format: vmdk}", "\"vmdk\" is not known", "topology.yaml:15:72", "qcow2"),
    topology("{name: data, size: 1GiB}", "{name: labrig-seed, size: 1GiB}", "the seed disk's name", "topology.yaml:15:46", "another name"),
    topology("{name: data, size: 1GiB}", "{name: a-name-of-22-characters, size: 1GiB}", "20 characters at most", "topology.yaml:15:46", "shorten"),
    topology("{name: data, size: 1GiB}", "{name: data, size: 1GiB, io: {read_iops: 0}}", "0 is not", "topology.yaml:15:80", ""),
    topology("{name: data, size: 1GiB}", "{name: data, size: 1GiB, io: {read_bandwidth: 10MiB}}", "no size per second", "topology.yaml:15:85", "100MiB/s"),
    topology("{name: data, size: 1GiB}", "{name: data, size: 1GiB, io: {write_bandwidth: 10Mi/s}}", "unknown unit", "topology.yaml:15:86", "100MiB/s"),
    topology("{name: data, size: 1GiB}", "{name: data, size: 1GiB, io: {write_bandwith: 10MiB/s}}", "unknown key \"write_bandwith\"", "topology.yaml:15:69", "\"write_bandwidth\"?"),
    topology("{name: data, size: 1GiB}", "{name: data, size: 1GiB, filesystem: ext4}", "mounted nowhere", "topology.yaml:15:76", "both or neither"),
    topology("{name: data, size: 1GiB}", "{name: data, size: 1GiB, mount: /data}", "without a filesystem", "topology.yaml:15:71", "both or neither"),
    topology("{name: data, size: 1GiB}", "{name: data, size: 1GiB, mount_options: [noatime]}", "options of a mount", "topology.yaml:15:64", "add mount"),
    topology("{name: data, size: 1GiB}", "{name: data, size: 1GiB, filesystem: ext5, mount: /data}", "\"ext5\" is not known", "topology.yaml:15:76", "ext4"),
    topology("{name: data, size: 1GiB}", "{name: data, size: 1GiB, filesystem: ext4, mount: data}", "is not absolute", "topology.yaml:15:89", "/data"),
    topology("{name: data, size: 1GiB}", "{name: data, size: 1GiB, filesystem: ext4, mount: /}", "root disk's", "topology.yaml:15:89", "/data"),
    topology("{name: data, size: 1GiB}", "{name: data, size: 1GiB, filesystem: ext4, mount: /etc}", "belongs to the system", "topology.yaml:15:89", "/data"),
    topology("{name: data, size: 1GiB}", "{name: data, size: 1GiB, filesystem: ext4, mount: /dev/x}", "belongs to the system", "topology.yaml:15:89", "/data"),
    topology("{name: data, size: 1GiB}", "{name: data, size: 1GiB, filesystem: ext4, mount: /a/../b}", "steps", "topology.yaml:15:89", "/data"),
    topology("{name: data, size: 1GiB}", "{name: data, size: 1GiB, filesystem: ext4, mount: \"/a b\"}", "a character", "topology.yaml:15:89", "/data"),
    topology("{name: data, size: 1GiB}", "{name: data, size: 1GiB, filesystem: ext4, mount: /var/lib/labrig}", "labrig's own", "topology.yaml:15:89", "/data"),
    topology("{name: data, size: 1GiB}", "{name: data, size: 1GiB, filesystem: ext4, mount: /data, mount_options: [\"a b\"]}", "' ' is not allowed", "topology.yaml:15:112", "noatime"),
    topology("{name: data, size: 1GiB}", "{name: data, size: 1GiB, filesystem: ext4, mount: /data}, {name: log, size: 1GiB, filesystem: ext4, mount: /data}", "two disks are mounted on /data", "topology.yaml:15:146", "of its own"),
    topology("{name: data, size: 1GiB}", "{name: data, size: 1GiB, filesystem: xfs, mount: /data}", "the image has no mkfs.xfs", "topology.yaml:15:76", "xfsprogs"),
    topology("    image: micro\n", "    image: micro\n    disks: [{name: data, size: 1GiB, filesystem: xfs, mount: /data}]\n", "a micro image has no mkfs.xfs", "topology.yaml:22:50", "ext4"),
    topology("    image: micro\n", "    image: micro\n    disks: [{name: data, on: lvm, path: /dev/vg0/db}]\n", "cannot be the disk of 2 domains", "topology.yaml:22:41", "{{ name }}"),
    topology("name: root, size: 4GiB", "name: root, size: 4GiB, format: raw", "format has no meaning", "topology.yaml:15:46", "another name"),
    topology("name: root, size: 4GiB", "name: root, on: lvm, path: /dev/vg0/x", "overlay on the image", "topology.yaml:15:30", "disk or ram"),
    topology("name: root, size: 4GiB", "name: root, size: 4GiB, filesystem: ext4, mount: /x", "filesystem has no meaning", "topology.yaml:15:50", "another name"),
    topology("name: root, size: 4GiB", "name: root, on: ram", "\"size\" is missing", "topology.yaml:15:13", ""),
    // Files and templates.
    topology("mode: \"0644\"", "mode: 644", "a text is wanted here, 644 is a number", "topology.yaml:17:50", "quotes"),
    topology("mode: \"0644\"", "mode: \"0888\"", "not a mode", "topology.yaml:17:50", "octal"),
    topology("to: /etc/a", "to: etc/a", "is not absolute", "topology.yaml:17:36", "/etc"),
    topology("to: /etc/a", "to: /etc/../a", "steps", "topology.yaml:17:36", "whole path"),
    topology("to: /etc/a", "to: /etc//a", "steps", "topology.yaml:17:36", "whole path"),
    topology("to: /etc/a", "to: /etc/hosts", "labrig writes itself", "topology.yaml:17:36", "whole path"),
    topology("to: /etc/a", "to: \"/etc/{{ domains }}\"", "undefined variable domains", "topology.yaml:17:36", "template files only"),
    topology("to: /etc/a, mode: \"0644\", vars: {pool: 64M}}", "to: /etc/a, vars: {pool: 1}}, {template: a.tera, to: /etc/a, vars: {pool: 1}}", "/etc/a is written twice", "topology.yaml:17:85", "keep one"),
    topology("template: a.tera", "template: b.tera", "\"b.tera\" is not in", "topology.yaml:17:24", "\"a.tera\"?"),
    topology("template: a.tera", "template: ../f.sh", "not a plain path", "topology.yaml:17:24", "as in"),
    topology("{pool: 64M}", "{pool: \"{{ typo }}\"}", "undefined template variable \"typo\" in vars.pool", "topology.yaml:17:24", "templates see"),
    topology("{pool: 64M}", "{pol: 64M}", "field `pool`", "templates/a.tera:1:16", "\"pol\"?"),
    template("domain.name", "domian.name", "undefined template variable \"domian\"", "templates/a.tera:2:11", "\"domain\"?"),
    template("domain.name", "domain.nam", "field `nam`", "templates/a.tera:2:18", "\"name\"?"),
    template("{{ domain.name }}", "{% if nope %}x{% endif %}", "undefined template variable \"nope\"", "templates/a.tera:2:14", "templates see"),
    template("{{ domain.name }}", "{{ domain.name", "", "templates/a.tera:", ""),
    template("domain.name", "domain.name | shout", "unknown filter `shout`", "templates/a.tera:2:25", ""),
    template("domain.name", "domains.gone.ip", "field `gone`", "templates/a.tera:2:19", "fields there: db, own"),
    // Playbooks.
    playbook("version: 1", "version: 3", "version 3", "playbook.yaml:1:10", "version 1"),
    playbook("topology: topology.yaml\n", "", "\"topology\" is missing", "playbook.yaml:1:1", "quickstart.yaml"),
    playbook("topology: topology.yaml", "topology: gone.yaml", "gone.yaml is not there", "playbook.yaml:3:11", "relative"),
    playbook("load: [web]", "load: [wbe]", "unknown domain \"wbe\"", "playbook.yaml:4:30", "\"web\"?"),
    playbook("load: [web]", "load: []", "no domains", "playbook.yaml:4:23", "at least one"),
    playbook("load: [web]", "load: [web, web1]", "\"web1\" is in this role twice", "playbook.yaml:4:35", "once"),
    playbook("server: [db]", "server: [db], own: [db]", "called like a domain", "playbook.yaml:4:23", "rename"),
    playbook("threads: [1, 2, 4]", "threads: []", "no levels", "playbook.yaml:6:3", "at least one"),
    playbook("threads: [1, 2, 4]", "threads: 4", "a list is wanted", "playbook.yaml:6:12", "1, 2, 4"),
    playbook("threads: [1, 2, 4]", "threads: [1, 2, 1]", "level 1 is given twice", "playbook.yaml:6:19", "repetitions"),
    playbook("threads: [1, 2, 4]", "threads: [1, {a: 2}]", "a single value", "playbook.yaml:6:16", "as in 1"),
    playbook("threads: [1, 2, 4]", "threads: [1, .nan]", "not a number", "playbook.yaml:6:16", "finite"),
    playbook("threads: [1, 2, 4]", "threads: [1]\n  vars: [1]", "cannot be called \"vars\"", "playbook.yaml:7:3", "another name"),
    playbook("threads: [1, 2, 4]", "threads: [1]\n  a-b: [1]", "could not be used", "playbook.yaml:7:3", "subtraction"),
    playbook("repetitions: 6", "repetitions: 0", "0 is not", "playbook.yaml:7:23", "from 1"),
    playbook("order: blocks", "order: random", "\"random\" is not known", "playbook.yaml:7:33", "blocks"),
    playbook("seed: 7", "seed: -7", "-7 is not", "playbook.yaml:7:47", "from 0"),
    playbook("on: server, wait", "on: serve, wait", "unknown role or domain \"serve\"", "playbook.yaml:14:10", "\"server\"?"),
    playbook("wait: {port: 3306}, ", "", "what to do is missing", "playbook.yaml:14:5", "add one of"),
    playbook("wait: {port: 3306}", "wait: {port: 3306}, run: x", "exclude each other", "playbook.yaml:14:38", "keep one"),
    playbook("port: 3306", "port: 70000", "70000 is not", "playbook.yaml:14:31", "65535"),
    playbook("timeout: 10s", "timeout: 10", "10 has no unit", "playbook.yaml:14:47", "60s"),
    playbook("restart: mariadb", "reload: mariadb", "unknown key \"reload\"", "playbook.yaml:13:36", "restart"),
    playbook("restart: mariadb", "restart: \"a; reboot\"", "';' is not allowed", "playbook.yaml:13:45", "mariadb"),
    playbook("from: f.sh", "from: g.sh", "g.sh cannot be read", "playbook.yaml:10:31", "relative"),
    playbook("from: f.sh", "from: /etc/hostname", "absolute path", "playbook.yaml:10:31", "beside"),
    playbook("adapter: sysbench", "adapter: sysbnch", "unknown adapter \"sysbnch\"", "playbook.yaml:15:57", "\"sysbench\"?"),
    playbook("expect: 10s, ", "", "\"expect\" is missing", "playbook.yaml:15:16", "10s"),
    playbook("timeout: 40s", "timeout: 5s", "given up after 5s", "playbook.yaml:15:89", "allow more"),
    playbook("load: {run: \"go {{ threads }}\", adapter: sysbench, expect: 10s, timeout: 40s}", "run: x", "no step of the trial is a load", "playbook.yaml:11:1", "measured"),
    playbook("setup:\n", "setup:\n  - {on: load, load: {run: x, adapter: lines, expect: 1s}}\n", "never measured", "playbook.yaml:9:16", "move it"),
    playbook("wait: {port: 3306}, timeout: 10s", "load: {run: x, adapter: lines, expect: 1s}", "a second load", "playbook.yaml:15:16", "one load"),
    playbook("go {{ threads }}", "go {{ thread }}", "undefined template variable \"thread\"", "playbook.yaml:15:28", "\"threads\"?"),
    playbook("prepare {{ domains.db.ip }}", "prepare {{ threads }}", "undefined template variable \"threads\"", "playbook.yaml:9:23", "setup runs once"),
    playbook("prepare {{ domains.db.ip }}", "prepare {{ domains.dbx.ip }}", "dbx", "playbook.yaml:9:23", ""),
    playbook("prepare {{ domains.db.ip }}", "prepare {{ vars.x }}", "field `x` is not defined", "playbook.yaml:9:23", ""),
    playbook("\"prepare {{ domains.db.ip }}\"", "{{ domains.db.ip }}", "a key must be a plain text", "playbook.yaml:9:24", "quotes"),
    playbook("prepare {{ domains.db.ip }}", "prepare {{ domains", "", "playbook.yaml:9:23", ""),
    playbook("{{ threads }}M", "{{ thread }}M", "undefined template variable \"thread\"", "playbook.yaml:12:39", "\"threads\"?"),
    playbook("primary: true, ", "", "no metric is primary", "playbook.yaml:16:1", "primary: true"),
    playbook("p95: {", "p95: {primary: true, ", "second primary", "playbook.yaml:16:60", "one metric"),
    playbook("better: lower", "better: smaller", "\"smaller\" is not known", "playbook.yaml:16:84", "lower"),
    playbook("unit: ms, ", "", "\"unit\" is missing", "playbook.yaml:16:60", "unit"),
    playbook("within: 10%", "within: 10", "a text is wanted here, 10 is a number", "playbook.yaml:17:21", "10%"),
    playbook("within: 10%", "within: 0%", "not a margin", "playbook.yaml:17:21", "above 0"),
];

/// A table of mistakes, and the files without them.
struct Table {
    topology: &'static str,
    playbook: &'static str,
    common: &'static str,
    rows: &'static [Row],
}

/// All tables: one for each area of the language that has files of its own.
const TABLES: [Table; 2] = [
    Table {
        topology: TOPOLOGY,
        playbook: PLAYBOOK,
        common: "",
        rows: ROWS,
    },
    Table {
        topology: language::TOPOLOGY,
        playbook: SMALL_PLAYBOOK,
        common: language::COMMON,
        rows: language::ROWS,
    },
];

/// A playbook for labs that have a `web` and a `db`.
const SMALL_PLAYBOOK: &str = "\
version: 1
name: oltp
topology: topology.yaml
trial: [{on: db, load: {run: x, adapter: lines, expect: 1s}}]
metrics: {tps: {primary: true, unit: 1/s, better: higher}}
";

/// The notes that a row brings, one line each with its hint.
fn notes(table: &Table, row: &Row) -> (usize, String) {
    let directory = tempfile::tempdir().unwrap();
    let mut texts = [
        ("topology.yaml", table.topology),
        ("playbook.yaml", table.playbook),
        ("templates/a.tera", TEMPLATE),
        ("common.yaml", table.common),
    ]
    .map(|(file, text)| (file, text.to_owned()));
    let (_, text) = texts
        .iter_mut()
        .find(|(file, _)| *file == row.file)
        .unwrap();
    assert!(text.contains(row.old), "{} is not in {}", row.old, row.file);
    *text = text.replacen(row.old, row.new, 1);
    let [topology, playbook, template, common] = texts.map(|(_, text)| text);
    fs::write(directory.path().join("common.yaml"), common).unwrap();
    lay(
        directory.path(),
        topology.as_bytes(),
        playbook.as_bytes(),
        &template,
    );
    let loaded = input::load_playbook(&directory.path().join("playbook.yaml"), &Options::default());
    let Err(notes) = loaded else {
        return (0, String::new());
    };
    let lines = notes
        .0
        .iter()
        .map(|note| format!("{note} | {}", note.hint.as_deref().unwrap_or("")));
    let prefix = format!("{}/", directory.path().display());
    (
        notes.0.len(),
        lines.collect::<Vec<_>>().join("\n").replace(&prefix, ""),
    )
}

#[test]
fn every_mistake_is_noted_where_it_is() {
    let mut wrong = Vec::new();
    let rows = TABLES
        .iter()
        .flat_map(|table| table.rows.iter().map(move |row| (table, row)));
    for (table, row) in rows.clone() {
        let (_, notes) = notes(table, row);
        let found = notes.lines().any(|line| {
            let (what, hint) = line.split_once(" | ").unwrap_or((line, ""));
            what.starts_with(row.at) && what.contains(row.message) && hint.contains(row.hint)
        });
        if !found {
            wrong.push(format!(
                "{:?} -> {:?}\n  wants {} {:?} ({:?})\n  has   {}",
                row.old,
                row.new,
                row.at,
                row.message,
                row.hint,
                notes.replace('\n', "\n        ")
            ));
        }
    }
    assert!(
        wrong.is_empty(),
        "{} of {}:\n{}",
        wrong.len(),
        rows.clone().count(),
        wrong.join("\n")
    );
    let topologies = rows.filter(|(_, row)| row.file != "playbook.yaml").count();
    assert!(topologies >= 120, "{topologies}");
}

#[test]
fn files_that_cannot_be_understood_at_all() {
    let large = vec![b'#'; 100_000_000];
    let laughs = (1..10).fold("a0: &a0 [x]\n".to_owned(), |text, i| {
        format!(
            "{text}a{i}: &a{i} [{}]\n",
            vec![format!("*a{}", i - 1); 9].join(", ")
        )
    });
    let deep = "[".repeat(100_000);
    let wide = format!(
        "version: 1\nname: x\ndomains: {{{}}}\n",
        "a: 1, ".repeat(100_000)
    );
    let utf16: Vec<u8> = "name: x\n"
        .encode_utf16()
        .flat_map(u16::to_le_bytes)
        .collect();
    let cases: [(&[u8], &str, &str); 13] = [
        (laughs.as_bytes(), "t.yaml:2:5", "anchors"),
        (laughs.as_bytes(), "t.yaml:2:10", "aliases"),
        (deep.as_bytes(), "t.yaml:1:256", "recursion limit exceeded"),
        (wide.as_bytes(), "t.yaml:3:17", "\"a\" is given twice"),
        (&utf16, "t.yaml:1:2", "control character"),
        (
            b"7\n",
            "t.yaml:1:1",
            "a map is wanted here, this is a number",
        ),
        (b"\xff\xfen\0", "t.yaml:1:1", "not UTF-8"),
        (b"", "t.yaml:1:1", "is empty"),
        (b"# only a comment\n", "t.yaml:1:1", "is empty"),
        (b"name: x\nb: \xff\n", "t.yaml:2:4", "not UTF-8"),
        (b"a: \x01", "t.yaml:1:4", "not valid YAML"),
        (
            b"- a\n",
            "t.yaml:1:1",
            "a map is wanted here, this is a list",
        ),
        (&large, "", "over 8 MiB"),
    ];
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("t.yaml");
    let load = |file: &Path| match input::load_topology(file, &Options::default()) {
        Ok(_) => panic!("no notes"),
        Err(notes) => notes.to_string(),
    };
    for (content, place, message) in cases {
        fs::write(&file, content).unwrap();
        let notes = load(&file);
        assert!(
            notes.contains(place) && notes.contains(message),
            "{message}: {notes}"
        );
    }
    assert!(load(directory.path()).contains("it is a directory"));
    assert!(load(&directory.path().join("gone.yaml")).contains("No such file"));
}

#[test]
fn a_name_with_a_dash_is_reached_by_brackets() {
    let directory = tempfile::tempdir().unwrap();
    let topology = TOPOLOGY.replace("  own:", "  my-own:");
    lay(
        directory.path(),
        topology.as_bytes(),
        PLAYBOOK.as_bytes(),
        "{{ domains.my-own.ip }}",
    );
    let file = directory.path().join("topology.yaml");
    let Err(notes) = input::load_topology(&file, &Options::default()) else {
        panic!()
    };
    assert!(
        notes.0[0]
            .hint
            .as_deref()
            .unwrap()
            .contains("domains[\"a-b\"]"),
        "{notes}"
    );
    fs::write(
        directory.path().join("templates/a.tera"),
        "{{ domains[\"my-own\"].ip }}",
    )
    .unwrap();
    assert!(input::load_topology(&file, &Options::default()).is_ok());
}

#[test]
fn the_subnets_room_is_counted() {
    let directory = tempfile::tempdir().unwrap();
    let topology = TOPOLOGY
        .replace("count: 2", "count: 6")
        .replace(", {vswitch: \"client{{ index }}\"}", "");
    let topology = topology
        .replace("10.10.0.0/24", "10.10.0.8/29")
        .replace("0.11}", "0.12}");
    lay(
        directory.path(),
        topology.as_bytes(),
        PLAYBOOK.as_bytes(),
        TEMPLATE,
    );
    let file = directory.path().join("topology.yaml");
    let Err(notes) = input::load_topology(&file, &Options::default()) else {
        panic!()
    };
    assert!(
        notes
            .to_string()
            .contains("10.10.0.8/29 has room for 5 vnets, 8 are on it"),
        "{notes}"
    );
}
