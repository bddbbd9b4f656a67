//! Texts made from a topology: libvirt XML, the guest's seed, service configurations.

mod domain_xml;
mod identity;
mod network_xml;
mod seed;
mod xml;

pub use domain_xml::{DomainParts, domain_xml};
pub use identity::Identity;
pub use network_xml::{network_xml, reservation_xml};
pub use seed::{Seed, seed};
pub use xml::{TAG_NAMESPACE, Tag};
