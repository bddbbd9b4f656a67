//! The two inner stages of an embedded host: taking the lock, and being PID 1.

use std::ffi::OsString;
use std::os::fd::{AsRawFd, BorrowedFd, IntoRawFd};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use fs_err as fs;
use nix::fcntl::{FcntlArg, FdFlag, fcntl};
use nix::mount::{MsFlags, mount};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::signal::{SigSet, Signal};
use nix::sys::signalfd::{SfdFlags, SignalFd};
use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};
use nix::unistd::{Pid, setsid};

use super::socket_service::SocketService;
use super::{EmbeddedError, HostDirectory, INIT_VERB};
use crate::backend::namespaces;

/// Where system programs are; an ordinary user's `PATH` may lack half of it.
const PROGRAMS: &str = "/usr/sbin:/usr/bin:/sbin:/bin";

/// Asking for the lock takes microseconds; a host holds it for good.
const LOCK_TRIES: u32 = 20;
const LOCK_PAUSE: Duration = Duration::from_millis(5);

/// The outermost process: takes the lock and becomes `unshare`. Returns only on failure, or when
/// another one holds the lock.
pub fn enter(directory: &HostDirectory, mask_kvm: bool) -> Result<(), EmbeddedError> {
    // Signals of the terminal are for the person's command, not for the lab.
    let _ = setsid();
    let lock = fs::File::create(directory.lock())?.into_file();
    if !take(&lock)? {
        return Ok(());
    }
    fs::write(directory.pid(), std::process::id().to_string())?;
    // The lock must outlive exec: it is what tells others that the host lives.
    fcntl(&lock, FcntlArg::F_SETFD(FdFlag::empty()))
        .map_err(EmbeddedError::system("keep the lock over exec"))?;

    let mut command = Command::new("unshare");
    command
        .args(namespaces::lab_arguments())
        .arg(std::env::current_exe()?)
        .arg(INIT_VERB)
        .arg(directory.root())
        .arg(directory.cache())
        .arg(OsString::from(lock.into_raw_fd().to_string()));
    if mask_kvm {
        command.arg("--mask-kvm");
    }
    Err(EmbeddedError::Program {
        program: "unshare",
        source: command.exec(),
    })
}

/// Takes the lock; gives whether that went well. Whoever asks whether the host lives holds the lock
/// for a moment, which is no other host.
fn take(lock: &std::fs::File) -> Result<bool, EmbeddedError> {
    for _ in 0..LOCK_TRIES {
        match lock.try_lock() {
            Ok(()) => return Ok(true),
            Err(std::fs::TryLockError::WouldBlock) => std::thread::sleep(LOCK_PAUSE),
            Err(std::fs::TryLockError::Error(e)) => return Err(e.into()),
        }
    }
    Ok(false)
}

/// PID 1 of the namespaces: mounts, starts libvirtd, reaps, hands out sockets. Ends when libvirtd
/// ends or a termination signal comes; everything inside ends with it.
pub fn run_init(
    directory: &HostDirectory,
    lock_fd: i32,
    mask_kvm: bool,
) -> Result<(), EmbeddedError> {
    // SAFETY: the outer stage passed this descriptor over exec and nothing else here uses it.
    let lock = unsafe { BorrowedFd::borrow_raw(lock_fd) };
    fcntl(lock, FcntlArg::F_SETFD(FdFlag::FD_CLOEXEC))
        .map_err(EmbeddedError::system("keep the lock from children"))?;

    let mut signals = SigSet::empty();
    for signal in [Signal::SIGCHLD, Signal::SIGTERM, Signal::SIGINT] {
        signals.add(signal);
    }
    signals
        .thread_block()
        .map_err(EmbeddedError::system("block signals"))?;
    let signals = SignalFd::with_flags(&signals, SfdFlags::SFD_CLOEXEC | SfdFlags::SFD_NONBLOCK)
        .map_err(EmbeddedError::system("watch signals"))?;

    mount_all(directory, mask_kvm)?;
    bring_up_loopback()?;
    let service = SocketService::bind(&directory.socket_service())?;
    let libvirtd = spawn_libvirtd()?;

    loop {
        let mut ready = [
            PollFd::new(service.as_fd(), PollFlags::POLLIN),
            // SAFETY: `signals` outlives the poll.
            PollFd::new(
                unsafe { BorrowedFd::borrow_raw(signals.as_raw_fd()) },
                PollFlags::POLLIN,
            ),
        ];
        match poll(&mut ready, PollTimeout::NONE) {
            Ok(_) | Err(nix::Error::EINTR) => {}
            Err(source) => {
                return Err(EmbeddedError::System {
                    call: "poll".to_owned(),
                    source,
                });
            }
        }
        let wanted = ready[0].any().unwrap_or(false);
        if wanted {
            service.serve_one();
        }
        while let Ok(Some(signal)) = signals.read_signal() {
            if signal.ssi_signo != Signal::SIGCHLD as u32 {
                return Ok(());
            }
        }
        // Orphans of daemons land here; unreaped, libvirtd would think they still live.
        while let Ok(status) = waitpid(None, Some(WaitPidFlag::WNOHANG)) {
            match status {
                WaitStatus::StillAlive => break,
                _ if status.pid() == Some(libvirtd) => {
                    eprintln!("labrig: libvirtd ended: {status:?}");
                    return Ok(());
                }
                _ => {}
            }
        }
    }
}

