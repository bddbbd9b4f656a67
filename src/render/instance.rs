//! The configuration of a database instance, and what templates see of instances.

use serde::Serialize;
use serde_json::{Map, Value};
use tera::Context;

use super::{TemplateError, Templates};
use crate::databases::{config_path, server};
use crate::model::{DatabaseEngine, Instance};

/// What every template sees of an instance.
#[derive(Serialize)]
pub(super) struct InstanceView<'a> {
    name: &'a str,
    engine: DatabaseEngine,
    port: u16,
    socket: &'a str,
    datadir: &'a str,
    /// None when transaction logs are inside the data.
    logdir: Option<&'a str>,
    pidfile: &'a str,
    /// Where its configuration is.
    config: String,
}

impl<'a> InstanceView<'a> {
    pub(super) fn of(instance: &'a Instance) -> Self {
        Self {
            name: &instance.name,
            engine: instance.engine,
            port: instance.port,
            socket: &instance.socket,
            datadir: &instance.datadir,
            logdir: instance.logdir.as_deref(),
            pidfile: &instance.pidfile,
            config: config_path(instance),
        }
    }
}

/// What its own template sees of an instance.
#[derive(Serialize)]
struct OwnView<'a> {
    #[serde(flatten)]
    view: InstanceView<'a>,
    /// Its settings, rendered.
    settings: &'a Map<String, Value>,
    /// The same as the engine wants them written.
    lines: Vec<Line<'a>>,
}

#[derive(Serialize)]
struct Line<'a> {
    name: &'a str,
    text: String,
}

/// An instance's configuration.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InstanceConfig {
    /// Where it is in the guest.
    pub path: String,
    /// What is in it.
    pub text: String,
    /// The settings, rendered.
    pub settings: Map<String, Value>,
}

/// Renders the configuration of an instance: its settings first, then its template with them.
///
/// # Errors
/// [`TemplateError`]; the label of a setting is its path, as in `settings.max_connections`.
pub fn instance_config(
    templates: &Templates,
    instance: &Instance,
    context: &Context,
) -> Result<InstanceConfig, TemplateError> {
    let mut context = templates.with_vars(&instance.vars, context)?;
    let settings = templates.render_values("settings", &instance.settings, &context)?;
    let server = server(instance.engine);
    let lines = settings.iter().flat_map(|(name, value)| {
        let values = match value {
            Value::Array(values) => values.as_slice(),
            value => std::slice::from_ref(value),
        };
        let line = move |value| Line {
            name,
            text: server.line(name, value),
        };
        values.iter().map(line)
    });
    let view = OwnView {
        view: InstanceView::of(instance),
        settings: &settings,
        lines: lines.collect(),
    };
    context.insert("instance", &view);
    let text = match &instance.template {
        Some(template) => templates.render(template, &context)?,
        None => {
            let label = format!("labrig's template for {}", instance.engine);
            templates.render_text(&label, server.template(), &context)?
        }
    };
    Ok(InstanceConfig {
        path: config_path(instance),
        text,
        settings,
    })
}
