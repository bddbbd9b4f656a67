//! The lab host as a machine that commands run on.

use std::io::Write;
use std::path::PathBuf;
use std::process::Command;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use super::command::run;
use crate::backend::embedded::EmbeddedHost;
use crate::backend::namespaces;
use crate::model::Name;
use crate::ports::{ErrorKind, Exit, Output, PortError, Remote, Target};

/// Prepares the root file system.
const ROOT: &str = include_str!("root.sh");
/// Longest time for that; it takes a second where thousands of directories are looked at.
const PREPARATION: Duration = Duration::from_secs(120);
/// Where programs are, as a login of root has it.
const PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";
/// Powers over the whole machine, which commands of a lab have no use for: root's mounts, modules,
/// devices, clock. Against slips, not against malice.
const WITHOUT: &str =
    "-sys_admin,-sys_module,-sys_rawio,-sys_boot,-sys_time,-syslog,-mknod,-sys_pacct";

/// The host of one lab.
pub struct LabHost {
    /// None where the lab has no namespaces of its own.
    private: Option<EmbeddedHost>,
    is_prepared: Mutex<bool>,
}

impl LabHost {
    /// The machine as it is.
    pub fn shared() -> Self {
        Self {
            private: None,
            is_prepared: Mutex::default(),
        }
    }

    /// An embedded host.
    pub fn private(host: EmbeddedHost) -> Self {
        Self {
            private: Some(host),
            is_prepared: Mutex::default(),
        }
    }

    /// The program that runs a shell command for a domain; with none, a login shell.
    ///
    /// # Errors
    /// `Fatal` when the lab's host does not run, or its file system cannot be prepared.
    pub fn program(&self, domain: &Name, command: Option<&str>) -> Result<Command, PortError> {
        let begin = "cd \"$HOME\" || cd /\n";
        let script = match command {
            Some(command) => format!("{begin}{command}"),
            None => format!("{begin}exec \"${{SHELL:-/bin/sh}}\" -l"),
        };
        let Some(host) = &self.private else {
            let mut shell = Command::new("sh");
            shell.args(["-c", &script]);
            return Ok(shell);
        };
        let enter = self.enter(host, domain)?;
        let mut prepared = self
            .is_prepared
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        if !*prepared {
            self.prepare(host, domain)?;
            *prepared = true;
        }
        let mut program = enter;
        program
            .args(["setpriv", "--bounding-set", WITHOUT, "--"])
            .arg("chroot")
            .arg(directory(host).join("merged"))
            .args(["/bin/sh", "-c", &script])
            .env("HOME", "/root")
            .env("SHELL", "/bin/sh");
        Ok(program)
    }

    /// A program that runs the one that is added to it inside the namespaces.
    fn enter(&self, host: &EmbeddedHost, domain: &Name) -> Result<Command, PortError> {
        let gone = || {
            let what = format!("reach {domain}: the lab's host does not run");
            PortError::new(ErrorKind::Fatal, what)
                .hint("`labrig up` with its topology brings it up again")
        };
        let init = host.init().ok_or_else(gone)?;
        let mut program = Command::new("nsenter");
        let kinds = ["--net", "--uts", "--ipc", "--mount", "--pid"];
        program.args(namespaces::entering(init, &kinds));
        // The caller's environment is none of the lab's.
        let term = std::env::var_os("TERM");
        program
            .env_clear()
            .env("PATH", PATH)
            .env("USER", "root")
            .env("LOGNAME", "root")
            .envs(term.map(|term| ("TERM", term)));
        Ok(program)
    }

    fn prepare(&self, host: &EmbeddedHost, domain: &Name) -> Result<(), PortError> {
        let mut program = self.enter(host, domain)?;
        program
            .args(["sh", "-c", ROOT, "root.sh"])
            .arg(directory(host));
        let (mut out, mut said) = (Vec::new(), Vec::new());
        let exit = run(domain, program, &[], (&mut out, &mut said), PREPARATION)?;
        let said = String::from_utf8_lossy(&said).trim().to_owned();
        if exit.is_success() {
            if !said.is_empty() {
                tracing::warn!(%domain, said, "prepare the file system of host domains");
            }
            return Ok(());
        }
        let what = format!("prepare the file system of {domain}");
        Err(PortError::new(ErrorKind::Fatal, what)
            .because(said)
            .hint("an overlay of the machine's files is kept in the lab's directory: with --state-dir, take one on a disk's own file system"))
    }
}

/// Where the root file system and what is written in it are.
fn directory(host: &EmbeddedHost) -> PathBuf {
    host.directory().root().join("machine")
}

impl Remote for LabHost {
    fn banner(&self, target: &Target, _: Duration) -> Result<(), PortError> {
        self.program(&target.domain, Some("true")).map(|_| ())
    }

    fn exec(
        &self,
        target: &Target,
        command: &str,
        stdin: &[u8],
        timeout: Duration,
    ) -> Result<Output, PortError> {
        let (mut stdout, mut stderr) = (Vec::new(), Vec::new());
        let program = self.program(&target.domain, Some(command))?;
        let streams: (&mut dyn Write, &mut dyn Write) = (&mut stdout, &mut stderr);
        let exit = run(&target.domain, program, stdin, streams, timeout)?;
        Ok(Output {
            exit,
            stdout,
            stderr,
        })
    }

    fn stream(
        &self,
        target: &Target,
        command: &str,
        stdout: &mut dyn Write,
        stderr: &mut dyn Write,
        timeout: Duration,
    ) -> Result<Exit, PortError> {
        let program = self.program(&target.domain, Some(command))?;
        run(&target.domain, program, &[], (stdout, stderr), timeout)
    }
}
