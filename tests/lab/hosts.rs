//! Labs of ordinary users, and labs on a libvirtd that others use as well.

use std::fs;
use std::os::unix::fs::chown;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use labrig::backend::embedded::{HostDirectory, request_socket};
use nix::unistd::Uid;

use super::SOLO;
use super::common::{Ended, Lab, Process, Running, until};

/// An id that no system gives to its users by itself.
const USER: u32 = 61_234;

#[test]
fn an_ordinary_user_needs_no_root() {
    // What frames meet is set in the user's own namespaces, too; CPUs of its own and a TPM need no
    // root either.
    let slow = "10.10.0.11, inbound: {bandwidth: 80Mbit/s}, outbound: {bandwidth: 40Mbit/s}";
    let text = SOLO
        .replace("10.10.0.11", slow)
        .replace("memory: 160MiB", "memory: 160MiB, pin: auto")
        .replace(
            "    image: micro\n",
            "    image: micro\n    machine: {tpm: true}\n",
        );
    let mut lab = Lab::with_own_images("solo", &text);
    if Uid::effective().is_root() {
        become_ordinary(&mut lab);
    }
    // The image is built by that user as well.
    lab.up().exits(0).says("unpacking packages");
    assert_eq!(lab.exec("a", "hostname"), "a");
    lab.exec("a", "ping -c 1 -W 10 10.10.0.1");
    lab.up().exits(0).says("nothing to do");
    let processes = lab.processes();
    assert!(processes.iter().any(|p| p.command.contains("qemu-system")));
    assert!(!processes.iter().any(Process::is_of_root), "{processes:?}");
    lab.down().exits(0);
    lab.assert_nothing_left();
}

/// Lets a lab be an ordinary user's that exists only there: it sees a copy of `/etc` that knows the
/// user and a range of subordinate ids. The machine's own users are not touched.
fn become_ordinary(lab: &mut Lab) {
    let etc = lab.path("etc");
    let copied = Command::new("cp").arg("-a").arg("/etc").arg(&etc).status();
    assert!(copied.unwrap().success());
    let home = lab.path("home");
    let append = |file: &str, line: String| {
        let file = etc.join(file);
        let before = fs::read_to_string(&file).unwrap_or_default();
        fs::write(&file, format!("{}\n{line}\n", before.trim_end())).unwrap();
    };
    append(
        "passwd",
        format!("labrig-test:x:{USER}:{USER}::{}:/bin/sh", home.display()),
    );
    append("group", format!("labrig-test:x:{USER}:"));
    append("subuid", "labrig-test:900000000:65536".to_owned());
    append("subgid", "labrig-test:900000000:65536".to_owned());
    let script = format!(
        "mount --bind \"$0/etc\" /etc && exec setpriv --reuid {USER} --regid {USER} --init-groups \
         --inh-caps=-all -- \"$@\""
    );
    let directory = lab.directory().to_str().unwrap().to_owned();
    let words = ["unshare", "--mount", "--", "sh", "-c", &script, &directory];
    lab.as_somebody_else(words.map(ToOwned::to_owned).into());
    for path in [lab.directory(), &lab.state(), &home] {
        chown(path, Some(USER), Some(USER)).unwrap();
    }
}

/// libvirt takes CPU shares where it has no control groups, and says nothing.
#[test]
fn cpu_shares_without_effect_are_an_error() {
    let host = SharedHost::start();
    let text = SOLO.replace("memory: 160MiB", "memory: 160MiB, shares: 512");
    let mut lab = Lab::new("solo", &text);
    lab.on_shared_host(host.prefix(lab.directory()));
    lab.labrig(["up", "topology.yaml", "--host", "qemu:///system"])
        .exits(4)
        .says("no CPU shares, which need control groups, instead of 512");
}

#[test]
fn a_lab_on_a_shared_host_touches_nothing_of_others() {
    let host = SharedHost::start();
    let mut lab = Lab::new("solo", SOLO);
    lab.on_shared_host(host.prefix(lab.directory()));
    let up = || lab.labrig(["up", "topology.yaml", "--host", "qemu:///system"]);
    host.define(
        "net",
        "<network><name>strange</name><bridge name='strange0'/></network>",
    );
    host.virsh(&["net-start", "strange"]);
    host.define("", &stranger("strange"));

    // Somebody else's domain that has the name by chance stays as it is, and is no hindrance to `down`.
    host.define("", &stranger("labrig-solo.a"));
    let before = host.virsh(&["dumpxml", "labrig-solo.a"]).stdout;
    up().exits(4)
        .says("domain labrig-solo.a: it belongs to something else than labrig")
        .says("--name");
    lab.down().exits(0);
    assert_eq!(host.virsh(&["dumpxml", "labrig-solo.a"]).stdout, before);
    assert_eq!(host.names("net-list"), ["strange"]);
    host.virsh(&["undefine", "labrig-solo.a"]);

    up().exits(0);
    assert_eq!(lab.exec("a", "hostname"), "a");
    assert_eq!(host.names("list"), ["labrig-solo.a", "strange"]);
    assert_eq!(host.names("net-list"), ["labrig-solo.data", "strange"]);
    up().exits(0).says("nothing to do");
    lab.labrig(["up", "topology.yaml", "--host", "embedded"])
        .exits(2)
        .says("it is on qemu:///system");

    lab.down().exits(0);
    assert_eq!(host.names("list"), ["strange"]);
    assert_eq!(host.names("net-list"), ["strange"]);
    lab.assert_nothing_left();
}

