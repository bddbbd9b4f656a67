//! Several tests at once.

/// Adjusts the p-values of one family so that comparing each with α keeps the chance of any false
/// claim at α or below, whatever the dependence between them: Holm, "A simple sequentially
/// rejective multiple test procedure", Scandinavian Journal of Statistics 6 (1979). The order of
/// the values is kept.
pub fn holm(p_values: &[f64]) -> Vec<f64> {
    let mut order: Vec<_> = (0..p_values.len()).collect();
    order.sort_by(|a, b| p_values[*a].total_cmp(&p_values[*b]));
    let mut adjusted = vec![0.0; p_values.len()];
    let mut largest: f64 = 0.0;
    for (rank, index) in order.into_iter().enumerate() {
        let factor = (p_values.len() - rank) as f64;
        largest = largest.max((factor * p_values[index]).min(1.0));
        adjusted[index] = largest;
    }
    adjusted
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stats::ratio::tests::close;

    // python3 -c 'from statsmodels.stats.multitest import multipletests as m
    //   print(m([0.01,0.04,0.03,0.005], method="holm")[1])'
    #[test]
    fn agrees_with_statsmodels() {
        let adjusted = holm(&[0.01, 0.04, 0.03, 0.005]);
        for (found, expected) in adjusted.into_iter().zip([0.03, 0.06, 0.06, 0.02]) {
            close(found, expected);
        }
        assert_eq!(holm(&[0.7, 0.9]), [1.0, 1.0]);
        assert_eq!(holm(&[]), [] as [f64; 0]);
    }
}
