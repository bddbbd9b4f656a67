//! The list of runs.

use super::number::plain;
use super::table::Table;
use crate::archive::{RunState, RunSummary};

/// Draws the list of runs; at most `width` columns wide where that is known.
pub fn runs_text(runs: &[RunSummary], width: Option<u16>) -> String {
    if runs.is_empty() {
        return "There are no runs.\n".to_owned();
    }
    let heads = [
        "playbook",
        "created (UTC)",
        "good",
        "failed",
        "state",
        "path",
    ]
    .map(str::to_owned);
    let mut table = Table::new(heads, width);
    let mut problems = String::new();
    for run in runs {
        let created = run.created.map_or_else(
            || "-".to_owned(),
            |at| at.strftime("%Y-%m-%d %H:%M:%S").to_string(),
        );
        let path = run.path.display().to_string();
        let state = match &run.state {
            RunState::Finished => "finished",
            RunState::Unfinished => "unfinished",
            RunState::Broken { problem } => {
                problems.push_str(&format!("  {}: {}\n", plain(&path), plain(problem)));
                "broken"
            }
        };
        let counts = match run.state {
            RunState::Broken { .. } => ["-".to_owned(), "-".to_owned()],
            _ => [
                format!("{}/{}", run.done, run.planned),
                run.failed.to_string(),
            ],
        };
        let [good, failed] = counts;
        table.row([
            run.playbook.clone(),
            created,
            good,
            failed,
            state.to_owned(),
            path,
        ]);
    }
    let mut text = table.text();
    if !problems.is_empty() {
        text.push_str("\nThese cannot be read:\n");
        text.push_str(&problems);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::archive::testing::stamp;

    #[test]
    fn broken_runs_are_shown_with_their_problem() {
        let run = |name: &str, done, failed, state| RunSummary {
            playbook: "oltp".to_owned(),
            name: name.to_owned(),
            path: format!("runs/oltp/{name}").into(),
            created: Some(stamp()),
            planned: 12,
            done,
            failed,
            state,
        };
        let problem = "runs/oltp/20261201T101502Z-cccccc/plan.json is damaged: EOF".to_owned();
        let mut broken = run(
            "20261201T101502Z-cccccc",
            0,
            0,
            RunState::Broken { problem },
        );
        broken.created = None;
        insta::assert_snapshot!(runs_text(
            &[
                run("20261201T101500Z-aaaaaa", 11, 1, RunState::Finished),
                run("20261201T101501Z-bbbbbb", 4, 0, RunState::Unfinished),
                broken,
            ],
            None
        ));
        assert_eq!(runs_text(&[], None), "There are no runs.\n");
    }
}
