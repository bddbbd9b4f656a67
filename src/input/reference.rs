//! A reference of all keys of the language in Markdown, made of the tables that its readers use.

use std::fmt::Write as _;

use super::Language;
use super::shape::{Form, Shape};

impl Language {
    /// The reference: a table for each map of the language, in the order of its keys.
    pub fn reference(self) -> String {
        let mut writer = Writer::default();
        writer.shape("", self.shape());
        writer.text
    }
}

#[derive(Default)]
struct Writer {
    text: String,
    /// Maps that have a table, with their paths.
    done: Vec<(String, &'static Shape)>,
}

impl Writer {
    fn shape(&mut self, path: &str, shape: &'static Shape) {
        let alike = self.done.iter().find(|(_, done)| is_part(shape, done));
        let alike = alike.map(|(path, done)| (path.clone(), lacks(shape, done)));
        if let Some((_, lacking)) = &alike
            && lacking.is_empty()
        {
            return;
        }
        let title = match path {
            "" => "The file".to_owned(),
            path => format!("`{path}`"),
        };
        let _ = writeln!(self.text, "\n### {title}\n\n{}", shape.about);
        if let Some((path, lacking)) = alike {
            let _ = writeln!(
                self.text,
                "The keys are those of `{path}`, without `{}`.",
                lacking.join("`, `")
            );
            self.done.push((path, shape));
            return;
        }
        self.done.push((path.to_owned(), shape));
        let _ = writeln!(self.text, "\n| key | takes | what for |\n|---|---|---|");
        for key in shape.keys {
            let star = if key.is_required { " *" } else { "" };
            let _ = writeln!(
                self.text,
                "| `{}`{star} | {}, as in `{}` | {} |",
                key.name,
                takes(&key.form),
                cell(key.example),
                cell(key.about)
            );
        }
        for key in shape.keys {
            let path = match path {
                "" => key.name.to_owned(),
                path => format!("{path}.{}", key.name),
            };
            self.form(&path, &key.form);
        }
    }

    fn form(&mut self, path: &str, form: &'static Form) {
        match form {
            Form::Map(shape) => self.shape(path, shape),
            Form::Named(form) | Form::Keyed(form) => self.form(&format!("{path}.NAME"), form),
            Form::List(form) => self.form(&format!("{path}[]"), form),
            Form::Either(forms) => forms.iter().for_each(|form| self.form(path, form)),
            _ => {}
        }
    }
}

/// Whether all keys of a map are keys of another.
fn is_part(shape: &Shape, of: &Shape) -> bool {
    let same = |name, about| of.key(name).is_some_and(|key| key.about == about);
    shape.keys.iter().all(|key| same(key.name, key.about))
}

/// Keys of a map that another lacks.
fn lacks(shape: &Shape, of: &Shape) -> Vec<&'static str> {
    let keys = of.keys.iter().map(|key| key.name);
    keys.filter(|name| shape.key(name).is_none()).collect()
}

/// What may stand somewhere, in words.
fn takes(form: &Form) -> String {
    match form {
        Form::Text | Form::Syntax(_) => "text".to_owned(),
        Form::Whole { least, most } if *most == u64::MAX => format!("whole number from {least}"),
        Form::Whole { least, most } => format!("whole number from {least} to {most}"),
        Form::Truth => "`true` or `false`".to_owned(),
        Form::Words(words) => format!("`{}`", words().join("`, `")),
        Form::Scalar => "text, number, `true` or `false`".to_owned(),
        Form::Any => "anything".to_owned(),
        Form::Map(_) => "map".to_owned(),
        Form::Named(_) => "map from names".to_owned(),
        Form::Keyed(_) => "map".to_owned(),
        Form::List(form) => match **form {
            Form::Map(_) => "list of maps".to_owned(),
            _ => "list".to_owned(),
        },
        Form::Either(forms) => {
            let mut each: Vec<_> = forms.iter().map(takes).collect();
            each.dedup();
            each.join(", or ")
        }
    }
}

/// A text as a cell of a table takes it.
fn cell(text: &str) -> String {
    text.replace('|', "\\|").replace('\n', " ")
}
