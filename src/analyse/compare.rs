//! Lays two runs side by side.

use super::comparison::{
    ALPHA, CellComparison, Comparison, Counts, INTERVAL_LEVEL, MetricComparison, OnlyIn, Overall,
    RatioEstimate, Side, Verdict, percent,
};
use crate::archive::{Cell, Results};
use crate::model::{MetricSpec, Playbook};
use crate::stats::{self, Ratio};

/// Compares a second run with a first one, cell by cell, metric by metric. The metrics and the
/// margin are those of `playbook`; cells are matched by their levels.
///
/// A cell and metric is *reproduced* when the 90 % interval of the ratio lies within the margin,
/// which is an equivalence test (TOST) at 5 %. It *differs* when a minimum-effect test says that
/// the ratio is beyond the margin: at 5 % for all cells of the metric together (Holm). Else it is
/// *inconclusive*, with the reason. "All cells are reproduced" needs no correction, since it takes
/// every single one of them (an intersection-union test: Berger, Technometrics 24 (1982)).
pub fn compare(first: &Results, second: &Results, playbook: &Playbook) -> Comparison {
    let (ours, theirs) = (first.cells(), second.cells());
    let partner =
        |cell: &Cell<'_>, others: &[Cell<'_>]| others.iter().position(|o| o.levels == cell.levels);
    let only_in = |cell: &Cell<'_>, side| OnlyIn {
        label: cell.label(),
        side,
    };

    let mut cells = Vec::new();
    let mut missing = Vec::new();
    for cell in &ours {
        match partner(cell, &theirs) {
            Some(at) => cells.push(compare_cell(cell, &theirs[at], playbook)),
            None => missing.push(only_in(cell, Side::First)),
        }
    }
    let strangers = theirs.iter().filter(|cell| partner(cell, &ours).is_none());
    missing.extend(strangers.map(|cell| only_in(cell, Side::Second)));

    for metric in 0..playbook.metrics.len() {
        settle(
            cells.iter_mut().map(|cell| &mut cell.metrics[metric]),
            playbook.margin,
        );
    }
    let primary = playbook.metrics.iter().position(|metric| metric.primary);
    let overall = overall(&cells, &missing, primary, playbook.margin);
    Comparison {
        primary: primary.map(|at| playbook.metrics[at].clone()),
        margin: playbook.margin,
        cells,
        missing,
        overall,
    }
}

fn compare_cell(first: &Cell<'_>, second: &Cell<'_>, playbook: &Playbook) -> CellComparison {
    CellComparison {
        levels: first.levels.to_vec(),
        label: first.label(),
        metrics: playbook
            .metrics
            .iter()
            .map(|metric| compare_metric(first, second, metric, playbook.margin))
            .collect(),
    }
}

fn counts(cell: &Cell<'_>, values: &[f64]) -> Counts {
    Counts {
        planned: cell.trials.len(),
        values: values.len(),
        median: stats::median(values),
    }
}

/// Compares up to the point where the other cells matter: the verdict is not yet `differs`.
fn compare_metric(
    first: &Cell<'_>,
    second: &Cell<'_>,
    metric: &MetricSpec,
    margin: f64,
) -> MetricComparison {
    let (before, after) = (first.values(metric), second.values(metric));
    let ratio = match (&before, &after) {
        (Ok(before), Ok(after)) => Ratio::new(before, after).map_err(|error| error.to_string()),
        (Err(error), _) | (_, Err(error)) => Err(error.to_string()),
    };
    let (ratio, verdict) = match ratio {
        Err(why) => (None, Verdict::Inconclusive { why }),
        Ok(ratio) => {
            let interval = ratio.interval(INTERVAL_LEVEL);
            let estimate = RatioEstimate {
                ratio: ratio.estimate(),
                low: interval.low,
                high: interval.high,
                p_beyond: ratio.p_beyond(margin),
            };
            let verdict = if ratio.p_within(margin) <= ALPHA {
                Verdict::Reproduced { margin }
            } else {
                Verdict::Inconclusive { why: String::new() }
            };
            (Some(estimate), verdict)
        }
    };
    MetricComparison {
        metric: metric.clone(),
        first: counts(first, &before.unwrap_or_default()),
        second: counts(second, &after.unwrap_or_default()),
        ratio,
        verdict,
    }
}

