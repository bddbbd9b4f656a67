//! A picture as a Mermaid flowchart.

use std::fmt::Write as _;

use super::picture::Picture;

pub(super) fn write(picture: &Picture) -> String {
    let mut out = String::new();
    let _ = draw(picture, &mut out); // writing to a string does not fail
    out
}

fn draw(picture: &Picture, out: &mut String) -> std::fmt::Result {
    writeln!(out, "flowchart LR")?;
    writeln!(out, "  accTitle: {}", escaped(&picture.lab))?;
    writeln!(out, "  accDescr: {}", escaped(&picture.extent))?;
    for (index, vswitch) in picture.vswitches.iter().enumerate() {
        let label = label(&vswitch.name, &[vswitch.facts.join(" · ")]);
        writeln!(out, "  v{index}([\"{label}\"])")?;
    }
    for (index, domain) in picture.domains.iter().enumerate() {
        let mut lines = vec![domain.what(), domain.facts.join(" · ")];
        lines.extend(domain.instances.iter().cloned());
        // Names of our own: `end` and the like are words of the language.
        writeln!(out, "  d{index}[\"{}\"]", label(&domain.name, &lines))?;
        for port in &domain.ports {
            let mut lines = port.addresses.clone();
            lines.extend(port.facts.iter().cloned());
            let vswitch = port.vswitch;
            match joined(&lines).as_str() {
                "" => writeln!(out, "  d{index} --- v{vswitch}")?,
                label => writeln!(out, "  d{index} ---|\"{label}\"| v{vswitch}")?,
            }
        }
    }
    writeln!(out, "  classDef vswitch stroke-width:3px")?;
    if !picture.vswitches.is_empty() {
        let all: Vec<_> = (0..picture.vswitches.len())
            .map(|index| format!("v{index}"))
            .collect();
        writeln!(out, "  class {} vswitch", all.join(","))?;
    }
    Ok(())
}

fn label(name: &str, lines: &[String]) -> String {
    let rest = joined(lines);
    let separator = if rest.is_empty() { "" } else { "<br/>" };
    format!("<b>{}</b>{separator}{rest}", escaped(name))
}

fn joined(lines: &[String]) -> String {
    let lines = lines.iter().filter(|line| !line.is_empty());
    lines
        .map(|line| escaped(line))
        .collect::<Vec<_>>()
        .join("<br/>")
}

/// Text as it stands in a label: entities in Mermaid's own form, which begins with `#`.
pub(super) fn escaped(text: &str) -> String {
    let mut out = String::new();
    for c in text.chars() {
        match c {
            '#' | '"' | '<' | '>' | '&' | ';' | '`' | '\\' => {
                let _ = write!(out, "#{};", u32::from(c)); // writing to a string does not fail
            }
            c if c.is_control() => out.push(' '),
            c => out.push(c),
        }
    }
    out
}
