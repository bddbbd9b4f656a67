//! Steps of a playbook as written.

use std::time::Duration;

use serde_json::{Map, Value};

use super::guest_path::{file_mode, guest_path};
use super::playbook_spec::names;
use super::read::{At, Doc, Fields, Spot, Written};
use super::shape::{Form, GUEST_PATH, Key, MODE, Shape, TIME};
use super::topology::{time_span, word};
use crate::model::{Seconds, ServiceVerb};

/// Deadline of a step that gives none.
const STEP_TIMEOUT: Seconds = Seconds(Duration::from_secs(60));

/// What a step can do.
pub(super) const ACTIONS: [&str; 6] = ["run", "template", "copy", "service", "wait", "load"];

/// What a step is.
pub(super) const STEP: Shape = Shape::new(
    "A step: where, and one thing to do there.",
    &[
        Key::required(
            "on",
            Form::Either(&[Form::Text, Form::List(&Form::Text)]),
            "db",
            "Roles, domains or counted groups that it is done on, one after the other.",
        ),
        Key::new(
            "run",
            Form::Text,
            "\"sysbench … prepare\"",
            "Runs a command with sh; it must succeed.",
        ),
        Key::new(
            "template",
            Form::Map(&TEMPLATE),
            "{template: a.tera, to: /etc/a}",
            "Renders a template file into the guest.",
        ),
        Key::new(
            "copy",
            Form::Map(&COPY),
            "{from: files/a, to: /root/a}",
            "Copies a file into the guest.",
        ),
        Key::new(
            "service",
            Form::Map(&SERVICE),
            "{restart: mariadb}",
            "Starts or stops a service.",
        ),
        Key::new(
            "wait",
            Form::Map(&WAIT),
            "{port: 3306}",
            "Waits until something is there.",
        ),
        Key::new(
            "load",
            Form::Map(&LOAD),
            "{run: …, adapter: sysbench, expect: 10s}",
            "The load that is measured: one in a trial, none in the setup.",
        ),
        Key::new(
            "name",
            Form::Text,
            "prepare",
            "What it is called in reports.",
        ),
        Key::new(
            "timeout",
            TIME,
            "60s",
            "When it is given up; 60s when left out, for a load twice `expect` and 30s.",
        ),
    ],
);

