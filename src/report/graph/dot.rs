//! A picture in Graphviz's DOT language.

use std::fmt::Write as _;

use super::picture::Picture;

pub(super) fn write(picture: &Picture) -> String {
    let mut out = String::new();
    let _ = draw(picture, &mut out); // writing to a string does not fail
    out
}

fn draw(picture: &Picture, out: &mut String) -> std::fmt::Result {
    writeln!(out, "graph \"{}\" {{", escaped(&picture.lab))?;
    writeln!(out, "  graph [rankdir=LR, fontname=\"sans-serif\"];")?;
    writeln!(out, "  node [shape=box, fontname=\"sans-serif\"];")?;
    writeln!(out, "  edge [fontname=\"monospace\", fontsize=10];")?;
    for (index, vswitch) in picture.vswitches.iter().enumerate() {
        let label = lines(std::iter::once(&vswitch.name).chain(&vswitch.facts));
        writeln!(
            out,
            "  v{index} [shape=box, style=\"rounded,bold\", label=\"{label}\"];"
        )?;
    }
    for (index, domain) in picture.domains.iter().enumerate() {
        let head = [domain.name.clone(), domain.what(), domain.facts.join(" · ")];
        let label = lines(head.iter().chain(&domain.instances));
        writeln!(out, "  d{index} [label=\"{label}\"];")?;
        for port in &domain.ports {
            let label = lines(port.addresses.iter().chain(&port.facts));
            writeln!(out, "  d{index} -- v{} [label=\"{label}\"];", port.vswitch)?;
        }
    }
    writeln!(out, "}}")
}

fn lines<'a>(lines: impl Iterator<Item = &'a String>) -> String {
    let lines = lines.filter(|line| !line.is_empty());
    lines
        .map(|line| escaped(line))
        .collect::<Vec<_>>()
        .join("\\n")
}

/// Text as it stands between quotes. A backslash is itself only when doubled: labels have escapes.
pub(super) fn escaped(text: &str) -> String {
    let text = text.replace('\\', "\\\\").replace('"', "\\\"");
    text.replace(char::is_control, " ")
}
