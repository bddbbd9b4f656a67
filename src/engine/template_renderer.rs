//! Fills in a playbook's steps with its Tera templates.

use std::path::PathBuf;

use super::steps::{Content, RenderError, ResolvedStep, StepRenderer};
use crate::model::{Name, Step, StepAction, Topology, Trial, WaitFor};
use crate::render::{Scope, Templates};

/// Fills in the steps of a playbook for the domains of a topology.
pub struct TemplateRenderer {
    scope: Scope,
    topology: Topology,
    templates: Templates,
    home: PathBuf,
}

impl TemplateRenderer {
    /// `home` is the directory of the playbook, to which files to copy are relative.
    pub fn new(topology: Topology, templates: Templates, home: PathBuf) -> Self {
        Self {
            scope: Scope::new(&topology),
            topology,
            templates,
            home,
        }
    }
}

impl StepRenderer for TemplateRenderer {
    fn render(
        &self,
        step: &Step,
        domain: &Name,
        trial: Option<&Trial>,
    ) -> Result<ResolvedStep, RenderError> {
        let found = self.topology.domains.iter().find(|d| d.name == *domain);
        let found = found.ok_or_else(|| format!("there is no domain {domain} in the topology"))?;
        let levels = trial.map_or(&[][..], |trial| &trial.levels);
        let context = self.scope.context(Some(found), levels);
        let text = |text: &str| self.templates.render_text(&step.name, text, &context);
        Ok(match &step.action {
            StepAction::Run { command } => ResolvedStep::Run {
                command: text(command)?,
            },
            StepAction::Load {
                command, adapter, ..
            } => ResolvedStep::Load {
                command: text(command)?,
                adapter: adapter.clone(),
            },
            StepAction::Template {
                template,
                to,
                mode,
                vars,
            } => {
                let rendered = self.templates.render_with(template, vars, &context)?;
                ResolvedStep::File {
                    to: to.clone(),
                    mode: *mode,
                    content: Content::Rendered(rendered.into_bytes()),
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
        })
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::design::trials;
    use crate::input::{Options, load_playbook};

    const TOPOLOGY: &str = "
version: 1
name: lab
images: {micro: {build: {micro: {}}}}
vswitches: {data: {subnet: 10.20.0.0/24}}
domains:
  db: {image: micro, split: {cpus: 1, memory: 160MiB}, vnets: [{vswitch: data, ip: 10.20.0.7}]}
";
    const PLAYBOOK: &str = "
version: 1
name: play
topology: lab.yaml
factors: {threads: [4]}
design: {repetitions: 1, seed: 1}
setup:
  - {on: db, copy: {from: data.sql, to: /tmp/data.sql}, timeout: 10s}
trial:
  - {on: db, template: {template: my.cnf.tera, to: /etc/my.cnf, vars: {size: '{{ threads }}M'}}, timeout: 10s}
  - {on: db, run: 'echo {{ domain.name }} {{ domains.db.ip }}', timeout: 10s}
  - {on: db, load: {run: 'bench {{ threads }}', adapter: lines, expect: 1s}, timeout: 10s}
metrics: {tps: {primary: true, unit: 1/s, better: higher}}
";

    #[test]
    fn fills_in_levels_domains_and_vars() {
        let home = tempfile::tempdir().unwrap();
        fs::create_dir(home.path().join("templates")).unwrap();
        let files = [
            ("lab.yaml", TOPOLOGY),
            ("play.yaml", PLAYBOOK),
            ("data.sql", "select 1"),
            ("templates/my.cnf.tera", "size = {{ vars.size }}"),
        ];
        for (name, content) in files {
            fs::write(home.path().join(name), content).unwrap();
        }
        let loaded = load_playbook(&home.path().join("play.yaml"), &Options::default()).unwrap();
        let playbook = loaded.playbook.value;
        let (topology, templates) = (loaded.topology.value, loaded.playbook.templates);
        let renderer = TemplateRenderer::new(topology, templates, home.path().to_owned());
        let trial = trials(&playbook).remove(0);
        let db: Name = "db".parse().unwrap();
        let render = |step: &Step, trial| renderer.render(step, &db, trial);

        let trial_steps: Vec<_> = playbook
            .trial
            .iter()
            .map(|s| render(s, Some(&trial)).unwrap())
            .collect();
        assert!(matches!(
            &trial_steps[0],
            ResolvedStep::File { to, content: Content::Rendered(bytes), .. } if to == "/etc/my.cnf" && bytes == b"size = 4M"
        ));
        assert!(
            matches!(&trial_steps[1], ResolvedStep::Run { command } if command == "echo db 10.20.0.7")
        );
        assert!(
            matches!(&trial_steps[2], ResolvedStep::Load { command, .. } if command == "bench 4")
        );
        let copied = home.path().join("data.sql");
        assert!(matches!(
            render(&playbook.setup[0], None).unwrap(),
            ResolvedStep::File { content: Content::File(path), .. } if path == copied
        ));
        // Outside a trial no factor has a level.
        assert!(
            render(&playbook.trial[2], None)
                .unwrap_err()
                .to_string()
                .contains("threads")
        );
    }
}
