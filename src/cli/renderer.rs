//! Fills in the templates of a playbook's steps: the wiring between `render` and the engine.

use std::path::PathBuf;

use crate::engine::{Content, RenderError, ResolvedStep, StepRenderer};
use crate::input::LoadedPlaybook;
use crate::model::{Name, Step, StepAction, Topology, Trial, WaitFor};
use crate::render::{Scope, Templates};

/// Renders steps of one playbook on one lab.
pub(super) struct Renderer {
    templates: Templates,
    scope: Scope,
    topology: Topology,
    /// Where the playbook's file is; what it copies is relative to that.
    home: PathBuf,
}

impl Renderer {
    pub(super) fn new(loaded: &LoadedPlaybook) -> Self {
        let file = loaded.playbook.source.file();
        Self {
            templates: Templates::beside(file),
            scope: Scope::new(&loaded.topology.value),
            topology: loaded.topology.value.clone(),
            home: file.parent().map(PathBuf::from).unwrap_or_default(),
        }
    }
}

impl StepRenderer for Renderer {
    fn render(
        &self,
        step: &Step,
        domain: &Name,
        trial: Option<&Trial>,
    ) -> Result<ResolvedStep, RenderError> {
        let levels = trial
            .map(|trial| trial.levels.as_slice())
            .unwrap_or_default();
        let context = self.scope.context(self.topology.domain(domain), levels);
        let text = |text: &str| self.templates.render_text(&step.name, text, &context);
        Ok(match &step.action {
            StepAction::Run { command } => ResolvedStep::Run {
                command: text(command)?,
            },
            StepAction::Template {
                template,
                to,
                mode,
                vars,
            } => {
                let content = self.templates.render_with(template, vars, &context)?;
                ResolvedStep::File {
                    to: to.clone(),
                    mode: *mode,
                    content: Content::Rendered(content.into_bytes()),
                }
            }
            StepAction::Copy { from, to, mode } => ResolvedStep::File {
                to: to.clone(),
                mode: *mode,
                content: Content::File(self.home.join(from)),
            },
            StepAction::Service { verb, service } => ResolvedStep::Service {
                verb: *verb,
                service: service.clone(),
            },
            StepAction::Wait { until } => ResolvedStep::Wait(match until {
                WaitFor::Port(port) => WaitFor::Port(*port),
                WaitFor::Command(command) => WaitFor::Command(text(command)?),
            }),
            StepAction::Load {
                command, adapter, ..
            } => ResolvedStep::Load {
                command: text(command)?,
                adapter: adapter.clone(),
            },
        })
    }
}
