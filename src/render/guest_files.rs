//! All files that are rendered for a domain.

use super::{Scope, TemplateError, Templates, instance_config};
use crate::databases::config_path;
use crate::model::Domain;

/// Permission bits of an instance's configuration: its server reads it under a user of its own.
const CONFIG_MODE: u32 = 0o644;

/// Rendered files: absolute path, permission bits, content.
pub type RenderedFiles = Vec<(String, u32, Vec<u8>)>;

/// A file that does not render.
#[derive(Debug, thiserror::Error)]
#[error("render {to}")]
pub struct FileError {
    /// Where it was to be in the guest.
    pub to: String,
    /// Why.
    pub source: Box<TemplateError>,
}

/// Renders a domain's files and the configurations of its instances.
///
/// # Errors
/// The first file that does not render.
pub fn guest_files(
    templates: &Templates,
    scope: &Scope,
    domain: &Domain,
) -> Result<RenderedFiles, FileError> {
    if domain.files.is_empty() && domain.instances.is_empty() {
        return Ok(Vec::new());
    }
    let context = scope.context(Some(domain), &[]);
    let failed = |to: &str, source| FileError {
        to: to.to_owned(),
        source: Box::new(source),
    };
    let mut files = RenderedFiles::new();
    for file in &domain.files {
        let text = templates
            .render_with(&file.template, &file.vars, &context)
            .map_err(|error| failed(&file.to, error))?;
        files.push((file.to.clone(), file.mode, text.into_bytes()));
    }
    for instance in &domain.instances {
        let config = instance_config(templates, instance, &context)
            .map_err(|error| failed(&config_path(instance), error))?;
        files.push((config.path, CONFIG_MODE, config.text.into_bytes()));
    }
    Ok(files)
}
