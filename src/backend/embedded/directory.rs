//! Where an embedded host keeps its files.

use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use fs_err as fs;

use super::EmbeddedError;

/// libvirtd's own directories, and what is bound over them inside the namespaces.
const BINDINGS: [(&str, &str); 6] = [
    ("run", "/run/libvirt"),
    ("lib", "/var/lib/libvirt"),
    ("etc", "/etc/libvirt"),
    ("log", "/var/log/libvirt"),
    // The TPM emulator's, where it is installed.
    ("swtpm-log", "/var/log/swtpm"),
    ("swtpm-ca", "/var/lib/swtpm-localca"),
];

/// Guests run as the namespaces' root: no other user is sure to exist in there, and the
/// namespaces are the fence. `stdio_handler = "file"` does without virtlogd.
const QEMU_CONF: &str = r#"user = "+0"
group = "+0"
swtpm_user = "root"
swtpm_group = "root"
dynamic_ownership = 0
remember_owner = 0
cgroup_controllers = []
namespaces = []
security_driver = "none"
stdio_handler = "file"
"#;

/// libvirtd does as it is told by whoever connects: only its owner may. libvirt's own default is a
/// socket for everyone, which polkit guards where there is one.
const LIBVIRTD_CONF: &str = r#"auth_unix_rw = "none"
unix_sock_group = "root"
unix_sock_rw_perms = "0700"
unix_sock_ro_perms = "0700"
"#;

/// Longest path of a unix socket (`sun_path` of unix(7), less its NUL).
pub const SOCKET_PATH_MAX: usize = 107;

/// The directory of one embedded host.
#[derive(Debug, Clone)]
pub struct HostDirectory {
    root: PathBuf,
    cache: PathBuf,
}

impl HostDirectory {
    /// Names a directory for the host, and one for libvirt's cache, which several hosts share.
    pub fn new(root: PathBuf, cache: PathBuf) -> Self {
        Self { root, cache }
    }

    /// Checks that the place can hold a host; makes nothing.
    ///
    /// # Errors
    /// When sockets would have too long a path, or it is below `/run`, which is another one inside
    /// the namespaces.
    pub fn check(&self) -> Result<(), EmbeddedError> {
        let refuse = |why: String| EmbeddedError::Directory {
            directory: self.root.clone(),
            why,
        };
        let longest = self.libvirt_socket();
        if longest.as_os_str().len() > SOCKET_PATH_MAX {
            return Err(refuse(format!(
                "the socket {} has a path of over {SOCKET_PATH_MAX} bytes",
                longest.display()
            )));
        }
        if self.root.starts_with("/run") {
            return Err(refuse(
                "/run is not the same inside the lab's namespaces".to_owned(),
            ));
        }
        Ok(())
    }

    /// Makes the directories and configuration files; does no harm to a host that runs.
    ///
    /// # Errors
    /// As [`Self::check`], and when a file cannot be written.
    pub fn prepare(&self) -> Result<(), EmbeddedError> {
        self.check()?;
        fs::create_dir_all(&self.cache)?;
        fs::create_dir_all(&self.root)?;
        // Whoever reaches the sockets in here rules the host; libvirtd asks nobody who he is.
        fs::set_permissions(&self.root, Permissions::from_mode(0o700))?;
        for (name, _) in BINDINGS {
            fs::create_dir_all(self.root.join(name))?;
        }
        write_if_new(&self.root.join("etc/qemu.conf"), QEMU_CONF)?;
        write_if_new(&self.root.join("etc/libvirtd.conf"), LIBVIRTD_CONF)?;
        Ok(())
    }

    /// What to bind over what inside the namespaces, where that is there.
    pub(super) fn bindings(&self) -> impl Iterator<Item = (PathBuf, &'static Path)> {
        BINDINGS
            .iter()
            .map(|(name, target)| (self.root.join(name), Path::new(*target)))
            .chain([(self.cache.clone(), Path::new("/var/cache/libvirt"))])
    }

    /// The directory itself.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// The directory of libvirt's cache.
    pub(super) fn cache(&self) -> &Path {
        &self.cache
    }

    /// Locked as long as anything of the host lives.
    pub(super) fn lock(&self) -> PathBuf {
        self.root.join("lock")
    }

    /// Holds the process id of the host's outermost process.
    pub(super) fn pid(&self) -> PathBuf {
        self.root.join("pid")
    }

    /// What the host's processes print.
    pub(super) fn log(&self) -> PathBuf {
        self.root.join("host.log")
    }

    /// Where the init hands out sockets.
    pub fn socket_service(&self) -> PathBuf {
        self.root.join("sockets")
    }

    /// libvirtd's socket, as seen from outside.
    pub fn libvirt_socket(&self) -> PathBuf {
        self.root.join("run/libvirt-sock")
    }

    /// The URI that connects to its libvirtd from outside.
    pub fn uri(&self) -> String {
        format!(
            "qemu+unix:///system?socket={}",
            self.libvirt_socket().display()
        )
    }

    /// Last lines of the log.
    pub(super) fn log_tail(&self) -> String {
        const LINES: usize = 12;
        let log = fs::read(self.log()).unwrap_or_default();
        let log = String::from_utf8_lossy(&log);
        let lines: Vec<_> = log.lines().collect();
        lines[lines.len().saturating_sub(LINES)..].join("\n")
    }
}

fn write_if_new(path: &Path, content: &str) -> std::io::Result<()> {
    if fs::read(path).is_ok_and(|old| old == content.as_bytes()) {
        return Ok(());
    }
    fs::write(path, content)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_owner_reaches_the_sockets() {
        let place = tempfile::tempdir().unwrap();
        let host = HostDirectory::new(place.path().join("host"), place.path().join("cache"));
        host.prepare().unwrap();
        let mode = fs::metadata(host.root()).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o700);
    }
}
