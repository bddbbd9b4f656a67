//! Results for people or for programs.

use std::io::{IsTerminal, Write};
use std::path::Path;

use serde::Serialize;

use crate::diag::Notes;

/// Draws notes on standard error.
pub(super) fn print_notes(notes: &Notes) {
    if !notes.0.is_empty() {
        eprint!(
            "{}",
            super::notes::draw(notes, std::io::stderr().is_terminal())
        );
    }
}

/// Prints one JSON document on standard output.
pub(super) fn print_json(value: &impl Serialize) -> std::io::Result<()> {
    let mut out = std::io::stdout().lock();
    serde_json::to_writer_pretty(&mut out, value)?;
    writeln!(out)
}

/// Prints a result as the last line of those that tell what happened, on standard output.
pub(super) fn print_json_line(value: &serde_json::Value) -> std::io::Result<()> {
    writeln!(std::io::stdout().lock(), "{value}")
}

/// Prints text on standard output.
pub(super) fn print(text: impl AsRef<str>) -> std::io::Result<()> {
    let mut out = std::io::stdout().lock();
    out.write_all(text.as_ref().as_bytes())?;
    if !text.as_ref().ends_with('\n') {
        out.write_all(b"\n")?;
    }
    out.flush()
}

/// Writes text to a file, or prints it where none is given.
pub(super) fn write_to(file: Option<&Path>, text: &str) -> std::io::Result<()> {
    match file {
        Some(file) => fs_err::write(file, text),
        None => print(text),
    }
}

/// The same for a text that has no form of its own for programs: with `json` it is a JSON string on
/// standard output.
pub(super) fn write_text(json: bool, file: Option<&Path>, text: &str) -> std::io::Result<()> {
    if json && file.is_none() {
        return print_json(&serde_json::json!({ "text": text }));
    }
    write_to(file, text)
}

/// Columns of the terminal that standard output goes to, if it is one.
pub(super) fn width() -> Option<u16> {
    let terminal = console::Term::stdout();
    terminal.is_term().then(|| terminal.size().1)
}

/// Whether standard error is a terminal that bars can be drawn on.
pub(super) fn draws_bars() -> bool {
    std::io::stderr().is_terminal() && std::env::var_os("TERM").is_some_and(|term| term != "dumb")
}