#[test]
fn a_lab_on_a_shared_host_goes_by_its_tags_when_its_record_is_lost() {
    let host = SharedHost::start();
    let mut lab = Lab::new("solo", SOLO);
    lab.on_shared_host(host.prefix(lab.directory()));
    lab.labrig(["up", "topology.yaml", "--host", "qemu:///system"])
        .exits(0);
    fs::remove_dir_all(lab.state().join("labs")).unwrap();
    lab.labrig(["down", "solo", "--host", "qemu:///system"])
        .exits(0);
    assert_eq!(host.names("list"), [""; 0]);
    assert_eq!(host.names("net-list"), [""; 0]);
    lab.assert_nothing_left();
}

fn stranger(name: &str) -> String {
    format!(
        "<domain type='qemu'><name>{name}</name><memory>65536</memory><os><type>hvm</type></os></domain>"
    )
}

/// A libvirtd that serves `qemu:///system` to whoever runs in its namespaces.
pub(super) struct SharedHost {
    directory: tempfile::TempDir,
    holder: Child,
    init: String,
}

impl SharedHost {
    pub(super) fn start() -> Self {
        let directory = tempfile::Builder::new()
            .prefix("labrig-host-")
            .tempdir_in("/tmp")
            .unwrap();
        let (root, cache) = (
            directory.path().join("host"),
            directory.path().join("cache"),
        );
        let host = HostDirectory::new(root.clone(), cache.clone());
        host.prepare().unwrap();
        let holder = Command::new(env!("CARGO_BIN_EXE_labrig"))
            .args(["__host", "--mask-kvm"])
            .args([&root, &cache])
            .stdout(Stdio::null())
            .stderr(fs::File::create(directory.path().join("log")).unwrap())
            .spawn()
            .unwrap();
        until("the host hands out sockets", || {
            request_socket(&host.socket_service()).is_ok()
        });
        let children = format!("/proc/{0}/task/{0}/children", holder.id());
        let init = fs::read_to_string(children).unwrap().trim().to_owned();
        let this = Self {
            directory,
            holder,
            init,
        };
        until("libvirtd answers", || this.try_virsh(&["version"]).is_ok());
        this
    }

    /// Words of a program that runs another one in the host's namespaces, in the directory.
    pub(super) fn prefix(&self, directory: &Path) -> Vec<String> {
        let mut words = vec!["nsenter", "--target", &self.init, "--net", "--mount"];
        if !Uid::effective().is_root() {
            words.extend(["--user", "--preserve-credentials"]);
        }
        let enter = "cd \"$0\" && exec \"$@\"";
        words.extend(["--", "sh", "-c", enter, directory.to_str().unwrap()]);
        words.into_iter().map(ToOwned::to_owned).collect()
    }

    fn try_virsh(&self, args: &[&str]) -> Result<Ended, Ended> {
        let prefix = self.prefix(self.directory.path());
        let mut command = Command::new(&prefix[0]);
        command
            .args(&prefix[1..])
            .args(["virsh", "--connect", "qemu:///system"]);
        let ended = Running::start({
            command.args(args);
            command
        })
        .end();
        if ended.is_good() {
            Ok(ended)
        } else {
            Err(ended)
        }
    }

    /// Runs a shell script in the host's namespaces, where it must succeed.
    #[track_caller]
    pub(super) fn sh(&self, script: &str) {
        let prefix = self.prefix(self.directory.path());
        let mut command = Command::new(&prefix[0]);
        command.args(&prefix[1..]).args(["sh", "-e", "-c", script]);
        Running::start(command).end().exits(0);
    }

    #[track_caller]
    fn virsh(&self, args: &[&str]) -> Ended {
        match self.try_virsh(args) {
            Ok(ended) => ended,
            Err(ended) => ended.exits(0),
        }
    }

    /// Defines a network (`kind` is `net`) or a domain (`kind` is empty).
    #[track_caller]
    fn define(&self, kind: &str, xml: &str) {
        let file = self.directory.path().join("definition.xml");
        fs::write(&file, xml).unwrap();
        let verb = if kind.is_empty() {
            "define".to_owned()
        } else {
            format!("{kind}-define")
        };
        self.virsh(&[&verb, file.to_str().unwrap()]);
    }

    /// Names of all domains (`list`) or networks (`net-list`).
    #[track_caller]
    fn names(&self, verb: &str) -> Vec<String> {
        let listed = self.virsh(&[verb, "--all", "--name"]).stdout;
        let names = listed
            .lines()
            .map(str::trim)
            .filter(|name| !name.is_empty());
        let mut names: Vec<_> = names.map(ToOwned::to_owned).collect();
        names.sort();
        names
    }
}

impl Drop for SharedHost {
    fn drop(&mut self) {
        // The first process outside ends with the init, which `unshare --kill-child` kills with it.
        let _ = self.holder.kill();
        let _ = self.holder.wait();
    }
}
