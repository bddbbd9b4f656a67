//! Text from data: strict templates and what they see. Knows no YAML and no host.

pub mod context;
mod error;
mod template;

pub use context::Scope;
pub use error::{TemplateError, TemplatePlace};
pub use template::{TemplateFile, Templates};
