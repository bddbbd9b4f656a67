//! A playbook file as written: every value with its place, defaults filled, nothing bound yet.

use std::collections::HashMap;

use serde_json::Value;

use super::playbook_steps::{STEP, StepSpec, refuse_loads, steps, trial};
use super::read::{At, Doc, Fields, Spot, Written};
use super::shape::{Form, Key, NAME, Shape, Word, words};
use super::topology::version;
use crate::model::{Better, Design, Level, MetricSpec, Name, Order};
use crate::render::context::RESERVED;

/// The only version of the playbook language.
const VERSION: u64 = 1;

/// Trials that one playbook may have.
const TRIALS_MAX: u64 = 1_000_000;

/// Words of Tera that no variable can be called.
const TERA_WORDS: [&str; 15] = [
    "and", "or", "not", "in", "is", "if", "else", "elif", "for", "set", "true", "false", "none",
    "loop", "self",
];

/// What a playbook is.
pub(super) const PLAYBOOK: Shape = Shape::new(
    "An experiment: what is done on a lab, and what is measured.",
    &[
        Key::required(
            "version",
            Form::Whole {
                least: 1,
                most: u64::MAX,
            },
            "1",
            "Version of this language.",
        ),
        Key::required("name", NAME, "oltp", "Name of the experiment."),
        Key::required(
            "topology",
            Form::Text,
            "../topologies/quickstart.yaml",
            "Topology of its lab, relative to this file.",
        ),
        Key::new(
            "roles",
            Form::Named(&Form::List(&Form::Text)),
            "{db: [db], load: [client]}",
            "Names for domains or counted groups, by what they do here.",
        ),
        Key::new(
            "factors",
            Form::Named(&Form::List(&Form::Scalar)),
            "{threads: [1, 2, 4]}",
            "What is varied, with its levels. Steps of a trial see it, as in {{ threads }}.",
        ),
        Key::new(
            "design",
            Form::Map(&DESIGN),
            "{repetitions: 6, seed: 7}",
            "How often and in which order trials are run.",
        ),
        Key::new(
            "setup",
            Form::List(&Form::Map(&STEP)),
            "[{on: db, run: …}]",
            "Steps that are done once, before the first trial.",
        ),
        Key::required(
            "trial",
            Form::List(&Form::Map(&STEP)),
            "[{on: load, load: {run: …, adapter: sysbench, expect: 10s}}]",
            "Steps of every trial; one is the load.",
        ),
        Key::required(
            "metrics",
            Form::Keyed(&Form::Map(&METRIC)),
            "{tps: {primary: true, unit: 1/s, better: higher}}",
            "What is taken from the load's output, by the name that the adapter gives it.",
        ),
        Key::new(
            "reproduce",
            Form::Map(&REPRODUCE),
            "{within: 10%}",
            "When a rerun counts as reproduced.",
        ),
    ],
);

const DESIGN: Shape = Shape::new(
    "The design of the experiment.",
    &[
        Key::new(
            "repetitions",
            Form::Whole {
                least: 1,
                most: 100_000,
            },
            "6",
            "Trials of each combination of levels; 6 when left out.",
        ),
        Key::new(
            "order",
            Form::Words(words::<Order>),
            "blocks",
            "Order of trials: blocks has every combination once, in random order, before any comes again.",
        ),
        Key::new(
            "seed",
            Form::Whole {
                least: 0,
                most: u64::MAX,
            },
            "7",
            "What the random order is drawn from; 1 when left out.",
        ),
    ],
);

const METRIC: Shape = Shape::new(
    "A metric.",
    &[
        Key::new(
            "primary",
            Form::Truth,
            "true",
            "Whether the verdict is about it; exactly one is primary.",
        ),
        Key::required("unit", Form::Text, "1/s", "Unit that it is shown in."),
        Key::required(
            "better",
            Form::Words(words::<Better>),
            "higher",
            "Which values are better.",
        ),
    ],
);

const REPRODUCE: Shape = Shape::new(
    "When a rerun counts as reproduced.",
    &[Key::required(
        "within",
        Form::Syntax("^[0-9.]+ *%$"),
        "10%",
        "How far a rerun may be from the first run; 10% when left out.",
    )],
);

impl Word for Order {
    const WORDS: &'static [(&'static str, Self)] = &[("blocks", Self::Blocks)];
}

impl Word for Better {
    const WORDS: &'static [(&'static str, Self)] =
        &[("higher", Self::Higher), ("lower", Self::Lower)];
}

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

impl PlaybookSpec {
    /// Reads a playbook.
    pub fn read(doc: &Doc, top: &At<'_>) -> Option<Self> {
        let fields = top.fields(&PLAYBOOK)?;
        version(&fields, VERSION)?;
        let topology = fields.get("topology").and_then(|at| {
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
            name: fields.get("name").and_then(|at| at.parse("oltp")),
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
pub(super) fn names(at: &At<'_>, example: &str) -> Vec<Written<String>> {
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
    let design = fields.get("design").and_then(|at| at.fields(&DESIGN));
    let get = |key: &str| design.as_ref().and_then(|design| design.get(key));
    Design {
        repetitions: get("repetitions")
            .and_then(|at| at.whole())
            .map_or(6, |n| n as u32),
        order: get("order")
            .and_then(|at| at.word())
            .unwrap_or(Order::Blocks),
        seed: get("seed").and_then(|at| at.whole()).unwrap_or(1),
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

fn metrics(doc: &Doc, fields: &Fields<'_>) -> Vec<MetricSpec> {
    let example = "tps: {primary: true, unit: 1/s, better: higher}";
    let Some(at) = fields.get("metrics") else {
        return Vec::new();
    };
    let mut metrics = Vec::new();
    let mut primary: Option<Spot> = None;
    let mut sound = true;
    for (name, at) in at.entries(example) {
        let Some(fields) = at.fields(&METRIC) else {
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
        let better = fields.get("better").and_then(|at| at.word::<Better>());
        let unit = fields.get("unit").and_then(|at| at.text("1/s"));
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
    let at = fields.get("reproduce")?.fields(&REPRODUCE)?.get("within")?;
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
