//! A lab under test, in directories of its own.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

use labrig::backend::images::Store;
use labrig::input;
use labrig::model::Image;
use labrig::ports::{ImageFiles, ImageStore};

use super::{Ended, Process, Running};

/// A topology's file with a state directory of its own; taken down when dropped, and then nothing
/// of it may be left.
pub struct Lab {
    name: String,
    directory: tempfile::TempDir,
    binary: PathBuf,
    /// Words before the binary: a program that runs it elsewhere or as somebody else.
    prefix: Vec<String>,
    /// Whether its libvirtd is not its own.
    on_shared_host: bool,
    /// Environment variables for labrig, beside those of the test.
    environment: Vec<(String, String)>,
}

impl Lab {
    /// A lab with this topology, whose `name:` is given too. Images come from a store that all
    /// tests share, so that they are built once.
    pub fn new(name: &str, topology: &str) -> Self {
        let lab = Self::with_own_images(name, topology);
        for shared in ["images", "cache"] {
            let store = Path::new(env!("CARGO_TARGET_TMPDIR")).join(shared);
            fs::create_dir_all(&store).unwrap();
            symlink(store, lab.state().join(shared)).unwrap();
        }
        lab
    }

    /// The same with an empty image store.
    pub fn with_own_images(name: &str, topology: &str) -> Self {
        // The path of a unix socket has 107 bytes at most, which a long TMPDIR would use up.
        let directory = tempfile::Builder::new()
            .prefix("labrig-")
            .tempdir_in("/tmp")
            .unwrap();
        let lab = Self {
            name: name.to_owned(),
            directory,
            binary: env!("CARGO_BIN_EXE_labrig").into(),
            prefix: Vec::new(),
            on_shared_host: false,
            environment: Vec::new(),
        };
        fs::create_dir(lab.state()).unwrap();
        fs::create_dir_all(lab.path("home")).unwrap();
        lab.write("topology.yaml", topology);
        lab
    }

    /// Runs a copy of the binary, in the lab's directory, through the words given: the words of a
    /// program that runs it as somebody else.
    pub fn as_somebody_else(&mut self, prefix: Vec<String>) {
        let copy = self.path("labrig");
        fs::copy(&self.binary, &copy).unwrap();
        self.binary = copy;
        self.prefix = prefix;
    }

    /// Runs the binary through the words given: those of a program that runs it beside a libvirtd
    /// that is not the lab's own.
    pub fn on_shared_host(&mut self, prefix: Vec<String>) {
        self.prefix = prefix;
        self.on_shared_host = true;
    }

    /// Sets an environment variable for labrig.
    pub fn set(&mut self, name: &str, value: &str) {
        self.environment.push((name.to_owned(), value.to_owned()));
    }

    /// Words of a program that runs another one in a directory, in the network of this lab's host.
    pub fn inside(&self, directory: &Path) -> Vec<String> {
        let host = self.state().join("labs").join(&self.name).join("host/pid");
        let pid = fs::read_to_string(host).unwrap();
        let mut words = vec!["nsenter", "--target", pid.trim(), "--net"];
        if !nix::unistd::Uid::effective().is_root() {
            words.extend(["--user", "--preserve-credentials"]);
        }
        let enter = "cd \"$0\" && exec \"$@\"";
        words.extend(["--", "sh", "-c", enter, directory.to_str().unwrap()]);
        words.into_iter().map(ToOwned::to_owned).collect()
    }

    /// The directory everything of it is in.
    pub fn directory(&self) -> &Path {
        self.directory.path()
    }

    /// A path in its directory.
    pub fn path(&self, name: &str) -> PathBuf {
        self.directory().join(name)
    }

    /// Its state directory.
    pub fn state(&self) -> PathBuf {
        self.path("state")
    }

    /// Directories of labs, and whatever else is beside them.
    pub fn labs_entries(&self) -> Vec<String> {
        let Ok(entries) = fs::read_dir(self.state().join("labs")) else {
            return Vec::new();
        };
        entries
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect()
    }

    /// Writes a file beside the topology.
    pub fn write(&self, name: &str, content: impl AsRef<[u8]>) -> PathBuf {
        let path = self.path(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, content).unwrap();
        path
    }

    /// Starts labrig in the lab's directory.
    pub fn start<S: AsRef<OsStr>>(&self, args: impl IntoIterator<Item = S>) -> Running {
        let mut command = match self.prefix.split_first() {
            None => Command::new(&self.binary),
            Some((program, rest)) => {
                let mut command = Command::new(program);
                command.args(rest).arg(&self.binary);
                command
            }
        };
        for (name, _) in std::env::vars_os() {
            let text = name.to_string_lossy();
            if ["LABRIG_", "XDG_", "LC_", "LIBVIRT_", "VIRSH_"]
                .iter()
                .any(|p| text.starts_with(p))
            {
                command.env_remove(name);
            }
        }
        command
            .args(args)
            .envs(self.environment.iter().cloned())
            .current_dir(self.directory())
            .env("HOME", self.path("home"))
            .env("TERM", "dumb")
            .env("LABRIG_STATE_DIR", self.state());
        Running::start(command)
    }

