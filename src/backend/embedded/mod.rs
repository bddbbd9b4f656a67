//! The embedded host: a libvirtd of one lab's own, in namespaces of its own.
//!
//! Nothing of the machine's own network, firewall or libvirt is touched, no root is needed, and
//! two labs may use the same addresses. [`EmbeddedHost::start`] spawns `labrig __host`, which takes
//! the host's lock and becomes util-linux's `unshare`, whose child is `labrig __host-init`: PID 1
//! of the namespaces. When that process ends, the kernel ends all that is in them: libvirtd,
//! dnsmasq and every guest. That is the destroy guarantee.
//!
//! labrig itself never enters the namespaces. The init hands out TCP sockets that were made inside
//! ([`socket_service`]); a socket belongs to the network namespace it was made in, so connecting
//! one from outside reaches the guests.

mod directory;
mod error;
mod init;
mod process;
mod socket_service;

pub use directory::{HostDirectory, SOCKET_PATH_MAX};
pub use error::EmbeddedError;
pub use init::{enter, run_init};
pub use process::EmbeddedHost;
pub use socket_service::request_socket;

/// The verb of labrig that is an init, and by which one is found among all processes.
const INIT_VERB: &str = "__host-init";
