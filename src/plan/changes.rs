//! What a plan does to each part of a lab, for people: many actions serve one end.

use std::collections::BTreeMap;

use super::action::{Action, ActionKind, Plan};
use super::planner::NEW_DOMAIN;

/// What becomes of a part of a lab.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Effect {
    /// It was not there.
    Made,
    /// It is defined anew; a domain that runs is restarted for it.
    Changed,
    /// It runs, is stopped, and is started again.
    Restarted,
    /// It was there, but did not run.
    Started,
    /// It runs, and is waited for.
    Awaited,
    /// It will be gone.
    Destroyed,
}

/// What becomes of one part of a lab, and why.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Change {
    /// What becomes of it.
    pub effect: Effect,
    /// Which it is, as in `domain db`.
    pub what: String,
    /// Why.
    pub reason: String,
}

/// Sums a plan up: by effect, then in the order of its actions.
pub fn changes(plan: &Plan) -> Vec<Change> {
    let mut parts: BTreeMap<String, (usize, Vec<&Action>)> = BTreeMap::new();
    for (i, action) in plan.actions.iter().enumerate() {
        let part = parts.entry(part(action)).or_insert((i, Vec::new()));
        part.1.push(action);
    }
    let mut changes: Vec<_> = parts
        .into_iter()
        .filter_map(|(what, (order, actions))| {
            let (effect, decisive) = effect(&actions)?;
            let reason = decisive.reason.clone();
            let change = Change {
                effect,
                what,
                reason,
            };
            Some((effect, order, change))
        })
        .collect();
    changes.sort_by_key(|(effect, order, _)| (*effect, *order));
    changes.into_iter().map(|(.., change)| change).collect()
}

/// The part of the lab that an action is about.
fn part(action: &Action) -> String {
    use ActionKind as K;
    match &action.kind {
        K::EnsureImage { name, .. } => format!("image {name}"),
        K::DefineNetwork { name, .. } | K::StartNetwork { name } | K::RemoveNetwork { name } => {
            format!("network {name}")
        }
        K::Reserve { network, .. } => format!("network {network}"),
        K::RemoveFile { path } => format!("file {}", path.display()),
        K::RemoveDomain { name } => format!("domain {name}"),
        K::StopDomain { name } if action.domain.is_none() => format!("domain {name}"),
        _ => match &action.domain {
            Some(domain) => format!("domain {domain}"),
            None => action.title(),
        },
    }
}

/// What the actions on one part come to, and the one that tells why.
fn effect<'a>(actions: &[&'a Action]) -> Option<(Effect, &'a Action)> {
    use ActionKind as K;
    let find = |is: fn(&K) -> bool| actions.iter().copied().find(|action| is(&action.kind));
    let defines = find(|k| matches!(k, K::DefineDomain { .. } | K::DefineNetwork { .. }));
    let removes = find(|k| matches!(k, K::RemoveDomain { .. } | K::RemoveNetwork { .. }));
    let starts = find(|k| matches!(k, K::StartDomain { .. } | K::StartNetwork { .. }));
    let stops = find(|k| matches!(k, K::StopDomain { .. }));
    let is_new_domain = |a: &Action| a.reason == NEW_DOMAIN;
    Some(match (removes, defines, stops, starts) {
        (Some(_), Some(define), ..) => (Effect::Changed, define),
        (Some(remove), None, ..) => (Effect::Destroyed, remove),
        (None, Some(define), ..) => match &define.kind {
            K::DefineDomain { .. } if !is_new_domain(define) => (Effect::Changed, define),
            _ => (Effect::Made, define),
        },
        (None, None, Some(_), Some(start)) => (Effect::Restarted, start),
        (None, None, _, Some(start)) => (Effect::Started, start),
        _ => {
            let first = actions.first().copied()?;
            let effect = match first.kind {
                K::EnsureImage { .. } => Effect::Made,
                K::RemoveFile { .. } => Effect::Destroyed,
                K::AwaitReady { .. } => Effect::Awaited,
                _ => Effect::Changed,
            };
            (effect, first)
        }
    })
}