    /// Runs labrig in the lab's directory to its end.
    #[track_caller]
    pub fn labrig<S: AsRef<OsStr>>(&self, args: impl IntoIterator<Item = S>) -> Ended {
        self.start(args).end()
    }

    #[track_caller]
    pub fn up(&self) -> Ended {
        self.labrig(["up", "topology.yaml"])
    }

    #[track_caller]
    pub fn down(&self) -> Ended {
        self.labrig(["down", &self.name])
    }

    /// What a command prints on a domain, where it must succeed.
    #[track_caller]
    pub fn exec(&self, domain: &str, command: &str) -> String {
        let ended = self.labrig(["exec", &self.name, domain, "--", command]);
        ended.exits(0).stdout.trim_end().to_owned()
    }

    /// What tells one boot of a domain from another.
    #[track_caller]
    pub fn boot_id(&self, domain: &str) -> String {
        self.exec(domain, "cat /proc/sys/kernel/random/boot_id")
    }

    /// `status --json` of one domain.
    #[track_caller]
    pub fn status(&self, domain: &str) -> serde_json::Value {
        let labs = self.labrig(["status", &self.name, "--json"]).exits(0);
        let domains = labs.json()[0]["domains"].clone();
        let domains = domains.as_array().unwrap();
        domains
            .iter()
            .find(|d| d["name"] == domain)
            .cloned()
            .unwrap_or_default()
    }

    /// The lab's record, as it is kept.
    pub fn record(&self) -> serde_json::Value {
        serde_json::from_slice(&fs::read(self.record_file()).unwrap()).unwrap()
    }

    pub fn record_file(&self) -> PathBuf {
        self.state().join("labs").join(&self.name).join("lab.json")
    }

    /// All processes of all labs in its state directory, and of commands on them.
    pub fn processes(&self) -> Vec<Process> {
        if self.on_shared_host {
            Process::naming(self.directory())
        } else {
            Process::around(self.directory())
        }
    }

    /// The QEMU of one domain.
    #[track_caller]
    pub fn qemu(&self, domain: &str) -> Process {
        let guest = format!("guest=labrig-{}.{domain},", self.name);
        let found: Vec<_> = self
            .processes()
            .into_iter()
            .filter(|process| process.command.contains(&guest))
            .collect();
        assert_eq!(found.len(), 1, "{found:?}");
        found[0].clone()
    }

    /// Nothing is left of any lab: no process, no file, no mount.
    #[track_caller]
    pub fn assert_nothing_left(&self) {
        assert_eq!(self.processes(), []);
        assert_eq!(self.labs_entries(), [""; 0]);
        let mounts = fs::read_to_string("/proc/self/mountinfo").unwrap();
        assert!(!mounts.contains(self.directory().to_str().unwrap()));
    }

    /// The micro image's files, made when they are not there yet.
    pub fn micro_image(&self) -> ImageFiles {
        let store = Store::open(self.state().join("images"));
        store.ensure(&self.image(), &|_| {}).unwrap()
    }

    /// Takes the lock that the store holds while it makes the image.
    pub fn hold_image_lock(&self) -> fs::File {
        let locks = self.state().join("images/locks");
        fs::create_dir_all(&locks).unwrap();
        let file = fs::File::create(locks.join(self.image().key.to_string())).unwrap();
        file.lock().unwrap();
        file
    }

    /// The image its topology uses.
    fn image(&self) -> Image {
        let topology =
            input::load_topology(&self.path("topology.yaml"), &input::Options::default()).unwrap();
        let mut images = topology.value.images.into_values();
        images.next().expect("the topology uses an image")
    }

    /// Last lines of all consoles, for whoever reads why a test failed.
    fn show_consoles(&self) {
        for name in self.labs_entries() {
            let consoles = self.state().join("labs").join(name).join("console");
            for entry in fs::read_dir(consoles).into_iter().flatten().flatten() {
                let text = fs::read(entry.path()).unwrap_or_default();
                let text = String::from_utf8_lossy(&text);
                let lines: Vec<_> = text.lines().collect();
                let tail = lines[lines.len().saturating_sub(15)..].join("\n");
                eprintln!("--- {}\n{tail}", entry.path().display());
            }
        }
    }
}

impl Drop for Lab {
    fn drop(&mut self) {
        let failed = thread::panicking();
        if failed {
            self.show_consoles();
        }
        let before = self.processes();
        let down = thread::scope(|scope| {
            // A panic in here must not abort the test's own report.
            let all = scope.spawn(|| {
                for name in self.labs_entries() {
                    if !name.ends_with(".lock") {
                        self.labrig(["down", &name]).exits(0);
                    }
                }
            });
            all.join()
        });
        let mut left = before;
        left.extend(self.processes());
        // What the tests started may take a moment to see its end.
        let patience = Instant::now() + Duration::from_secs(5);
        while left.iter().any(Process::is_alive) && Instant::now() < patience {
            thread::sleep(Duration::from_millis(20));
        }
        left.retain(Process::is_alive);
        left.iter().for_each(Process::kill);
        if !failed {
            assert!(down.is_ok(), "down failed");
            assert!(left.is_empty(), "left after down: {left:?}");
        }
    }
}
