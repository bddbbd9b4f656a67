//! Why a template did not render, and where.

use std::io;
use std::path::PathBuf;

use tera::ErrorKind;

/// Where a template error is, in the template's own lines.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TemplatePlace {
    /// The template: a file's name or a text's label. May be one that was included.
    pub template: String,
    /// Line, from 1.
    pub line: usize,
    /// Column in characters, from 1.
    pub column: usize,
    /// First byte that is meant.
    pub start: usize,
    /// First byte that is meant no more.
    pub end: usize,
}

/// Why a template did not render.
#[derive(Debug, thiserror::Error)]
pub enum TemplateError {
    /// There is no template directory beside the file that names the template.
    #[error("template {name:?} cannot be found: there is no directory \"templates\"")]
    NoDirectory {
        /// The template.
        name: String,
    },
    /// The name would leave the template directory.
    #[error("template {name:?} is not a plain path below the template directory")]
    Outside {
        /// The template.
        name: String,
    },
    /// No such file.
    #[error("template {name:?} is not in {}", directory.display())]
    Missing {
        /// The template.
        name: String,
        /// Where it was looked for.
        directory: PathBuf,
    },
    /// The file cannot be read.
    #[error("template {name:?} cannot be read")]
    Read {
        /// The template.
        name: String,
        /// Why.
        source: io::Error,
    },
    /// Root variables that the context does not have.
    #[error("undefined in {template:?}: {}", names.join(", "))]
    Undefined {
        /// The template, or the text's label.
        template: String,
        /// The variables, sorted.
        names: Vec<String>,
        /// Where the first of them stands.
        place: Option<TemplatePlace>,
    },
    /// Its loops go on for too long.
    #[error("{template:?} {what}")]
    TooMuch {
        /// The template, or the text's label.
        template: String,
        /// What is too much: `becomes longer than …`.
        what: &'static str,
    },
    /// Tera's own finding: syntax, unknown filter, missing field, wrong type.
    #[error("{message}")]
    Tera {
        /// The finding in one line.
        message: String,
        /// Tera's whole report, with the template's line and all causes.
        report: String,
        /// Where in the template.
        place: Option<TemplatePlace>,
        /// Whether the template is wrong whatever it is rendered with.
        always: bool,
    },
}

impl TemplateError {
    /// Tera's error about the template or text that people know as `label`.
    pub(super) fn of(error: &tera::Error, label: &str) -> Self {
        let mut report = error.to_string();
        let mut source = std::error::Error::source(error);
        while let Some(cause) = source {
            report.push_str(&format!("\ncaused by: {cause}"));
            source = cause.source();
        }
        let (message, place) = match error.kind() {
            ErrorKind::SyntaxError(found) | ErrorKind::RenderingError(found) => {
                let span = found.span();
                let place = TemplatePlace {
                    template: found.filename().to_owned(),
                    line: span.start_line,
                    column: span.start_col + 1,
                    start: span.range.start,
                    end: span.range.end,
                };
                (found.message().to_owned(), Some(place))
            }
            _ => from_report(&report),
        };
        // A text is its own name inside Tera; people know it by its label.
        let place = place.map(|place| match place.template.contains('{') {
            true => TemplatePlace {
                template: label.to_owned(),
                ..place
            },
            false => place,
        });
        let always = !matches!(error.kind(), ErrorKind::RenderingError(_));
        Self::Tera {
            message: lower_first(message.trim_end_matches('.')),
            report,
            place,
            always,
        }
    }
}

/// Takes the first finding out of a report: Tera hands some out as text only, in the form
/// `error: MESSAGE`, then `--> NAME:LINE:COLUMN`.
fn from_report(report: &str) -> (String, Option<TemplatePlace>) {
    let mut lines = report.lines();
    let first = lines.next().unwrap_or_default();
    let message = first.strip_prefix("error: ").unwrap_or(first).to_owned();
    let place = lines.next().and_then(|line| {
        let mut parts = line.trim_start().strip_prefix("--> ")?.rsplitn(3, ':');
        let column = parts.next()?.parse().ok()?;
        let line = parts.next()?.parse().ok()?;
        Some(TemplatePlace {
            template: parts.next()?.to_owned(),
            line,
            column,
            start: 0,
            end: 0,
        })
    });
    (message, place)
}

fn lower_first(text: &str) -> String {
    let mut chars = text.chars();
    chars
        .next()
        .map(|c| c.to_lowercase().chain(chars).collect())
        .unwrap_or_default()
}
