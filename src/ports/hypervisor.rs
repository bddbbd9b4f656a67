//! What is asked of libvirt.

use std::path::Path;

use super::{ImageFiles, PortError};
use crate::model::{
    Bytes, Digest, DiskFormat, DomainStats, Name, Observed, Placement, PortImpairment, Reservation,
    Split,
};

/// A hypervisor that holds one lab's domains, networks and disks. All names are libvirt names.
///
/// Every call is an "ensure": what is already so is no error.
pub trait Hypervisor: Send + Sync {
    /// What exists of the lab: domains and networks by the lab's tag, files by their place.
    fn observe(&self) -> Result<Observed, PortError>;

    /// Defines a network. The XML carries the lab's tag with the definition's digest.
    fn define_network(&self, name: &str, xml: &str) -> Result<(), PortError>;

    /// Starts a network.
    fn start_network(&self, name: &str) -> Result<(), PortError>;

    /// Adds an address to a network's DHCP, or takes it away, while it runs and for later.
    fn reserve(
        &self,
        network: &str,
        reservation: &Reservation,
        wanted: bool,
    ) -> Result<(), PortError>;

    /// Stops and undefines a network.
    fn remove_network(&self, name: &str) -> Result<(), PortError>;

    /// Makes `link` lead to the directory of an image of the store.
    fn link_image(&self, link: &Path, image: &ImageFiles) -> Result<(), PortError>;

    /// Makes an empty disk, or a qcow2 overlay on `backing`. `size` none: as large as `backing`.
    fn create_disk(
        &self,
        path: &Path,
        format: DiskFormat,
        backing: Option<&Path>,
        size: Option<Bytes>,
    ) -> Result<(), PortError>;

    /// Writes a seed disk.
    fn write_seed(&self, path: &Path, content: &[u8]) -> Result<(), PortError>;

    /// Removes a disk or seed.
    fn remove_file(&self, path: &Path) -> Result<(), PortError>;

    /// Defines a domain. The XML carries the lab's tag with the definition's digest.
    fn define_domain(&self, name: &str, xml: &str) -> Result<(), PortError>;

    /// Starts a domain; it counts as not ready from then on.
    fn start_domain(&self, name: &str) -> Result<(), PortError>;

    /// Sets what frames of a vnet's device meet, and makes sure that the kernel does it.
    fn impair(&self, device: &str, impairment: &PortImpairment) -> Result<(), PortError>;

    /// Remembers that a domain was seen ready, and which names and addresses it was told.
    fn mark_ready(&self, name: &str, hosts: Option<Digest>) -> Result<(), PortError>;

    /// Ends a domain at once.
    fn stop_domain(&self, name: &str) -> Result<(), PortError>;

    /// Undefines a domain that does not run, with all that libvirt keeps for it.
    fn remove_domain(&self, name: &str) -> Result<(), PortError>;

    /// How a domain is doing.
    fn domain_stats(&self, name: &str) -> Result<DomainStats, PortError>;

    /// Where a running domain really is on the host.
    fn placement(&self, name: &str) -> Result<Placement, PortError>;

    /// Moves a running domain to the CPUs that its split gives it.
    fn move_domain(&self, name: &str, split: &Split) -> Result<(), PortError>;

    /// The last `lines` lines of a domain's console, without control characters.
    fn console_tail(&self, domain: &Name, lines: usize) -> Result<Vec<String>, PortError>;
}
