//! Text from data: strict templates and what they see. Knows no YAML and no host.

pub mod context;
mod template;

pub use context::Scope;
pub use template::{TemplateError, TemplateFile, TemplatePlace, Templates};
