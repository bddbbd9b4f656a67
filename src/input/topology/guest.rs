//! What goes into a guest, as written.

use super::super::guest_path::{file_mode, guest_path};
use super::super::read::{At, Written};
use super::super::shape::{Form, GUEST_PATH, Key, MODE, Shape};

/// What a file is.
pub(super) const FILE: Shape = Shape::new(
    "A file that labrig renders from a template before the domain starts.",
    &[
        Key::required(
            "template",
            Form::Text,
            "a.tera",
            "Template, relative to the template directory.",
        ),
        Key::required("to", GUEST_PATH, "/etc/a", "Absolute path in the guest."),
        Key::new(
            "mode",
            MODE,
            "\"0644\"",
            "Permission bits in octal; \"0644\" when left out.",
        ),
        Key::new(
            "vars",
            Form::Keyed(&Form::Any),
            "{size: 64M}",
            "Values the template sees as `vars`, beside the topology's.",
        ),
    ],
);

pub(in super::super) struct FileSpec {
    pub template: Written<String>,
    pub to: Written<String>,
    pub mode: u32,
    pub vars: serde_json::Map<String, serde_json::Value>,
}

/// Reads a file.
pub(super) fn file(at: &At<'_>) -> Option<FileSpec> {
    let fields = at.fields(&FILE)?;
    let template = fields.get("template").and_then(|at| at.text("a.tera"));
    let to = fields.get("to").and_then(|at| guest_path(&at));
    let mode = fields.get("mode").map_or(Some(0o644), |at| file_mode(&at));
    let vars = fields
        .get("vars")
        .map_or(Some(serde_json::Map::new()), |at| at.object());
    let template = template?;
    let nowhere = || Written {
        value: at.path().to_owned(),
        spot: at.spot(),
    };
    // What is wrong is noted; the stand-ins only serve to look at the template as well.
    Some(FileSpec {
        template: Written {
            value: template.value.to_owned(),
            spot: template.spot,
        },
        to: to.unwrap_or_else(nowhere),
        mode: mode.unwrap_or_default(),
        vars: vars.unwrap_or_default(),
    })
}