/// Corrects the p-values of one metric over its cells and decides what is open.
fn settle<'c>(cells: impl Iterator<Item = &'c mut MetricComparison>, margin: f64) {
    let mut tested: Vec<_> = cells.filter(|cell| cell.ratio.is_some()).collect();
    let p_values: Vec<_> = tested
        .iter()
        .filter_map(|cell| cell.ratio.map(|r| r.p_beyond))
        .collect();
    let family = p_values.len();
    for (cell, p) in tested.iter_mut().zip(stats::holm(&p_values)) {
        let Some(ratio) = &mut cell.ratio else {
            continue;
        };
        ratio.p_beyond = p;
        if matches!(cell.verdict, Verdict::Reproduced { .. }) {
            continue;
        }
        cell.verdict = if p <= ALPHA {
            Verdict::Differs
        } else {
            Verdict::Inconclusive {
                why: open_question(ratio, margin, family),
            }
        };
    }
}

/// Why a ratio is neither within the margin nor beyond it.
fn open_question(ratio: &RatioEstimate, margin: f64, family: usize) -> String {
    let (low, high) = (1.0 / (1.0 + margin), 1.0 + margin);
    if ratio.high < low || ratio.low > high {
        // The interval is beyond, the test that counts is not.
        let p = ratio.p_beyond;
        return format!(
            "beyond the margin, but p = {p:.2} over {family} cells: more repetitions are needed"
        );
    }
    let percent = percent(margin);
    match (ratio.low < low, ratio.high > high) {
        (true, true) => {
            "the interval is wider than the margin: more repetitions are needed".to_owned()
        }
        (true, false) => {
            format!("it may be more than {percent} lower: more repetitions are needed")
        }
        (false, true) => {
            format!("it may be more than {percent} higher: more repetitions are needed")
        }
        (false, false) => {
            "no value varies, which so few prove nothing by: more repetitions are needed".to_owned()
        }
    }
}

fn overall(
    cells: &[CellComparison],
    missing: &[OnlyIn],
    primary: Option<usize>,
    margin: f64,
) -> Overall {
    let inconclusive = |why: String| Overall::Inconclusive { why };
    let Some(primary) = primary else {
        return inconclusive("the playbook has no primary metric".to_owned());
    };
    let labels = |wanted: fn(&Verdict) -> bool| -> Vec<String> {
        let of = |cell: &&CellComparison| wanted(&cell.metrics[primary].verdict);
        cells
            .iter()
            .filter(of)
            .map(|cell| cell.label.clone())
            .collect()
    };
    let differ = labels(|verdict| matches!(verdict, Verdict::Differs));
    if !differ.is_empty() {
        return Overall::Differs { cells: differ };
    }
    let open = labels(|verdict| matches!(verdict, Verdict::Inconclusive { .. }));
    if !open.is_empty() {
        return inconclusive(format!(
            "{} of {} cells are inconclusive",
            open.len(),
            cells.len()
        ));
    }
    if !missing.is_empty() {
        return inconclusive(format!("{} cells are in one run only", missing.len()));
    }
    if cells.is_empty() {
        return inconclusive("there are no cells".to_owned());
    }
    Overall::Reproduced { margin }
}

#[cfg(test)]
mod tests {
    use rand::{RngExt, SeedableRng};

    use super::*;
    use crate::archive::testing::{bad, results};

    fn words(comparison: &Comparison) -> Vec<(String, &'static str)> {
        comparison
            .cells
            .iter()
            .map(|cell| (cell.label.clone(), cell.metrics[0].verdict.word()))
            .collect()
    }

