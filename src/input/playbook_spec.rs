//! A playbook file as written: every value with its place, defaults filled, nothing bound yet.

use std::collections::HashMap;
use std::time::Duration;

use serde_json::{Map, Value};

use super::guest_path::{file_mode, guest_path};
use super::read::{At, Doc, Fields, Spot, Written};
use super::topology::{time_span, version, word};
use crate::model::{Better, Design, Level, MetricSpec, Name, Order, Seconds, ServiceVerb};
use crate::render::context::RESERVED;

/// The only version of the playbook language.
const VERSION: u64 = 1;

/// Deadline of a step that gives none.
const STEP_TIMEOUT: Seconds = Seconds(Duration::from_secs(60));

/// Trials that one playbook may have.
const TRIALS_MAX: u64 = 1_000_000;

/// Words of Tera that no variable can be called.
const TERA_WORDS: [&str; 15] = [
    "and", "or", "not", "in", "is", "if", "else", "elif", "for", "set", "true", "false", "none",
    "loop", "self",
];

/// What a step can do.
pub(super) const ACTIONS: [&str; 6] = ["run", "template", "copy", "service", "wait", "load"];

pub(super) struct PlaybookSpec {
    pub name: Option<Written<Name>>,
    pub topology: Option<Written<String>>,
    pub roles: Vec<RoleSpec>,
    pub factors: Vec<FactorSpec>,
    pub design: Design,
    pub setup: Vec<StepSpec>,
    pub trial: Vec<StepSpec>,
    pub metrics: Vec<MetricSpec>,
    pub margin: f64,
}

pub(super) struct RoleSpec {
    pub name: Written<Name>,
    pub members: Vec<Written<String>>,
}

pub(super) struct FactorSpec {
    pub name: Written<Name>,
    pub levels: Vec<Level>,
}

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

impl PlaybookSpec {
    /// Reads a playbook.
    pub fn read(doc: &Doc, top: &At<'_>) -> Option<Self> {
        let fields = top.keys(&[
            "version",
            "name",
            "topology",
            "roles",
            "factors",
            "design",
            "setup",
            "trial",
            "metrics",
            "reproduce",
        ])?;
        version(&fields, VERSION)?;
        let topology = fields
            .need("topology", "../topologies/quickstart.yaml")
            .and_then(|at| {
                let text = at.text("../topologies/quickstart.yaml")?;
                Some(Written {
                    value: text.value.to_owned(),
                    spot: text.spot,
                })
            });
        let factors = fields
            .get("factors")
            .map(|at| factors(doc, &at))
            .unwrap_or_default();
        let design = design(&fields);
        check_size(&fields, &factors, &design);
        Some(Self {
            name: fields.need("name", "oltp").and_then(|at| at.parse("oltp")),
            topology,
            roles: fields.get("roles").map(|at| roles(&at)).unwrap_or_default(),
            factors,
            design,
            setup: fields.get("setup").map(|at| steps(&at)).unwrap_or_default(),
            trial: trial(doc, &fields),
            metrics: metrics(doc, &fields),
            margin: margin(&fields).unwrap_or(0.1),
        })
        .inspect(|spec| refuse_loads(doc, &spec.setup))
    }
}

fn roles(at: &At<'_>) -> Vec<RoleSpec> {
    let read = |(name, at): (Written<Name>, At<'_>)| {
        let members = names(&at, "domain");
        if at.is_list() && members.is_empty() {
            at.error("this role has no domains", "name at least one, as in [db]");
        }
        RoleSpec { name, members }
    };
    at.named("db: [db], load: [client]")
        .into_iter()
        .map(read)
        .collect()
}

/// A list of names, in words: what they name is checked later.
fn names(at: &At<'_>, example: &str) -> Vec<Written<String>> {
    let items = at.items(example);
    let texts = items.iter().filter_map(|item| item.text(example));
    texts
        .map(|text| Written {
            value: text.value.to_owned(),
            spot: text.spot,
        })
        .collect()
}

