//! Wrong database instances and guest settings, one mistake each: the note says what, where, and
//! where the other side of a conflict is.

#![allow(clippy::unwrap_used, reason = "a test may fail")]

use std::fs;
use std::path::Path;

use labrig::diag::Notes;
use labrig::input::{self, Loaded, Options};
use labrig::model::{ImageRecipe, ImageSource, Topology};

/// A topology without a mistake; rows below change one thing in it.
const TOPOLOGY: &str = "\
version: 1
name: crm
images:
  micro: {build: {micro: {}}}
  deb: {build: {suite: bookworm, packages: [mariadb-server]}}
  mine: {path: disk.img}
vswitches: {data: {subnet: 10.10.0.0/24}}
domains:
  db:
    image: deb
    split: {cpus: 1, memory: 512MiB}
    vnets: [{vswitch: data}]
    databases:
      main: {engine: mariadb, socket: /tmp/mysql.sock, datadir: /data/5.0, logdir: /logs/5.0}
      second:
        {engine: mariadb, port: 3307, socket: /tmp/mysql.sock2, datadir: /data/5.0-2, logdir: /logs/5.0-2,
        template: my.cnf.tera, vars: {pool: 64M}, settings: {max_connections: 5000, back_log: 50}}
      directory: {engine: openldap, settings: {threads: 4}}
    files: [{template: a.tera, to: /etc/a}]
    sysctl: {net.core.somaxconn: 1024, net.ipv4.tcp_rmem: 4096 87380 6291456}
    limits: {nofile: {soft: 8192, hard: 16368}, memlock: unlimited, stack: 8MiB}
    packages: [sysbench]
    services: {cron: disabled}
    users: [{name: app, groups: [adm]}]
    ssh_keys: [ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIH/lcCGwGGAFSCtJMjiFVbwFd5AwPAqEnJ3WxSR1+22W me]
  small:
    image: micro
    split: {cpus: 1, memory: 160MiB}
    vnets: [{vswitch: data}]
    sysctl: {vm.swappiness: 1}
    limits: {nofile: 4096}
  own:
    image: mine
    split: {cpus: 1, memory: 160MiB}
    vnets: [{vswitch: data}]
";

const CONFIG: &str = "\
[mariadbd]
port = {{ instance.port }}
socket = {{ instance.socket }}
innodb_buffer_pool_size = {{ vars.pool }}
{% for line in instance.lines %}{{ line.text }}
{% endfor %}
[client]
socket = {{ instance.socket }}
";

fn load(topology: &str, config: &str) -> Result<Loaded<Topology>, Notes> {
    let directory = tempfile::tempdir().unwrap();
    lay(directory.path(), topology, config);
    input::load_topology(&directory.path().join("topology.yaml"), &Options::default())
}

fn lay(directory: &Path, topology: &str, config: &str) {
    fs::create_dir(directory.join("templates")).unwrap();
    fs::write(directory.join("topology.yaml"), topology).unwrap();
    fs::write(directory.join("templates/my.cnf.tera"), config).unwrap();
    let other = "port = {{ domains.db.instances.second.port }}\n";
    fs::write(directory.join("templates/a.tera"), other).unwrap();
    fs::write(directory.join("disk.img"), [0; 4096]).unwrap();
}

/// One change, with the note that it makes: fragments of the message, the place and the hint, and
/// the place of the other side where there is one.
type Row = (
    &'static str,
    &'static str,
    &'static str,
    &'static str,
    &'static str,
    &'static str,
);

