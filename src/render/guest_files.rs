//! All files that are rendered for a domain.

use super::{Scope, TemplateError, Templates, instance_config};
use crate::model::Domain;

/// Permission bits of an instance's configuration: its server reads it under a user of its own.
const CONFIG_MODE: u32 = 0o644;

/// Renders a domain's files and the configurations of its instances: absolute path, permission
/// bits, content.
///
/// # Errors
/// That of the first template that does not render, with the path of its file.
pub fn guest_files(
    templates: &Templates,
    scope: &Scope,
    domain: &Domain,
) -> Result<Vec<(String, u32, Vec<u8>)>, (String, TemplateError)> {
    if domain.files.is_empty() && domain.instances.is_empty() {
        return Ok(Vec::new());
    }
    let context = scope.context(Some(domain), &[]);
    let files = domain.files.iter().map(|file| {
        let text = templates
            .render_with(&file.template, &file.vars, &context)
            .map_err(|error| (file.to.clone(), error))?;
        Ok((file.to.clone(), file.mode, text.into_bytes()))
    });
    let configs = domain.instances.iter().map(|instance| {
        let config = instance_config(templates, instance, &context)
            .map_err(|error| (crate::databases::config_path(instance), error))?;
        Ok((config.path, CONFIG_MODE, config.text.into_bytes()))
    });
    files.chain(configs).collect()
}