    fn why(comparison: &Comparison, metric: usize) -> &str {
        match &comparison.cells[0].metrics[metric].verdict {
            Verdict::Inconclusive { why } => why,
            other => panic!("{other:?}"),
        }
    }

    const STEADY: [f64; 6] = [31.8, 32.4, 30.9, 33.1, 32.0, 31.5];

    fn scaled(factor: f64) -> Vec<f64> {
        STEADY.iter().map(|v| v * factor).collect()
    }

    #[test]
    fn the_same_within_the_margin_is_reproduced() {
        let first = results(&[(1, &STEADY), (4, &scaled(3.0))]);
        let second = results(&[(1, &scaled(1.03)), (4, &scaled(2.95))]);
        let comparison = compare(&first, &second, &first.playbook);
        assert_eq!(comparison.overall, Overall::Reproduced { margin: 0.1 });
        let tps = &comparison.cells[0].metrics[0];
        assert!((tps.ratio.unwrap().ratio - 1.03).abs() < 1e-12);
        assert_eq!(
            (tps.first.values, tps.first.planned, tps.first.median),
            (6, 6, Some(31.9))
        );
        // Half the time is as far off as twice the rate.
        assert!((comparison.cells[0].metrics[1].ratio.unwrap().ratio - 1.0 / 1.03).abs() < 1e-12);
    }

    #[test]
    fn a_ratio_beyond_the_margin_differs_and_names_its_cell() {
        let first = results(&[(1, &STEADY), (4, &scaled(3.0))]);
        let second = results(&[(1, &STEADY), (4, &scaled(2.4))]);
        let comparison = compare(&first, &second, &first.playbook);
        assert_eq!(
            comparison.overall,
            Overall::Differs {
                cells: vec!["threads=4".to_owned()]
            }
        );
        assert_eq!(words(&comparison)[0].1, "reproduced");
    }

    #[test]
    fn what_cannot_be_told_is_inconclusive_with_its_reason() {
        let cases: [(&[f64], &[f64], &str); 7] = [
            (&[30.0], &STEADY, "there are 1 and 6"),
            (&STEADY, &[], "there are 6 and 0"),
            (&STEADY, &[0.0, 31.0, 32.0], "above zero"),
            (
                &[10.0, 20.0, 40.0],
                &[10.0, 20.0, 40.0],
                "wider than the margin",
            ),
            (&STEADY, &[33.0, 36.0, 34.0], "more than 10 % higher"),
            (&[33.0, 36.0, 34.0], &STEADY, "more than 10 % lower"),
            // However equal they are, two values a side are no proof.
            (&[30.0, 30.0], &[60.0, 60.0], "p = 0.33 over 1 cells"),
        ];
        for (first, second, reason) in cases {
            let (first, second) = (results(&[(1, first)]), results(&[(1, second)]));
            let comparison = compare(&first, &second, &first.playbook);
            assert!(
                why(&comparison, 0).contains(reason),
                "{} is not about {reason}",
                why(&comparison, 0)
            );
            assert!(matches!(comparison.overall, Overall::Inconclusive { .. }));
        }
    }

    #[test]
    fn cells_are_matched_by_level_and_missing_ones_are_listed() {
        let first = results(&[(1, &STEADY), (4, &STEADY)]);
        let second = results(&[(8, &STEADY), (4, &STEADY)]);
        let comparison = compare(&first, &second, &first.playbook);
        assert_eq!(words(&comparison), [("threads=4".to_owned(), "reproduced")]);
        let missing: Vec<_> = comparison
            .missing
            .iter()
            .map(|m| (m.label.as_str(), m.side))
            .collect();
        assert_eq!(
            missing,
            [("threads=1", Side::First), ("threads=8", Side::Second)]
        );
        assert!(
            matches!(comparison.overall, Overall::Inconclusive { why } if why.contains("2 cells"))
        );
    }

