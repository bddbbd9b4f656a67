//! Order statistics: quantiles, and intervals of a median that assume no distribution.

use statrs::distribution::{Binomial, DiscreteCDF};

/// The median; none of nothing.
pub fn median(values: &[f64]) -> Option<f64> {
    quantile(values, 0.5)
}

/// The quantile `p` (0 to 1) by linear interpolation between order statistics: type 7 of Hyndman
/// and Fan, "Sample quantiles in statistical packages", The American Statistician 50 (1996), which
/// R and NumPy take by default. None of nothing.
pub fn quantile(values: &[f64], p: f64) -> Option<f64> {
    let sorted = sorted(values);
    let last = sorted.len().checked_sub(1)?;
    let at = p.clamp(0.0, 1.0) * last as f64;
    // In range: `at` lies between 0 and `last`.
    let below = at.floor() as usize;
    let above = (below + 1).min(last);
    Some(sorted[below] + (at - at.floor()) * (sorted[above] - sorted[below]))
}

/// An interval of a median.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct MedianInterval {
    /// Lower end: one of the values.
    pub low: f64,
    /// Upper end: one of the values.
    pub high: f64,
    /// How often such an interval holds the true median: exact for a continuous distribution, at
    /// least that with ties.
    pub coverage: f64,
    /// Whether `coverage` is what was asked for. If not, the interval is [min, max], the widest
    /// there is, and more repetitions are needed.
    pub reached: bool,
}

/// The narrowest interval between order statistics, the same number left out at both ends, that
/// holds the true median with a probability of `level` or more.
///
/// `[x(k), x(n+1−k)]` covers it with 1 − 2·P(B ≤ k − 1), B binomial over n with ½: any distribution,
/// independent values (David and Nagaraja, "Order statistics", 3rd ed. 2003, §7.1). None of nothing.
pub fn median_interval(values: &[f64], level: f64) -> Option<MedianInterval> {
    let sorted = sorted(values);
    let n = sorted.len();
    if n == 0 {
        return None;
    }
    let left_out = (0..n.div_ceil(2))
        .take_while(|k| coverage(n, *k) >= level)
        .last();
    let k = left_out.unwrap_or(0);
    Some(MedianInterval {
        low: sorted[k],
        high: sorted[n - 1 - k],
        coverage: coverage(n, k),
        reached: left_out.is_some(),
    })
}

/// The probability that the range of `n` values, `[min, max]`, holds the true median: 1 − 2^(1−n),
/// and 0 of nothing.
pub fn range_coverage(n: usize) -> f64 {
    if n == 0 {
        0.0
    } else {
        1.0 - 2.0 * 0.5_f64.powi(i32::try_from(n).unwrap_or(i32::MAX))
    }
}

/// The smallest number of values whose range holds the true median with `level` (below 1). It is 6
/// for 95 %.
pub fn repetitions_for_median(level: f64) -> usize {
    (1..64).find(|n| range_coverage(*n) >= level).unwrap_or(64)
}

/// The probability that the true median lies between the order statistics that are left when `k`
/// values are dropped at either end.
fn coverage(n: usize, k: usize) -> f64 {
    // ½ is a probability: there is always a distribution.
    Binomial::new(0.5, n as u64).map_or(0.0, |b| (1.0 - 2.0 * b.cdf(k as u64)).max(0.0))
}

fn sorted(values: &[f64]) -> Vec<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stats::ratio::tests::{A, B, close};

    // python3 -c 'import numpy as np; a=[31.8,32.4,30.9,33.1,32.0,31.5]
    //   print([np.quantile(a,q) for q in (0,.1,.25,.5,.9,1)], np.median([29.7,30.8,31.2,28.9,30.1]))'
    #[test]
    fn quantiles_agree_with_numpy() {
        for (p, expected) in [
            (0.0, 30.9),
            (0.1, 31.2),
            (0.25, 31.575),
            (0.5, 31.9),
            (0.9, 32.75),
            (1.0, 33.1),
        ] {
            close(quantile(&A, p).unwrap(), expected);
        }
        close(median(&B).unwrap(), 30.1);
        assert_eq!(median(&[]), None);
        assert_eq!(quantile(&[3.0], 0.9), Some(3.0));
    }

    // python3 -c 'from scipy.stats import binom
    //   for n,k in ((5,1),(6,1),(8,1),(9,2),(12,3),(20,6),(100,40),(3000,1446)): print(n, k, 1-2*binom.cdf(k-1,n,.5))'
    // where k is the largest with 0.95 or more, else 1.
    #[test]
    fn median_intervals_have_their_exact_coverage() {
        let cases = [
            (1, 1, 0.0, false),
            (2, 1, 0.5, false),
            (5, 1, 0.9375, false),
            (6, 1, 0.96875, true),
            (8, 1, 0.992_187_5, true),
            (9, 2, 0.960_937_5, true),
            (12, 3, 0.961_425_781_25, true),
            (20, 6, 0.958_610_534_667_968_8, true),
            (100, 40, 0.964_799_799_782_295_1, true),
            (3000, 1446, 0.953_433_550_617_916_9, true),
        ];
        for (n, k, covered, reached) in cases {
            let values: Vec<_> = (1..=n).rev().map(f64::from).collect();
            let interval = median_interval(&values, 0.95).unwrap();
            assert_eq!(
                (interval.low, interval.high),
                (f64::from(k), f64::from(n + 1 - k)),
                "n = {n}"
            );
            assert!(
                (interval.coverage - covered).abs() < 1e-9,
                "n = {n}: {interval:?}"
            );
            assert_eq!(interval.reached, reached, "n = {n}");
        }
        assert_eq!(median_interval(&[], 0.95), None);
    }

    #[test]
    fn six_repetitions_are_the_least_for_95_percent() {
        assert_eq!(repetitions_for_median(0.95), 6);
        assert_eq!(repetitions_for_median(0.99), 8);
        assert_eq!(repetitions_for_median(0.0), 1);
        assert_eq!(range_coverage(6), 0.96875);
        assert_eq!(range_coverage(0), 0.0);
    }
}
