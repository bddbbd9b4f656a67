//! Texts made from data: libvirt XML, the guest's seed, strict templates and what they see.

#[cfg(test)]
mod apply_tests;
mod cloud_init;
mod conditions;
pub mod context;
mod domain_xml;
mod error;
mod guest_files;
mod guest_network;
mod hosts;
mod identity;
mod instance;
mod interface_xml;
mod limited;
mod network_xml;
mod overlay;
mod seed;
mod settings;
mod share_xml;
mod template;
#[cfg(test)]
mod templates_tests;
mod vfat;
mod xml;

pub use context::Scope;
pub use domain_xml::{DiskPart, DomainParts, domain_xml};
pub use error::{TemplateError, TemplatePlace};
pub use guest_files::{FileError, RenderedFiles, guest_files};
pub use hosts::Hosts;
pub use identity::{Identity, host_key_blob};
pub use instance::{InstanceConfig, instance_config};
pub use network_xml::{network_xml, reservation_xml};
pub use overlay::{Overlay, OverlayError};
pub use seed::{Seed, seed};
pub use settings::System;
pub use template::{TemplateFile, Templates};
pub use xml::{TAG_NAMESPACE, Tag};
