//! libvirt, through the `virt` crate: the only place that knows it.

mod connection;
mod error;
mod hypervisor;
mod placement;
mod snapshot;

pub use connection::Connection;
pub use error::LibvirtError;
pub use hypervisor::Libvirt;
pub(super) use snapshot::Definition;
