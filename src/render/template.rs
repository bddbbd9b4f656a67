//! Templates: Tera files and texts, strict about variables that do not exist.

use std::collections::BTreeMap;
use std::io;
use std::path::{Component, Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use serde_json::{Map, Value};
use tera::{Context, Tera};

use super::conditions::{self, Asked};
use super::error::{TemplateError, TemplatePlace};
use super::limited::Limited;

/// Largest template that is read.
const LIMIT: u64 = 8 << 20;

/// How many compiled texts are kept; beyond it they are forgotten, not refused.
const TEXTS_KEPT: usize = 64;

/// A template file that was read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TemplateFile {
    /// Where it is.
    pub path: PathBuf,
    /// What is in it.
    pub content: String,
}

/// Templates of one directory, loaded on demand; included and extended ones too.
///
/// Escaping is off, and templates reach no file, clock or environment.
pub struct Templates {
    directory: Option<PathBuf>,
    state: Mutex<State>,
}

struct State {
    files: Tera,
    sources: BTreeMap<String, TemplateFile>,
    texts: Tera,
    texts_held: usize,
    /// What the conditions of files and texts ask for, by name.
    asked: BTreeMap<String, Vec<Asked>>,
}

impl Templates {
    /// Templates of `directory`; none: only texts can be rendered.
    pub fn at(directory: Option<PathBuf>) -> Self {
        let state = State {
            files: new_tera(),
            sources: BTreeMap::new(),
            texts: new_tera(),
            texts_held: 0,
            asked: BTreeMap::new(),
        };
        Self {
            directory,
            state: Mutex::new(state),
        }
    }

    /// Templates that belong to a topology or playbook: of `templates/` in its directory, else
    /// of `../templates/`.
    pub fn beside(file: &Path) -> Self {
        let home = file.parent().unwrap_or(Path::new(""));
        // `topologies/../templates` is `templates`: two files that share a directory name it alike.
        let above = match home.components().next_back() {
            Some(Component::Normal(_)) => home.parent().unwrap_or(home).join("templates"),
            _ => home.join("../templates"),
        };
        Self::at(
            [home.join("templates"), above]
                .into_iter()
                .find(|d| d.is_dir()),
        )
    }

    /// The directory.
    pub fn directory(&self) -> Option<&Path> {
        self.directory.as_deref()
    }

    /// All template files read so far, by name.
    pub fn files(&self) -> BTreeMap<String, TemplateFile> {
        self.state().sources.clone()
    }

    /// Renders a template file.
    ///
    /// # Errors
    /// [`TemplateError`]; undefined root variables are found even where they would not be
    /// printed, as in `{% if typo %}`.
    pub fn render(&self, name: &str, context: &Context) -> Result<String, TemplateError> {
        let mut state = self.state();
        self.load(&mut state, name)?;
        state.check_roots(&state.files, name, name, context)?;
        state.check_conditions(name, name, context)?;
        fill_in(&state.files, name, name, context)
    }

    /// Renders a template file with `vars`, whose texts are rendered first, laid over those of
    /// `context`.
    ///
    /// # Errors
    /// As [`Templates::render`].
    pub fn render_with(
        &self,
        name: &str,
        vars: &Map<String, Value>,
        context: &Context,
    ) -> Result<String, TemplateError> {
        self.render(name, &self.with_vars(vars, context)?)
    }

    /// A context with `vars`, whose texts are rendered first, laid over those of `context`.
    ///
    /// # Errors
    /// As [`Templates::render_vars`].
    pub fn with_vars(
        &self,
        vars: &Map<String, Value>,
        context: &Context,
    ) -> Result<Context, TemplateError> {
        let mut context = context.clone();
        if vars.is_empty() {
            return Ok(context);
        }
        let inherited = context.get("vars").map(serde_json::to_value);
        let mut all = match inherited {
            Some(Ok(Value::Object(all))) => all,
            _ => Map::new(),
        };
        all.extend(self.render_vars(vars, &context)?);
        context.insert("vars", &all);
        Ok(context)
    }

    /// Renders the texts in `vars`, at any depth; other values stay as they are.
    ///
    /// # Errors
    /// As [`Templates::render_text`]; the label is the path of the text, as in `vars.a[0]`.
    pub fn render_vars(
        &self,
        vars: &Map<String, Value>,
        context: &Context,
    ) -> Result<Map<String, Value>, TemplateError> {
        self.render_values("vars", vars, context)
    }

    /// Renders the texts in a map, at any depth, as [`Templates::render_vars`] does; `label` is the
    /// path of the map.
    ///
    /// # Errors
    /// As [`Templates::render_text`].
    pub fn render_values(
        &self,
        label: &str,
        values: &Map<String, Value>,
        context: &Context,
    ) -> Result<Map<String, Value>, TemplateError> {
        let rendered = values.iter().map(|(key, value)| {
            let value = self.render_value(&format!("{label}.{key}"), value, context)?;
            Ok((key.clone(), value))
        });
        rendered.collect()
    }