    #[test]
    fn failed_trials_and_other_units_do_not_pass_as_values() {
        let first = results(&[(1, &STEADY)]);
        let mut second = first.clone();
        second.trials[0].1 = vec![bad(1, "died")];
        let comparison = compare(&first, &second, &first.playbook);
        let tps = &comparison.cells[0].metrics[0];
        assert_eq!((tps.second.values, tps.second.planned), (5, 6));
        second.trials[1].1[0].metrics[0].unit = "1/min".to_owned();
        let comparison = compare(&first, &second, &first.playbook);
        assert!(why(&comparison, 0).contains("1/min"));
        assert_eq!(comparison.cells[0].metrics[1].verdict.word(), "reproduced");
    }

    /// Standard normal values by Box and Muller.
    fn normal(rng: &mut impl rand::Rng) -> f64 {
        let (u, v): (f64, f64) = (rng.random(), rng.random());
        (-2.0 * (1.0 - u).ln()).sqrt() * (std::f64::consts::TAU * v).cos()
    }

    /// Four cells of values around 30 · `shift` with a spread of about 5 %.
    fn simulate(results: &mut Results, rng: &mut impl rand::Rng, shift: f64, skewed: bool) {
        for (_, outcomes) in &mut results.trials {
            // A shifted exponential has a long tail that no logarithm makes normal.
            let noise = if skewed {
                -(1.0 - rng.random::<f64>()).ln()
            } else {
                normal(rng)
            };
            outcomes[0].metrics[0].value = 30.0 * shift * (0.05 * noise).exp();
        }
    }

    /// How many of 500 pairs of runs get each verdict: reproduced, differs, inconclusive.
    fn verdicts(repetitions: usize, shift: f64, margin: f64, skewed: bool) -> [usize; 3] {
        let mut rng = rand_pcg::Pcg64::seed_from_u64(7);
        let values = vec![1.0; repetitions];
        let mut first = results(&[1, 2, 4, 8].map(|threads| (threads, values.as_slice())));
        first.playbook.margin = margin;
        first.playbook.metrics.truncate(1);
        let mut second = first.clone();
        let mut counts = [0; 3];
        for _ in 0..500 {
            simulate(&mut first, &mut rng, 1.0, skewed);
            simulate(&mut second, &mut rng, shift, skewed);
            counts[match compare(&first, &second, &first.playbook).overall {
                Overall::Reproduced { .. } => 0,
                Overall::Differs { .. } => 1,
                Overall::Inconclusive { .. } => 2,
            }] += 1;
        }
        counts
    }

    /// 5 % of 500 and three standard deviations of that count: where the true rate is 5 %, a count
    /// above it is no chance.
    const AT_MOST_5_PERCENT: usize = 25 + 15;

    #[test]
    fn false_claims_stay_rare() {
        for skewed in [false, true] {
            for repetitions in [2, 3, 6] {
                let case = format!("n = {repetitions}, skewed: {skewed}");
                // The same against the same. With no margin every "differs" is false, and the rate
                // of the normal case is 5 % by construction.
                let [_, differs, _] = verdicts(repetitions, 1.0, 0.0, skewed);
                assert!(
                    differs <= AT_MOST_5_PERCENT,
                    "{differs} of 500 differ without a margin, {case}"
                );
                let [_, differs, _] = verdicts(repetitions, 1.0, 0.1, skewed);
                assert!(differs <= 5, "{differs} of 500 differ, {case}");
                // Just at the margin neither claim may come often.
                let [reproduced, differs, _] = verdicts(repetitions, 1.1, 0.1, skewed);
                assert!(
                    reproduced <= AT_MOST_5_PERCENT,
                    "{reproduced} of 500 are reproduced, {case}"
                );
                assert!(
                    differs <= AT_MOST_5_PERCENT,
                    "{differs} of 500 differ at the margin, {case}"
                );
            }
        }
    }

    #[test]
    fn true_claims_are_made() {
        assert!(verdicts(12, 1.0, 0.1, false)[0] >= 475);
        assert!(verdicts(6, 1.3, 0.1, false)[1] >= 475);
    }
}
