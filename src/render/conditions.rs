//! Fields that a template asks for in its conditions: Tera takes one that is not there for false.

use serde_json::Value;

use super::error::TemplatePlace;

/// Variables whose fields are all known.
const ROOTS: [&str; 2] = ["domains", "vars"];

/// A field that a condition asks for, as in `{% if vars.big %}`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Asked {
    pub root: &'static str,
    pub field: String,
    pub place: TemplatePlace,
}

/// The fields of [`ROOTS`] that the conditions of a template ask for. One that the template asks
/// anywhere whether it is defined may be missing.
pub(super) fn asked(template: &str, source: &str) -> Vec<Asked> {
    let mut asked = Vec::new();
    for (start, tag) in tags(source) {
        let words = tag.trim_start_matches('-').trim_start();
        if !(words.starts_with("if ") || words.starts_with("elif ")) {
            continue;
        }
        for (root, at, field) in fields(tag) {
            let defined = format!("{root}.{field} is ");
            if source.contains(&format!("{defined}defined"))
                || source.contains(&format!("{defined}not defined"))
                || source.contains(&format!("{defined}undefined"))
            {
                continue;
            }
            asked.push(Asked {
                root,
                field: field.to_owned(),
                place: place(template, source, start + at, field),
            });
        }
    }
    asked
}

/// The inner parts of `{% … %}`, with where they begin.
fn tags(source: &str) -> impl Iterator<Item = (usize, &str)> {
    source.match_indices("{%").filter_map(|(at, _)| {
        let inner = &source[at + 2..];
        Some((at + 2, &inner[..inner.find("%}")?]))
    })
}

/// Fields of [`ROOTS`] in a tag, outside of texts, with where they begin.
fn fields(tag: &str) -> Vec<(&'static str, usize, &str)> {
    let word = |c: char| c.is_alphanumeric() || c == '_';
    let mut found = Vec::new();
    for root in ROOTS {
        for (at, _) in tag.match_indices(root) {
            let (before, after) = (&tag[..at], &tag[at + root.len()..]);
            let in_text = before.matches(['"', '\'', '`']).count() % 2 == 1;
            let Some(field) = after.strip_prefix('.') else {
                continue;
            };
            let field = &field[..field.find(|c| !word(c)).unwrap_or(field.len())];
            if !(in_text || field.is_empty() || before.ends_with(|c| word(c) || c == '.')) {
                found.push((root, at + root.len() + 1, field));
            }
        }
    }
    found
}

fn place(template: &str, source: &str, start: usize, field: &str) -> TemplatePlace {
    let line_start = source[..start].rfind('\n').map_or(0, |at| at + 1);
    TemplatePlace {
        template: template.to_owned(),
        line: source[..start].matches('\n').count() + 1,
        column: source[line_start..start].chars().count() + 1,
        start,
        end: start + field.len(),
    }
}

/// What is said about a field that is not there, in Tera's own words about others.
pub(super) fn message(asked: &Asked, there: &Value) -> Option<String> {
    let there = there.as_object()?;
    if there.contains_key(&asked.field) {
        return None;
    }
    let fields: Vec<_> = there.keys().map(String::as_str).collect();
    Some(format!(
        "field `{}` is not defined. Available fields: {}",
        asked.field,
        fields.join(", ")
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn conditions_tell_which_fields_they_need() {
        for (source, wanted) in [
            (
                "{% if vars.a %}x{% elif domains.b.ip %}y{% endif %}",
                "vars.a domains.b",
            ),
            (
                "{%- if not vars.a and vars.b > 1 -%}{% endif %}",
                "vars.a vars.b",
            ),
            ("{{ vars.a }} {% set x = vars.b %} {# {% if %} #}", ""),
            ("{% if vars.a is defined and vars.a > 1 %}{% endif %}", ""),
            (
                "{% if vars.a is undefined %}{% endif %}{% if vars.a %}{% endif %}",
                "",
            ),
            (
                "{% if x.vars.a or myvars.a or x == 'vars.a' %}{% endif %}",
                "",
            ),
        ] {
            let found = asked("t", source);
            let found: Vec<_> = found
                .iter()
                .map(|a| format!("{}.{}", a.root, a.field))
                .collect();
            assert_eq!(found.join(" "), wanted, "{source}");
        }
        let found = &asked("t", "ä\n  {% if vars.typo %}")[0].place;
        assert_eq!((found.line, found.column), (2, 14));
    }
}