fn factors(doc: &Doc, at: &At<'_>) -> Vec<FactorSpec> {
    let mut factors = Vec::new();
    for (name, at) in at.named("threads: [1, 2, 4]") {
        let text = name.value.as_str();
        if RESERVED.contains(&text) || TERA_WORDS.contains(&text) {
            let note = doc.error(&name.spot, format!("a factor cannot be called {text:?}"));
            doc.push(note.hint("templates use this word themselves: choose another name"));
        } else if text.contains('-') {
            let note = doc.error(
                &name.spot,
                format!("factor {text:?} could not be used in templates"),
            );
            doc.push(note.hint("{{ a-b }} is a subtraction there: choose a name without -"));
        }
        let items = at.items("1, 2, 4");
        if at.is_list() && items.is_empty() {
            at.error(
                "this factor has no levels",
                "give at least one, as in [1, 2, 4]",
            );
        }
        let mut levels: Vec<Level> = Vec::new();
        let mut seen: HashMap<String, Spot> = HashMap::new();
        for item in items {
            let Some(level) = item.scalar("1").and_then(level) else {
                continue;
            };
            let spot = item.spot();
            if let Some(first) = seen.get(&format!("{level:?}")) {
                let note = doc.error(&spot, format!("level {level} is given twice"));
                let note = note.hint("more trials of a level: raise design.repetitions");
                doc.push(note.label(Some(doc.place(first)), "first given here"));
                continue;
            }
            seen.insert(format!("{level:?}"), spot);
            levels.push(level);
        }
        factors.push(FactorSpec { name, levels });
    }
    factors
}

fn level(value: Value) -> Option<Level> {
    Some(match value {
        Value::Bool(b) => Level::Bool(b),
        Value::String(text) => Level::Text(text),
        Value::Number(n) => match n.as_i64() {
            Some(n) => Level::Int(n),
            None => Level::Float(n.as_f64()?),
        },
        _ => return None,
    })
}

fn design(fields: &Fields<'_>) -> Design {
    let design = fields
        .get("design")
        .and_then(|at| at.keys(&["repetitions", "order", "seed"]));
    let get = |key: &str| design.as_ref().and_then(|design| design.get(key));
    Design {
        repetitions: get("repetitions")
            .and_then(|at| at.integer(1, 100_000))
            .map_or(6, |n| n as u32),
        order: get("order")
            .and_then(|at| at.choice(&[("blocks", Order::Blocks)]))
            .unwrap_or(Order::Blocks),
        seed: get("seed")
            .and_then(|at| at.integer(0, u64::MAX))
            .unwrap_or(1),
    }
}

fn check_size(fields: &Fields<'_>, factors: &[FactorSpec], design: &Design) {
    let cells = factors.iter().map(|f| f.levels.len().max(1) as u64);
    let trials = cells.fold(u64::from(design.repetitions), u64::saturating_mul);
    if trials > TRIALS_MAX
        && let Some(at) = fields.get("factors").or_else(|| fields.get("design"))
    {
        at.error(
            format!("these factors and repetitions make {trials} trials, over {TRIALS_MAX}"),
            "take fewer levels or repetitions",
        );
    }
}

fn steps(at: &At<'_>) -> Vec<StepSpec> {
    at.items("{on: db, run: …}")
        .iter()
        .filter_map(step)
        .collect()
}