// One row a line, however long, so that the table can be read as one.
#[rustfmt::skip]
const ROWS: &[Row] = &[
    // Instances.
    ("main: {engine: mariadb", "main: {engine: mariadbd", "\"mariadbd\" is not known", "topology.yaml:14:22", "\"mariadb\"?", ""),
    ("main: {engine: mariadb, ", "main: {", "\"engine\" is missing", "topology.yaml:14:7", "mariadb", ""),
    ("main: {engine: mariadb", "main: {engin: mariadb, engine: mariadb", "unknown key \"engin\"", "topology.yaml:14:14", "\"engine\"?", ""),
    ("      main:", "      Main:", "'M' is not allowed", "topology.yaml:14:7", "another name", ""),
    ("port: 3307", "port: 0", "0 is not a whole number from 1 to 65535", "topology.yaml:16:33", "", ""),
    ("port: 3307", "port: 22", "the SSH server", "topology.yaml:16:33", "3306", ""),
    ("/data/5.0,", "data/5.0,", "is not absolute", "topology.yaml:14:65", "/srv/data", ""),
    ("/data/5.0,", "/data/../5.0,", "steps", "topology.yaml:14:65", "/srv/data", ""),
    ("/data/5.0,", "/,", "root of the whole system", "topology.yaml:14:65", "/srv/data", ""),
    ("/data/5.0,", "/data/a b,", "holds ' '", "topology.yaml:14:65", "/srv/data", ""),
    ("/data/5.0,", "/proc/data,", "not for servers", "topology.yaml:14:65", "/srv/data", ""),
    ("/tmp/mysql.sock,", "/tmp/a-directory-with-a-name-that-is-much-too-long-for-any-socket/and-one-more-such-directory-in-it/mysql.sock,", "longer than 107", "topology.yaml:14:39", "/tmp/mysql.sock", ""),
    ("engine: openldap,", "engine: openldap, logdir: /logs/ldap,", "no transaction logs", "topology.yaml:18:45", "leave logdir out", ""),
    ("engine: openldap, settings: {threads: 4}", "engine: postgresql, socket: /tmp/pg", "names its socket after its port", "topology.yaml:18:47", "/run/postgresql/.s.PGSQL.5432", ""),
    ("engine: openldap, settings: {threads: 4}", "engine: postgresql, settings: {a: [1, 2]}", "once only", "topology.yaml:18:50", "one text", ""),
    ("back_log: 50", "\"back log\": 50", "no name of an option", "topology.yaml:17:97", "max_connections", ""),
    ("back_log: 50", "back_log: {a: 1}", "a single value is wanted", "topology.yaml:17:85", "", ""),
    ("back_log: 50", "back_log: \"5\\n0\"", "one line", "topology.yaml:17:95", "line breaks", ""),
    ("back_log: 50", "back_log: \"{{ typo }}\"", "undefined template variable \"typo\"", "topology.yaml:17:95", "", ""),
    ("back_log: 50", "back_log: \"{{ domain.nam }}\"", "field `nam`", "topology.yaml:17:95", "", ""),
    ("template: my.cnf.tera", "template: your.cnf.tera", "is not in", "topology.yaml:17:19", "my.cnf.tera", ""),
    ("{pool: 64M}", "{pol: 64M}", "field `pool`", "templates/my.cnf.tera:4:35", "\"pol\"?", "topology.yaml:17:19"),
    // What two on one machine cannot share.
    ("port: 3307, ", "", "instance second and instance main share what they have by default: port 3306", "topology.yaml:15:7", "set port of one of them", "topology.yaml:14:7"),
    ("port: 3307", "port: 3306", "the same port as instance main: 3306", "topology.yaml:16:33", "another port", "topology.yaml:14:7"),
    ("/tmp/mysql.sock2", "/tmp/mysql.sock", "instance second has the same socket as instance main: /tmp/mysql.sock", "topology.yaml:16:47", "another path", "topology.yaml:14:39"),
    ("/data/5.0-2", "/data/5.0", "has the same datadir", "topology.yaml:16:74", "another path", "topology.yaml:14:65"),
    ("/data/5.0-2", "/data/5.0/", "has the same datadir", "topology.yaml:16:74", "another path", "topology.yaml:14:65"),
    ("/data/5.0-2", "/data/5.0/2", "datadir /data/5.0/2 of instance second is below the datadir of instance main", "topology.yaml:16:74", "beside each other", "topology.yaml:14:65"),
    ("/data/5.0-2", "/data", "datadir /data of instance second is above the datadir of instance main", "topology.yaml:16:74", "beside each other", "topology.yaml:14:65"),
    ("/logs/5.0-2", "/logs/5.0", "has the same logdir", "topology.yaml:16:95", "another path", "topology.yaml:14:84"),
    ("/logs/5.0-2", "/data/5.0", "logdir /data/5.0 of instance second is the datadir of instance main", "topology.yaml:16:95", "another path", "topology.yaml:14:65"),
    ("/logs/5.0-2", "/data/5.0-2/logs", "is below the datadir", "topology.yaml:16:95", "beside each other", "topology.yaml:16:74"),
    ("/logs/5.0-2", "/logs/5.0-2, pidfile: /tmp/mysql.sock2", "pidfile /tmp/mysql.sock2 of instance second is the socket", "topology.yaml:16:117", "another path", "topology.yaml:16:47"),
    ("back_log: 50", "extra_port: 3306", "extra_port 3306 of instance second is the port of instance main", "topology.yaml:17:97", "another port", "topology.yaml:14:7"),
    ("to: /etc/a", "to: /data/5.0/my.cnf", "is below the datadir of instance main", "topology.yaml:19:36", "elsewhere", "topology.yaml:14:65"),
    ("to: /etc/a", "to: /var/lib/ldap/DB_CONFIG", "is below the datadir of instance directory", "topology.yaml:19:36", "elsewhere", "topology.yaml:18:7"),
    ("to: /etc/a", "to: /etc/sysctl.d/zz-labrig.conf", "labrig writes itself", "topology.yaml:19:36", "whole path", ""),
    ("to: /etc/a", "to: /etc/labrig/instances/main.cnf", "labrig writes itself", "topology.yaml:19:36", "whole path", ""),
    // Options that say something else than the keys.
    ("back_log: 50", "socket: /tmp/mysql", "socket is /tmp/mysql under [mariadbd], but the socket of instance second is /tmp/mysql.sock2", "topology.yaml:17:93", "as socket of the instance", "topology.yaml:16:47"),
    ("back_log: 50", "port: 3308", "port is 3308", "topology.yaml:17:91", "as port of the instance", "topology.yaml:16:33"),
    ("back_log: 50", "pid-file: /tmp/pid", "pid_file is /tmp/pid", "topology.yaml:17:95", "as pidfile", "topology.yaml:15:7"),
    ("settings: {threads: 4}", "settings: {pidfile: /tmp/pid}", "pidfile is /tmp/pid", "topology.yaml:18:57", "as pidfile", "topology.yaml:18:7"),
    // Settings.
    ("net.core.somaxconn: 1024", "somaxconn: 1024", "\"somaxconn\" is no kernel parameter", "topology.yaml:20:25", "net.core.somaxconn", ""),
    ("net.core.somaxconn: 1024", "net.core../etc: 1", "is no kernel parameter", "topology.yaml:20:30", "net.core.somaxconn", ""),
    ("net.core.somaxconn: 1024", "net.core.somaxconn: true", "wants a number", "topology.yaml:20:34", "1 or 0", ""),
    ("net.core.somaxconn: 1024", "net.core.somaxconn: [1]", "a single value is wanted", "topology.yaml:20:14", "", ""),
    ("net.core.somaxconn: 1024", "net.core.somaxconn: \"it's\"", "without quotes", "topology.yaml:20:34", "", ""),
    ("net.core.somaxconn: 1024", "net/ipv4/tcp_rmem: 1", "the same kernel parameter", "topology.yaml:20:55", "keep one", "topology.yaml:20:33"),
    ("memlock: unlimited", "memlok: unlimited", "unknown key \"memlok\"", "topology.yaml:21:49", "\"memlock\"?", ""),
    ("memlock: unlimited", "memlock: 64", "64 has no unit", "topology.yaml:21:58", "64MiB", ""),
    ("memlock: unlimited", "memlock: 1500B", "whole number of KiB", "topology.yaml:21:58", "64MiB", ""),
    ("soft: 8192, ", "", "\"soft\" is missing", "topology.yaml:21:14", "8192", ""),
    ("soft: 8192", "soft: 20000", "above the hard one", "topology.yaml:21:14", "raise hard", ""),
    ("hard: 16368", "hard: 2000000", "more than 1048576 open files", "topology.yaml:21:14", "fs.nr_open", ""),
    ("hard: 16368", "hard: many", "a whole number", "topology.yaml:21:41", "", ""),
    ("[sysbench]", "[\"--help\"]", "'-' is not allowed", "topology.yaml:22:16", "", ""),
    ("cron: disabled", "cron: off", "\"off\" is not known", "topology.yaml:23:22", "enabled, disabled, masked", ""),
    ("cron: disabled", "ssh: masked", "labrig needs ssh.service", "topology.yaml:23:21", "leave it out", ""),
    ("cron: disabled", "cron: disabled, cron.service: masked", "cron.service is here twice", "topology.yaml:23:46", "keep one", "topology.yaml:23:22"),
    ("cron: disabled", "a b: disabled", "no name of a unit", "topology.yaml:23:21", "cron.service", ""),
    ("name: app", "name: App", "no name for a user", "topology.yaml:24:20", "app", ""),
    ("name: app", "name: root", "root is there", "topology.yaml:24:20", "ssh_keys", ""),
    ("[{name: app", "[{name: app}, {name: app", "user \"app\" is here twice", "topology.yaml:24:26", "keep one", "topology.yaml:24:13"),
    ("groups: [adm]", "groups: [adm, \"a:b\"]", "no name for a user or group", "topology.yaml:24:39", "app", ""),
    ("groups: [adm]", "password: secret123", "no hashed password", "topology.yaml:24:35", "openssl passwd -6", ""),
    ("ssh_keys: [ssh-ed25519 AAAA", "ssh_keys: [ssh-ed25519 BBBB", "no public key", "topology.yaml:25:16", ".pub", ""),
    ("ssh_keys: [ssh-ed25519 AAAA", "ssh_keys: [\"-----BEGIN OPENSSH PRIVATE KEY-----\", ssh-ed25519 AAAA", "a private key", "topology.yaml:25:16", ".pub", ""),
    // What an image or a kind of machine cannot take.
    ("    limits: {nofile: 4096}", "    users: [{name: app}]", "no users but root", "topology.yaml:31:5", "with a suite", ""),
    ("    limits: {nofile: 4096}", "    services: [nginx]", "no services", "topology.yaml:31:5", "with a suite", ""),
    ("    limits: {nofile: 4096}", "    packages: [nginx]", "no packages", "topology.yaml:31:5", "with a suite", ""),
    ("    limits: {nofile: 4096}", "    limits: {core: 1GiB}", "cannot set limit core", "topology.yaml:31:20", "with a suite", ""),
    ("    image: mine", "    packages: [nginx]\n    image: mine", "images that labrig builds", "topology.yaml:33:5", "into the image", ""),
];