fn mount_all(directory: &HostDirectory, mask_kvm: bool) -> Result<(), EmbeddedError> {
    let none = None::<&str>;
    mount(none, "/", none, MsFlags::MS_REC | MsFlags::MS_PRIVATE, none)
        .map_err(EmbeddedError::system("make mounts private"))?;
    mount(
        Some("tmpfs"),
        "/run",
        Some("tmpfs"),
        MsFlags::empty(),
        Some("mode=0755"),
    )
    .map_err(EmbeddedError::system("mount a tmpfs on /run"))?;
    for (source, target) in directory.bindings() {
        if target.starts_with("/run") {
            fs::create_dir_all(target)?;
        }
        // Only the TPM emulator's directories may be missing: see `Platform::tpm`.
        if target.to_string_lossy().contains("swtpm") && !target.exists() {
            continue;
        }
        bind(&source, target)?;
    }
    // A fresh sysfs shows this network namespace's devices, which libvirtd needs for bridges.
    mount(Some("sysfs"), "/sys", Some("sysfs"), MsFlags::empty(), none)
        .map_err(EmbeddedError::system("mount sysfs"))?;
    if mask_kvm && Path::new("/dev/kvm").exists() {
        hide_kvm()?;
    }
    Ok(())
}

/// Puts an empty file that nobody can write over `/dev/kvm`. A device such as `/dev/null` would not
/// do: libvirt takes what is readable and writable for a KVM to come, and probes QEMU over and over.
fn hide_kvm() -> Result<(), EmbeddedError> {
    let nothing = Path::new("/run/no-kvm");
    fs::write(nothing, "")?;
    bind(nothing, Path::new("/dev/kvm"))?;
    let read_only = MsFlags::MS_BIND | MsFlags::MS_REMOUNT | MsFlags::MS_RDONLY;
    mount(
        None::<&str>,
        "/dev/kvm",
        None::<&str>,
        read_only,
        None::<&str>,
    )
    .map_err(EmbeddedError::system("hide /dev/kvm"))
}

fn bind(source: &Path, target: &Path) -> Result<(), EmbeddedError> {
    mount(
        Some(source),
        target,
        None::<&str>,
        MsFlags::MS_BIND,
        None::<&str>,
    )
    .map_err(EmbeddedError::system(format!(
        "bind {} over {}",
        source.display(),
        target.display()
    )))
}

fn bring_up_loopback() -> Result<(), EmbeddedError> {
    let program = |source| EmbeddedError::Program {
        program: "ip",
        source,
    };
    let status = Command::new("ip")
        .env("PATH", PROGRAMS)
        .args(["link", "set", "lo", "up"])
        .status()
        .map_err(program)?;
    if status.success() {
        Ok(())
    } else {
        Err(program(std::io::Error::other(status.to_string())))
    }
}

fn spawn_libvirtd() -> Result<Pid, EmbeddedError> {
    let mut command = Command::new("libvirtd");
    command.args(["--config", "/etc/libvirt/libvirtd.conf"]);
    // Only what is ours: the caller's environment must not reach guests, nor change what libvirtd does.
    command
        .env_clear()
        .env("PATH", PROGRAMS)
        .env("LC_ALL", "C.UTF-8")
        .stdin(Stdio::null());
    // SAFETY: only async-signal-safe calls between fork and exec.
    unsafe {
        command.pre_exec(|| SigSet::all().thread_unblock().map_err(std::io::Error::from));
    }
    let child = command.spawn().map_err(|source| EmbeddedError::Program {
        program: "libvirtd",
        source,
    })?;
    Ok(Pid::from_raw(i32::try_from(child.id()).unwrap_or(i32::MAX)))
}