    fn render_value(
        &self,
        label: &str,
        value: &Value,
        context: &Context,
    ) -> Result<Value, TemplateError> {
        Ok(match value {
            Value::String(text) => Value::String(self.render_text(label, text, context)?),
            Value::Array(items) => Value::Array(
                items
                    .iter()
                    .enumerate()
                    .map(|(i, item)| self.render_value(&format!("{label}[{i}]"), item, context))
                    .collect::<Result<_, _>>()?,
            ),
            Value::Object(map) => Value::Object(
                map.iter()
                    .map(|(key, item)| {
                        let item = self.render_value(&format!("{label}.{key}"), item, context)?;
                        Ok((key.clone(), item))
                    })
                    .collect::<Result<_, TemplateError>>()?,
            ),
            plain => plain.clone(),
        })
    }

    /// Renders a text; `label` names it in errors. A text cannot include files.
    ///
    /// # Errors
    /// As [`Templates::render`].
    pub fn render_text(
        &self,
        label: &str,
        text: &str,
        context: &Context,
    ) -> Result<String, TemplateError> {
        if !text.contains('{') {
            return Ok(text.to_owned());
        }
        let mut state = self.state();
        if !state.texts.contains_template(text) {
            if state.texts_held == TEXTS_KEPT {
                state.texts = new_tera();
                state.texts_held = 0;
                let state = &mut *state;
                state
                    .asked
                    .retain(|name, _| state.sources.contains_key(name));
            }
            // The text is its own name, so that it is compiled once however often it is used.
            state
                .texts
                .add_raw_template(text, text)
                .map_err(|e| TemplateError::of(&e, label))?;
            state.texts_held += 1;
            state.ask(text, text);
        }
        state.check_roots(&state.texts, text, label, context)?;
        state.check_conditions(text, label, context)?;
        fill_in(&state.texts, text, label, context)
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // A panic while rendering leaves the compiled templates whole.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Loads a template and all it refers to.
    fn load(&self, state: &mut State, name: &str) -> Result<(), TemplateError> {
        if state.files.contains_template(name) {
            return Ok(());
        }
        let mut batch = BTreeMap::from([(name.to_owned(), self.read(name)?)]);
        let mut queue = vec![name.to_owned()];
        while let Some(current) = queue.pop() {
            for reference in references(&batch[&current].content) {
                if batch.contains_key(&reference) || state.files.contains_template(&reference) {
                    continue;
                }
                match self.read(&reference) {
                    Ok(file) => {
                        batch.insert(reference.clone(), file);
                        queue.push(reference);
                    }
                    // Tera tells with the line, or knows that it stands in a comment.
                    Err(TemplateError::Missing { .. } | TemplateError::Outside { .. }) => {}
                    Err(other) => return Err(other),
                }
            }
        }
        let sources = batch.iter().map(|(name, file)| (name, &file.content));
        let added = state
            .files
            .add_raw_templates(sources)
            .map_err(|e| TemplateError::of(&e, name));
        for (name, file) in &batch {
            state.ask(name, &file.content);
        }
        // Kept in any case: whoever draws the error wants the lines.
        state.sources.extend(batch);
        added
    }

    fn read(&self, name: &str) -> Result<TemplateFile, TemplateError> {
        let Some(directory) = &self.directory else {
            return Err(TemplateError::NoDirectory {
                name: name.to_owned(),
            });
        };
        let plain = |c| matches!(c, Component::Normal(_));
        if name.is_empty() || name.contains('\0') || !Path::new(name).components().all(plain) {
            return Err(TemplateError::Outside {
                name: name.to_owned(),
            });
        }
        let path = directory.join(name);
        let failed = |source| TemplateError::Read {
            name: name.to_owned(),
            source,
        };
        let size = match fs_err::metadata(&path) {
            Ok(facts) if facts.is_file() => facts.len(),
            Ok(_) => return Err(failed(io::Error::other("not a regular file"))),
            Err(e)
                if matches!(
                    e.kind(),
                    io::ErrorKind::NotFound | io::ErrorKind::NotADirectory
                ) =>
            {
                return Err(TemplateError::Missing {
                    name: name.to_owned(),
                    directory: directory.clone(),
                });
            }
            Err(e) => return Err(failed(e)),
        };
        if size > LIMIT {
            return Err(failed(io::Error::other("over 8 MiB")));
        }
        let content = fs_err::read_to_string(&path).map_err(failed)?;
        Ok(TemplateFile { path, content })
    }
}

impl State {
    /// Notes what the conditions of a template ask for.
    fn ask(&mut self, name: &str, source: &str) {
        let asked = conditions::asked(name, source);
        if !asked.is_empty() {
            self.asked.insert(name.to_owned(), asked);
        }
    }

