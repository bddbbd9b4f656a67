//! A plan as people read it: what becomes of each part of the lab, then what is done in which order.

use std::fmt::Write as _;

use crate::plan::{Effect, Plan, changes};

/// Width of the column before a reason.
const WIDTH: usize = 44;

/// Draws a plan.
pub fn plan_text(plan: &Plan) -> String {
    if plan.is_empty() {
        return "nothing to do: the lab is as its file says".to_owned();
    }
    let mut text = String::new();
    let mut last = None;
    for change in changes(plan) {
        if last.replace(change.effect) != Some(change.effect) {
            let _ = writeln!(text, "{}:", word(change.effect));
        }
        let _ = writeln!(text, "  {:<1$} {2}", change.what, WIDTH - 2, change.reason);
    }
    text.push_str("\nin this order:\n");
    for action in &plan.actions {
        let _ = writeln!(
            text,
            "  {:<1$} {2}",
            action.title(),
            WIDTH - 2,
            action.reason
        );
    }
    text
}

const fn word(effect: Effect) -> &'static str {
    match effect {
        Effect::Made => "made",
        Effect::Changed => "changed",
        Effect::Restarted => "restarted",
        Effect::Started => "started",
        Effect::Awaited => "waited for",
        Effect::Destroyed => "destroyed",
    }
}