const TEMPLATE: Shape = Shape::new(
    "A template file, rendered for each trial.",
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

const COPY: Shape = Shape::new(
    "A file to copy.",
    &[
        Key::required(
            "from",
            Form::Text,
            "files/a",
            "File, relative to the playbook.",
        ),
        Key::required("to", GUEST_PATH, "/root/a", "Absolute path in the guest."),
        Key::new(
            "mode",
            MODE,
            "\"0644\"",
            "Permission bits in octal; \"0644\" when left out.",
        ),
    ],
);

const SERVICE: Shape = Shape::new(
    "One thing to do to a service.",
    &[
        Key::new("restart", Form::Text, "mariadb", "Service to restart."),
        Key::new("start", Form::Text, "mariadb", "Service to start."),
        Key::new("stop", Form::Text, "mariadb", "Service to stop."),
    ],
);

const WAIT: Shape = Shape::new(
    "One thing to wait for.",
    &[
        Key::new(
            "port",
            Form::Whole {
                least: 1,
                most: 65535,
            },
            "3306",
            "TCP port that is to be open on the domain.",
        ),
        Key::new(
            "command",
            Form::Text,
            "\"test -e /run/ready\"",
            "Command that is to succeed.",
        ),
    ],
);

const LOAD: Shape = Shape::new(
    "A load.",
    &[
        Key::required("run", Form::Text, "\"sysbench … run\"", "Its command."),
        Key::required(
            "adapter",
            Form::Words(|| crate::adapters::NAMES.to_vec()),
            "sysbench",
            "What reads its output.",
        ),
        Key::required("expect", TIME, "10s", "How long it should take."),
        Key::new(
            "timeout",
            TIME,
            "40s",
            "When it is given up; twice `expect` and 30s when left out.",
        ),
    ],
);

pub(super) struct StepSpec {
    pub spot: Spot,
    pub name: Option<String>,
    pub on: Vec<Written<String>>,
    pub timeout: Seconds,
    /// None when it was not understood.
    pub action: Option<ActionSpec>,
}

pub(super) enum ActionSpec {
    Run(Written<String>),
    Template {
        template: Written<String>,
        to: String,
        mode: u32,
        vars: Map<String, Value>,
    },
    Copy {
        from: Written<String>,
        to: String,
        mode: u32,
    },
    Service {
        verb: ServiceVerb,
        service: String,
    },
    WaitPort(u16),
    WaitCommand(Written<String>),
    Load {
        run: Written<String>,
        adapter: Written<String>,
        expect: Seconds,
    },
}

/// Reads a list of steps.
pub(super) fn steps(at: &At<'_>) -> Vec<StepSpec> {
    at.items("{on: db, run: …}")
        .iter()
        .filter_map(step)
        .collect()
}

/// Reads the steps of a trial, one of which is the load.
pub(super) fn trial(doc: &Doc, fields: &Fields<'_>) -> Vec<StepSpec> {
    let example = "[{on: load, load: {run: …, adapter: sysbench, expect: 10s}}]";
    let Some(at) = fields.get("trial") else {
        return Vec::new();
    };
    let steps = steps(&at);
    let mut loads = steps
        .iter()
        .filter(|s| matches!(s.action, Some(ActionSpec::Load { .. })));
    match (loads.next(), loads.next()) {
        // A step that was not understood may have been the load.
        (None, _) if steps.iter().all(|s| s.action.is_some()) && at.is_list() => {
            at.error(
                "no step of the trial is a load",
                format!("one must be measured, as in {example}"),
            );
        }
        (Some(first), Some(second)) => {
            let note = doc.error(&second.spot, "a second load in the trial");
            let note = note.hint("one load is measured in a trial: make the other a run step");
            doc.push(note.label(Some(doc.place(&first.spot)), "the first"));
        }
        _ => {}
    }
    steps
}

/// Notes loads where they are never measured.
pub(super) fn refuse_loads(doc: &Doc, setup: &[StepSpec]) {
    for step in setup
        .iter()
        .filter(|s| matches!(s.action, Some(ActionSpec::Load { .. })))
    {
        let note = doc.error(&step.spot, "a load in the setup is never measured");
        doc.push(note.hint("move it to trial, or make it a run step"));
    }
}

fn step(at: &At<'_>) -> Option<StepSpec> {
    let fields = at.fields(&STEP)?;
    let on = fields.get("on").map(|at| match at.is_list() {
        true => {
            let on = names(&at, "db");
            if on.is_empty() {
                at.error(
                    "this step is done nowhere",
                    "name a role or domain, as in on: db",
                );
            }
            on
        }
        false => at
            .text("db")
            .map(|text| Written {
                value: text.value.to_owned(),
                spot: text.spot,
            })
            .into_iter()
            .collect(),
    });
    let written = fields.get("timeout").and_then(|at| time_span(&at, "60s"));
    let name = fields.get("name").and_then(|at| at.text("prepare"));
    let mut timeout = written.as_ref().map_or(STEP_TIMEOUT, |w| w.value);
    let mut spot = at.spot();
    let action = fields.one_of(&ACTIONS).and_then(|(key, at)| {
        // The key is easier to see than the dash before it.
        spot = Spot {
            path: spot.path.clone(),
            ..at.spot()
        };
        match key {
            "load" => {
                let (action, own) = load(&at, fields.get("timeout").as_ref())?;
                timeout = own;
                Some(action)
            }
            _ => action(key, &at),
        }
    });
    Some(StepSpec {
        spot,
        name: name.map(|text| text.value.to_owned()),
        on: on.unwrap_or_default(),
        timeout,
        action,
    })
}

fn command(at: &At<'_>, example: &str) -> Option<Written<String>> {
    let text = at.text(example)?;
    if text.value.contains('\0') {
        at.error(
            "a command cannot hold a NUL character",
            format!("as in {example}"),
        );
        return None;
    }
    Some(Written {
        value: text.value.to_owned(),
        spot: text.spot,
    })
}

fn action(key: &str, at: &At<'_>) -> Option<ActionSpec> {
    Some(match key {
        "run" => ActionSpec::Run(command(at, "\"sysbench … prepare\"")?),
        "template" => {
            let fields = at.fields(&TEMPLATE)?;
            let template = fields.get("template").and_then(|at| command(&at, "a.tera"));
            let to = fields.get("to").and_then(|at| guest_path(&at));
            let mode = fields.get("mode").map_or(Some(0o644), |at| file_mode(&at));
            let vars = fields
                .get("vars")
                .map_or(Some(Map::new()), |at| at.object());
            ActionSpec::Template {
                template: template?,
                to: to?.value,
                mode: mode?,
                vars: vars?,
            }
        }
        "copy" => {
            let fields = at.fields(&COPY)?;
            let from = fields.get("from").and_then(|at| command(&at, "files/a"));
            let to = fields.get("to").and_then(|at| guest_path(&at));
            let mode = fields.get("mode").map_or(Some(0o644), |at| file_mode(&at));
            ActionSpec::Copy {
                from: from?,
                to: to?.value,
                mode: mode?,
            }
        }
        "service" => {
            let fields = at.fields(&SERVICE)?;
            let (verb, at) = fields.one_of(&["restart", "start", "stop"])?;
            let verb = match verb {
                "start" => ServiceVerb::Start,
                "stop" => ServiceVerb::Stop,
                _ => ServiceVerb::Restart,
            };
            // Names of systemd units (systemd.unit(5)).
            let allowed = |c: char| c.is_ascii_alphanumeric() || "@:_.-\\".contains(c);
            ActionSpec::Service {
                verb,
                service: word(&at, "mariadb", allowed)?,
            }
        }
        _ => {
            let fields = at.fields(&WAIT)?;
            let (key, at) = fields.one_of(&["port", "command"])?;
            match key {
                "port" => ActionSpec::WaitPort(at.whole()? as u16),
                _ => ActionSpec::WaitCommand(command(&at, "\"test -e /run/ready\"")?),
            }
        }
    })
}

/// A load and its deadline: what it says, else twice the expected time and half a minute.
fn load(at: &At<'_>, outer_timeout: Option<&At<'_>>) -> Option<(ActionSpec, Seconds)> {
    let fields = at.fields(&LOAD)?;
    let run = fields
        .get("run")
        .and_then(|at| command(&at, "\"sysbench … run\""));
    let adapter = fields
        .get("adapter")
        .and_then(|at| command(&at, "sysbench"));
    let expect = fields.get("expect").and_then(|at| time_span(&at, "10s"));
    let inner = fields.get("timeout");
    if let (Some(_), Some(outer)) = (&inner, outer_timeout) {
        outer.error("this load has a timeout of its own", "keep one of the two");
    }
    let limit = inner.as_ref().or(outer_timeout);
    let timeout = limit.and_then(|at| Some((at, time_span(at, "40s")?)));
    let expect = expect?.value;
    if let Some((at, timeout)) = &timeout
        && timeout.value < expect
    {
        at.error(
            format!(
                "the load is given up after {}, before it should end",
                timeout.value
            ),
            format!("it is expected to take {expect}: allow more than that"),
        );
    }
    let usual = Seconds(expect.0 * 2 + Duration::from_secs(30));
    let timeout = timeout.map_or(usual, |(_, timeout)| timeout.value);
    Some((
        ActionSpec::Load {
            run: run?,
            adapter: adapter?,
            expect,
        },
        timeout,
    ))
}
