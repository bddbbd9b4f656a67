//! Order statistics: quantiles, and how well a range holds a median, whatever the distribution.

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

/// The probability that the range of `n` values, `[min, max]`, holds the true median: 1 − 2^(1−n),
/// and 0 of nothing. Exact for independent values of a continuous distribution, at least that with
/// ties (David and Nagaraja, "Order statistics", 3rd ed. 2003, §7.1).
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

    #[test]
    fn six_repetitions_are_the_least_for_95_percent() {
        assert_eq!(repetitions_for_median(0.95), 6);
        assert_eq!(repetitions_for_median(0.99), 8);
        assert_eq!(repetitions_for_median(0.0), 1);
        assert_eq!(range_coverage(6), 0.96875);
        assert_eq!(range_coverage(0), 0.0);
    }
}