#[test]
fn the_example_itself_has_no_notes() {
    match load(TOPOLOGY, CONFIG) {
        Ok(loaded) => assert_eq!(loaded.warnings, Notes::default()),
        Err(notes) => panic!("{notes}"),
    }
}

#[test]
fn each_mistake_is_noted_at_both_its_places() {
    let mut wrong = Vec::new();
    for (old, new, message, at, hint, other) in ROWS {
        assert_eq!(TOPOLOGY.matches(old).count(), 1, "{old}");
        let Err(notes) = load(&TOPOLOGY.replace(old, new), CONFIG) else {
            wrong.push(format!("{new}: no note"));
            continue;
        };
        let place = |place: &labrig::diag::Place| place.to_string();
        let fits = notes.0.iter().any(|note| {
            let other_fits = match *other {
                "" => true,
                other => note
                    .labels
                    .iter()
                    .any(|label| place(&label.place).ends_with(other)),
            };
            note.message.contains(message)
                && note.place.as_ref().is_some_and(|p| place(p).ends_with(at))
                && note.hint.as_deref().unwrap_or_default().contains(hint)
                && other_fits
        });
        if !fits || notes.0.len() != 1 {
            let shown = notes.0.iter().map(|note| {
                let labels = note.labels.iter().map(|label| place(&label.place));
                let labels: Vec<_> = labels.collect();
                format!(
                    "{note} ({}) {labels:?}",
                    note.hint.as_deref().unwrap_or_default()
                )
            });
            wrong.push(format!("{new}:\n{}", shown.collect::<Vec<_>>().join("\n")));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n\n"));
}

#[test]
fn a_slip_in_a_template_is_found_at_its_line() {
    let slip = CONFIG.replace(
        "[client]\nsocket = {{ instance.socket }}",
        "[client]\nsocket = /tmp/mysql",
    );
    let Err(notes) = load(TOPOLOGY, &slip) else {
        panic!("no note")
    };
    let [note] = notes.0.as_slice() else {
        panic!("{notes}")
    };
    assert_eq!(
        note.message,
        "socket is /tmp/mysql under [client], but the socket of instance second is /tmp/mysql.sock2"
    );
    let place = note.place.as_ref().unwrap().to_string();
    assert!(place.ends_with("templates/my.cnf.tera:8:1"), "{place}");
    let labels: Vec<_> = note
        .labels
        .iter()
        .map(|label| (label.place.line, label.text.as_str()))
        .collect();
    assert_eq!(labels, [(16, "the socket"), (17, "rendered for this")]);
}

#[test]
fn packages_of_a_domain_make_an_image_of_its_own() {
    let Ok(loaded) = load(TOPOLOGY, CONFIG) else {
        panic!()
    };
    let db = loaded.value.domain("db").unwrap();
    let image = &loaded.value.images[&db.guest().unwrap().image];
    let ImageSource::Build(ImageRecipe::Debian { packages, .. }) = &image.source else {
        panic!("{image:?}")
    };
    assert_eq!(packages, &["mariadb-server", "sysbench"]);
}

#[test]
fn keys_of_every_kind_and_several_forms_are_taken() {
    let keys = "ssh_keys: ['ssh-rsa AAAAB3NzaC1yc2EAAAADAQABAAABAQCQ022bjxjCBpWA95GZzUFuwJ1RhriyL1y9RsbNFq5fSMmIrbk1JWTuiJEfhdUDPRHplpRSdxXz1tCiTNn2hWKoM+w297Fnc/CiH4WF//2R+W5BnJGbsMqQiQUQaImgRnv/4/vVn0HYwOizz+CXg+Yxk6Il4CNL+4vOtM5UUM4gG00RCadpivpUzF9+hWFG4a65loH2chqiE4zinO4t5iyeCriWSN0Pa7ft9qf9OOv19btFFrEAhWXnlsZWzjRLm++TQ+tuE7W44ZjJlCkLeRRZqr57iLHndLojZd0EngwV92506RyOAfTYNkIGxFradOJzuK/7IJ2HAOaU5rAuf3yh me', 'ecdsa-sha2-nistp256 AAAAE2VjZHNhLXNoYTItbmlzdHAyNTYAAAAIbmlzdHAyNTYAAABBBCtm6NARuHv3jSzAT3WVHYpakey2OBILYGOziuqVgXTIk/w6muZlwM0pjxdGBkfjkzWPkEotnZxlfIN/edqJ6lw= me', 'from=\"10.0.0.0/8\" ssh-rsa AAAAB3NzaC1yc2EAAAADAQABAAABAQCQ022bjxjCBpWA95GZzUFuwJ1RhriyL1y9RsbNFq5fSMmIrbk1JWTuiJEfhdUDPRHplpRSdxXz1tCiTNn2hWKoM+w297Fnc/CiH4WF//2R+W5BnJGbsMqQiQUQaImgRnv/4/vVn0HYwOizz+CXg+Yxk6Il4CNL+4vOtM5UUM4gG00RCadpivpUzF9+hWFG4a65loH2chqiE4zinO4t5iyeCriWSN0Pa7ft9qf9OOv19btFFrEAhWXnlsZWzjRLm++TQ+tuE7W44ZjJlCkLeRRZqr57iLHndLojZd0EngwV92506RyOAfTYNkIGxFradOJzuK/7IJ2HAOaU5rAuf3yh me']";
    let old = TOPOLOGY
        .lines()
        .find(|line| line.contains("ssh_keys"))
        .unwrap();
    let topology = TOPOLOGY
        .replace(old, &format!("    {keys}"))
        .replace(
            "services: {cron: disabled}",
            "services: [cron, fstrim.timer]",
        )
        .replace(
            "groups: [adm]",
            "system: true, password: '$6$abcdefgh$ijklmnopqrst'",
        );
    match load(&topology, CONFIG) {
        Err(notes) => panic!("{notes}"),
        Ok(loaded) => {
            let settings = &loaded.value.domain("db").unwrap().settings;
            assert_eq!(settings.ssh_keys.len(), 3);
            let units: Vec<_> = settings.services.keys().collect();
            assert_eq!(units, ["cron.service", "fstrim.timer"]);
            assert_eq!(settings.users[0].shell, "/usr/sbin/nologin");
        }
    }
}