fn trial(doc: &Doc, fields: &Fields<'_>) -> Vec<StepSpec> {
    let example = "[{on: load, load: {run: …, adapter: sysbench, expect: 10s}}]";
    let Some(at) = fields.need("trial", example) else {
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

fn refuse_loads(doc: &Doc, setup: &[StepSpec]) {
    for step in setup
        .iter()
        .filter(|s| matches!(s.action, Some(ActionSpec::Load { .. })))
    {
        let note = doc.error(&step.spot, "a load in the setup is never measured");
        doc.push(note.hint("move it to trial, or make it a run step"));
    }
}

fn step(at: &At<'_>) -> Option<StepSpec> {
    let fields = at.keys(&[
        "on", "run", "template", "copy", "service", "wait", "load", "name", "timeout",
    ])?;
    let on = fields.need("on", "db").map(|at| match at.is_list() {
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
            let fields = at.keys(&["template", "to", "mode", "vars"])?;
            let template = fields
                .need("template", "a.tera")
                .and_then(|at| command(&at, "a.tera"));
            let to = fields.need("to", "/etc/a").and_then(|at| guest_path(&at));
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
            let fields = at.keys(&["from", "to", "mode"])?;
            let from = fields
                .need("from", "files/a")
                .and_then(|at| command(&at, "files/a"));
            let to = fields.need("to", "/root/a").and_then(|at| guest_path(&at));
            let mode = fields.get("mode").map_or(Some(0o644), |at| file_mode(&at));
            ActionSpec::Copy {
                from: from?,
                to: to?.value,
                mode: mode?,
            }
        }
        "service" => {
            let fields = at.keys(&["restart", "start", "stop"])?;
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
            let fields = at.keys(&["port", "command"])?;
            let (key, at) = fields.one_of(&["port", "command"])?;
            match key {
                "port" => ActionSpec::WaitPort(at.integer(1, 65535)? as u16),
                _ => ActionSpec::WaitCommand(command(&at, "\"test -e /run/ready\"")?),
            }
        }
    })
}

/// A load and its deadline: what it says, else twice the expected time and half a minute.
fn load(at: &At<'_>, outer_timeout: Option<&At<'_>>) -> Option<(ActionSpec, Seconds)> {
    let fields = at.keys(&["run", "adapter", "expect", "timeout"])?;
    let run = fields
        .need("run", "\"sysbench … run\"")
        .and_then(|at| command(&at, "\"sysbench … run\""));
    let adapter = fields
        .need("adapter", "sysbench")
        .and_then(|at| command(&at, "sysbench"));
    let expect = fields
        .need("expect", "10s")
        .and_then(|at| time_span(&at, "10s"));
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

fn metrics(doc: &Doc, fields: &Fields<'_>) -> Vec<MetricSpec> {
    let example = "tps: {primary: true, unit: 1/s, better: higher}";
    let Some(at) = fields.need("metrics", &format!("{{{example}}}")) else {
        return Vec::new();
    };
    let mut metrics = Vec::new();
    let mut primary: Option<Spot> = None;
    let mut sound = true;
    for (name, at) in at.entries(example) {
        let Some(fields) = at.keys(&["primary", "unit", "better"]) else {
            sound = false;
            continue;
        };
        if name.value.is_empty()
            || name
                .value
                .contains(|c: char| c.is_whitespace() || c.is_control())
        {
            let note = doc.error(&name.spot, format!("{:?} cannot be a metric", name.value));
            doc.push(note.hint("write the name that the adapter gives it, as in tps"));
        }
        let is_primary = fields
            .get("primary")
            .and_then(|at| at.boolean())
            .unwrap_or(false);
        if is_primary {
            if let Some(first) = &primary {
                let note = doc.error(&name.spot, "a second primary metric");
                let note = note.hint("the verdict is about one metric: make the other plain");
                doc.push(note.label(Some(doc.place(first)), "the first"));
            } else {
                primary = Some(name.spot.clone());
            }
        }
        let better = fields
            .need("better", "higher")
            .and_then(|at| at.choice(&[("higher", Better::Higher), ("lower", Better::Lower)]));
        let unit = fields.need("unit", "1/s").and_then(|at| at.text("1/s"));
        let (Some(better), Some(unit)) = (better, unit) else {
            sound = false;
            continue;
        };
        metrics.push(MetricSpec {
            name: name.value.to_owned(),
            primary: is_primary,
            unit: unit.value.to_owned(),
            better,
        });
    }
    if primary.is_none() && sound && !at.entries(example).is_empty() {
        at.error(
            "no metric is primary",
            "add primary: true to the one that the verdict is about",
        );
    } else if at.entries(example).is_empty() && sound {
        at.error(
            "nothing is measured",
            format!("add a metric, as in {example}"),
        );
    }
    metrics
}

/// The margin as a part of one, from a percentage.
fn margin(fields: &Fields<'_>) -> Option<f64> {
    let at = fields
        .get("reproduce")?
        .keys(&["within"])?
        .need("within", "10%")?;
    let text = at.text("10%")?.value;
    let number = text
        .strip_suffix('%')
        .and_then(|n| n.trim_end().parse::<f64>().ok());
    match number {
        Some(percent) if percent > 0.0 && percent <= 100.0 => Some(percent / 100.0),
        _ => {
            at.error(
                format!("{text:?} is not a margin"),
                "write a percentage above 0, as in 10%",
            );
            None
        }
    }
}
