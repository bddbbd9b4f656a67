//! Texts made from data: libvirt XML, the guest's seed, strict templates and what they see.

pub mod context;
mod domain_xml;
mod error;
mod identity;
mod network_xml;
mod seed;
mod template;
mod xml;

pub use context::Scope;
pub use domain_xml::{DomainParts, domain_xml};
pub use error::{TemplateError, TemplatePlace};
pub use identity::{Identity, host_key_blob};
pub use network_xml::{network_xml, reservation_xml};
pub use seed::{Seed, seed};
pub use template::{TemplateFile, Templates};
pub use xml::{TAG_NAMESPACE, Tag};
