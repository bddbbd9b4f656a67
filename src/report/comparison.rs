//! Two runs side by side.

use std::fmt::Write as _;

use super::number::{count, figure, plain};
use super::result_table::metric_head;
use super::table::Table;
use crate::analyse::{
    ALPHA, Comparison, Counts, MetricComparison, Overall, Side, Verdict, percent,
};

/// Draws a comparison: a row per metric and cell, the verdict in a sentence, and the reasons for
/// what is open; at most `width` columns wide where that is known.
pub fn comparison_text(comparison: &Comparison, width: Option<u16>) -> String {
    let mut text = String::new();
    let factors = comparison.cells.first().map(|cell| &cell.levels);
    if let Some(factors) = factors {
        let heads = std::iter::once("metric".to_owned())
            .chain(factors.iter().map(|(name, _)| name.to_string()))
            .chain(["first", "second", "ratio [90 %]", "verdict"].map(str::to_owned));
        let mut table = Table::new(heads, width);
        // All cells of a metric stand together: they are one family of claims.
        for metric in 0..comparison.cells[0].metrics.len() {
            for cell in &comparison.cells {
                let compared = &cell.metrics[metric];
                let levels = cell.levels.iter().map(|(_, level)| level.to_string());
                table.row(
                    std::iter::once(metric_head(&compared.metric))
                        .chain(levels)
                        .chain(figures(compared)),
                );
            }
        }
        text.push_str(&table.text());
        text.push('\n');
    }
    text.push_str(&sentence(comparison));
    text.push('\n');
    write_open_questions(&mut text, comparison);
    for only in &comparison.missing {
        let side = match only.side {
            Side::First => "first",
            Side::Second => "second",
        };
        let _ = writeln!(text, "  {}: only in the {side} run", plain(&only.label));
    }
    if factors.is_some() {
        text.push_str(&method(comparison));
    }
    text
}

fn figures(compared: &MetricComparison) -> [String; 4] {
    let side = |counts: &Counts| {
        let unit = &compared.metric.unit;
        let median = counts
            .median
            .map_or_else(|| "-".to_owned(), |median| figure(median, unit));
        format!("{median} ({}/{})", counts.values, counts.planned)
    };
    let ratio = compared.ratio.map_or_else(
        || "-".to_owned(),
        |ratio| format!("{:.3} [{:.3} .. {:.3}]", ratio.ratio, ratio.low, ratio.high),
    );
    [
        side(&compared.first),
        side(&compared.second),
        ratio,
        compared.verdict.word().to_owned(),
    ]
}

/// The overall verdict.
fn sentence(comparison: &Comparison) -> String {
    let metric = comparison
        .primary
        .as_ref()
        .map_or("", |metric| metric.name.as_str());
    let cells = count(comparison.cells.len(), "cell");
    match &comparison.overall {
        Overall::Reproduced { margin } => {
            let all = comparison.cells.len();
            format!(
                "Reproduced: {metric} is the same within {} in {all} of {cells}.",
                percent(*margin)
            )
        }
        Overall::Differs { cells: differ } => {
            let names: Vec<_> = differ.iter().map(|label| plain(label)).collect();
            let margin = percent(comparison.margin);
            format!(
                "Differs: {metric} is off by more than {margin} in {} of {cells}: {}.",
                names.len(),
                names.join("; ")
            )
        }
        Overall::Inconclusive { why } => format!("Inconclusive: {}.", plain(why)),
    }
}

fn write_open_questions(text: &mut String, comparison: &Comparison) {
    for cell in &comparison.cells {
        for compared in &cell.metrics {
            if let Verdict::Inconclusive { why } = &compared.verdict {
                let _ = writeln!(
                    text,
                    "  {}, {}: {}",
                    plain(&cell.label),
                    compared.metric.name,
                    plain(why)
                );
            }
        }
    }
}

fn method(comparison: &Comparison) -> String {
    let margin = comparison.margin;
    format!(
        "\nfirst, second: median (values/planned). ratio: geometric means, second over first, with the 90 %\n\
         interval of Welch's t on logarithms (independent, roughly log-normal trials). Reproduced: the\n\
         interval lies within {:.3} .. {:.3}; differs: beyond it at {}, Holm over {} a metric.\n",
        1.0 / (1.0 + margin),
        1.0 + margin,
        percent(ALPHA),
        count(comparison.cells.len(), "cell"),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analyse::compare;
    use crate::archive::testing::results;

    const STEADY: [f64; 6] = [31.8, 32.4, 30.9, 33.1, 32.0, 31.5];

    fn text(first: &[(i64, &[f64])], second: &[(i64, &[f64])]) -> String {
        let (first, second) = (results(first), results(second));
        comparison_text(&compare(&first, &second, &first.playbook), None)
    }

    #[test]
    fn a_reproduced_run() {
        insta::assert_snapshot!(text(
            &[(1, &STEADY), (4, &STEADY)],
            &[(1, &STEADY), (4, &STEADY)]
        ));
    }

    #[test]
    fn a_run_that_differs_in_a_cell_and_leaves_others_open() {
        let slower = STEADY.map(|v| v * 0.7);
        let first: [(i64, &[f64]); 3] = [(1, &STEADY), (4, &STEADY), (8, &STEADY)];
        insta::assert_snapshot!(text(
            &first,
            &[(1, &slower), (4, &[30.0, 36.0]), (16, &STEADY)]
        ));
    }

    #[test]
    fn runs_without_a_common_cell() {
        insta::assert_snapshot!(text(&[(1, &STEADY)], &[(2, &STEADY)]));
    }
}
