//! What a recipe adds to a root filesystem: packages on top of a finished one, files, and what
//! commands do in it.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use super::builder::BuildError;
use crate::model::{BuildFile, Digest, FileContent};

/// How a layer's packages are installed: by the host's apt, as mmdebstrap does it.
const INSTALL: &str = "APT_CONFIG=$MMDEBSTRAP_APT_CONFIG apt-get --yes \
    -o Dir::Bin::dpkg=env -o DPkg::Options::=--unset=TMPDIR -o DPkg::Options::=dpkg \
    -o DPkg::Chroot-Directory=\"$root\" install";

/// The script's head. Commands see the same environment whoever builds, but for the proxies that
/// the host needs. Files are written from inside: a link in the image must not lead out of it.
const HEAD: &str = r#"set -eu
root=$1
here=$(dirname "$0")
inside() {
    env -i PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin HOME=/root \
        LC_ALL=C.UTF-8 DEBIAN_FRONTEND=noninteractive \
        ${http_proxy:+http_proxy="$http_proxy"} ${https_proxy:+https_proxy="$https_proxy"} \
        ${no_proxy:+no_proxy="$no_proxy"} chroot "$root" "$@"
}
put() {
    inside /bin/sh -ec 'mkdir -p "$(dirname "$1")"; cat >"$1"; chmod "$2" "$1"' put "$2" "$3" <"$here/$1"
}
run() {
    echo "I: labrig: running $1" >&2
    inside /bin/sh -ec "$1" </dev/null >&2 || {
        echo "E: the recipe's command failed: $1" >&2
        exit 1
    }
}
"#;

/// What is added.
#[derive(Debug, Clone, Copy, Default)]
pub struct Additions<'a> {
    /// Packages that the root filesystem does not have yet.
    pub packages: &'a [String],
    /// Files, in order.
    pub files: &'a [BuildFile],
    /// Shell commands, in order.
    pub run: &'a [String],
}

impl Additions<'_> {
    /// Lays out files and a script below `directory`, and gives the script: `sh SCRIPT ROOT` adds
    /// all to a root filesystem. None when there is nothing to add.
    ///
    /// # Errors
    /// When a file cannot be read, or is not what it was.
    pub fn lay_out(&self, directory: &Path) -> Result<Option<PathBuf>, BuildError> {
        if self.packages.is_empty() && self.files.is_empty() && self.run.is_empty() {
            return Ok(None);
        }
        let directory = directory.join("additions");
        fs_err::create_dir(&directory)?;
        let mut script = HEAD.to_owned();
        if !self.packages.is_empty() {
            script.push_str(INSTALL);
            for package in self.packages {
                let _ = write!(script, " {}", quoted(package));
            }
            script.push_str(" </dev/null >&2\n");
        }
        for (i, file) in self.files.iter().enumerate() {
            fs_err::write(directory.join(i.to_string()), content(file)?)?;
            let _ = writeln!(script, "put {i} {} {:04o}", quoted(&file.to), file.mode);
        }
        for command in self.run {
            let _ = writeln!(script, "run {}", quoted(command));
        }
        let path = directory.join("apply");
        fs_err::write(&path, script)?;
        Ok(Some(path))
    }
}

/// Content of a file that goes into an image.
///
/// # Errors
/// When the file it comes from cannot be read, or is not what it was.
pub fn content(file: &BuildFile) -> Result<Vec<u8>, BuildError> {
    match &file.content {
        FileContent::Text(text) => Ok(text.clone().into_bytes()),
        FileContent::Path { path, sha256 } => {
            let content = fs_err::read(path)?;
            if Digest::of(&content) == *sha256 {
                Ok(content)
            } else {
                Err(BuildError::Changed(path.clone()))
            }
        }
    }
}

/// A word for the shell. No text of a recipe holds a NUL, which alone cannot be quoted.
fn quoted(text: &str) -> String {
    shlex::try_quote(text).unwrap_or_default().into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(to: &str, content: FileContent) -> BuildFile {
        BuildFile {
            to: to.to_owned(),
            mode: 0o640,
            content,
        }
    }

    #[test]
    fn the_script_holds_all_in_order_and_quoted() {
        let directory = tempfile::tempdir().unwrap();
        let source = directory.path().join("source");
        std::fs::write(&source, "from a file").unwrap();
        let from_file = FileContent::Path {
            sha256: Digest::of("from a file"),
            path: source.clone(),
        };
        let files = [
            file("/etc/a b", FileContent::Text("it's".to_owned())),
            file("/etc/c", from_file),
        ];
        let (packages, run) = (["jq".to_owned()], ["echo 'x'; id".to_owned()]);
        let additions = Additions {
            packages: &packages,
            files: &files,
            run: &run,
        };
        let path = additions.lay_out(directory.path()).unwrap().unwrap();
        let script = std::fs::read_to_string(&path).unwrap();
        let tail = script.strip_prefix(HEAD).unwrap();
        assert_eq!(
            tail,
            format!(
                "{INSTALL} jq </dev/null >&2\nput 0 '/etc/a b' 0640\nput 1 /etc/c 0640\nrun \"echo 'x'; id\"\n"
            )
        );
        let laid = std::fs::read(path.with_file_name("1")).unwrap();
        assert_eq!(laid, b"from a file");

        std::fs::write(source, "changed").unwrap();
        let again = directory.path().join("again");
        std::fs::create_dir(&again).unwrap();
        let error = additions.lay_out(&again).unwrap_err();
        assert!(matches!(error, BuildError::Changed(_)), "{error:?}");
        assert!(Additions::default().lay_out(&again).unwrap().is_none());
    }
}