    /// Finds fields in conditions, of a template and those that it refers to, that `context` lacks.
    fn check_conditions(
        &self,
        name: &str,
        label: &str,
        context: &Context,
    ) -> Result<(), TemplateError> {
        if self.asked.is_empty() {
            return Ok(());
        }
        let mut names = vec![name.to_owned()];
        let mut next = 0;
        while let Some(name) = names.get(next).cloned() {
            next += 1;
            for asked in self.asked.get(&name).into_iter().flatten() {
                let there = context.get(asked.root).map(serde_json::to_value);
                let Some(Ok(there)) = there else { continue };
                let Some(message) = conditions::message(asked, &there) else {
                    continue;
                };
                let mut place = asked.place.clone();
                if !self.sources.contains_key(&name) {
                    place.template = label.to_owned();
                }
                return Err(TemplateError::Tera {
                    report: message.clone(),
                    message,
                    place: Some(place),
                    always: false,
                });
            }
            let content = self.sources.get(&name).map(|file| file.content.as_str());
            for reference in references(content.unwrap_or_default()) {
                if !names.contains(&reference) {
                    names.push(reference);
                }
            }
        }
        Ok(())
    }

    /// Finds root variables that `context` lacks. Tera itself is silent about them in conditions.
    fn check_roots(
        &self,
        tera: &Tera,
        name: &str,
        label: &str,
        context: &Context,
    ) -> Result<(), TemplateError> {
        let known = tera
            .get_template_variables(name)
            .map_err(|e| TemplateError::of(&e, label))?;
        let mut names: Vec<String> = known
            .into_iter()
            .filter(|v| !context.contains_key(v))
            .map(str::to_owned)
            .collect();
        names.sort_unstable();
        let Some(first) = names.first() else {
            return Ok(());
        };
        let own = self.sources.get(name).into_iter().map(|file| (name, file));
        let all = self
            .sources
            .iter()
            .map(|(name, file)| (name.as_str(), file));
        let place = own
            .chain(all)
            .find_map(|(name, file)| find_variable(name, &file.content, first));
        Err(TemplateError::Undefined {
            template: label.to_owned(),
            names,
            place,
        })
    }
}

/// Fills in the template `name`, which people know as `label`.
fn fill_in(
    tera: &Tera,
    name: &str,
    label: &str,
    context: &Context,
) -> Result<String, TemplateError> {
    let mut text = Limited::new();
    match tera.render_to(name, context, &mut text) {
        Ok(()) => Ok(text.into_text()),
        Err(error) => Err(match text.exceeded {
            Some(what) => TemplateError::TooMuch {
                template: label.to_owned(),
                what,
            },
            None => TemplateError::of(&error, label),
        }),
    }
}

fn new_tera() -> Tera {
    let mut tera = Tera::new();
    tera.autoescape_on(Vec::<&str>::new());
    tera
}

/// Names that a template includes or extends. It may name too many (one in a comment), never too
/// few: Tera keeps these lists to itself.
fn references(source: &str) -> Vec<String> {
    source
        .match_indices("{%")
        .filter_map(|(at, _)| {
            let tag = source[at + 2..].trim_start_matches('-').trim_start();
            let rest = tag
                .strip_prefix("include")
                .or_else(|| tag.strip_prefix("extends"))?;
            let rest = rest.trim_start();
            let quote = rest
                .chars()
                .next()
                .filter(|c| matches!(c, '"' | '\'' | '`'))?;
            rest[1..].split_once(quote).map(|(name, _)| name.to_owned())
        })
        .collect()
}

/// Where a variable first stands inside `{{ }}` or `{% %}`.
fn find_variable(template: &str, source: &str, variable: &str) -> Option<TemplatePlace> {
    let word = |c: char| c.is_alphanumeric() || c == '_';
    let start = source
        .match_indices(variable)
        .map(|(at, _)| at)
        .find(|&at| {
            let before = &source[..at];
            let inside = before.rfind("{{").max(before.rfind("{%"));
            let outside = before.rfind("}}").max(before.rfind("%}"));
            inside.is_some()
                && inside > outside
                && !before.ends_with(|c: char| word(c) || c == '.')
                && !source[at + variable.len()..].starts_with(word)
        })?;
    let line_start = source[..start].rfind('\n').map_or(0, |at| at + 1);
    Some(TemplatePlace {
        template: template.to_owned(),
        line: source[..start].matches('\n').count() + 1,
        column: source[line_start..start].chars().count() + 1,
        start,
        end: start + variable.len(),
    })
}

#[cfg(test)]
mod tests;
