//! Mean and variance.

/// The arithmetic mean; none of nothing.
pub(super) fn mean(values: &[f64]) -> Option<f64> {
    (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
}

/// The sample variance (divisor n − 1), in two passes; none of fewer than two values. Exactly 0 when
/// all values are the same.
pub(super) fn variance(values: &[f64]) -> Option<f64> {
    if values.len() < 2 {
        return None;
    }
    // The mean of equal values need not be that value in floating point; callers tell "no
    // variation" from "hardly any".
    if values.iter().all(|v| *v == values[0]) {
        return Some(0.0);
    }
    let mean = mean(values)?;
    let squares: f64 = values.iter().map(|v| (v - mean).powi(2)).sum();
    Some(squares / (values.len() - 1) as f64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stats::ratio::tests::{A, close};

    // python3 -c 'import numpy as np; a=[31.8,32.4,30.9,33.1,32.0,31.5]; print(np.mean(a), np.var(a, ddof=1))'
    #[test]
    fn agrees_with_numpy() {
        close(mean(&A).unwrap(), 31.95);
        close(variance(&A).unwrap(), 0.571);
    }

    #[test]
    fn too_few_values_have_none() {
        assert_eq!(mean(&[]), None);
        assert_eq!(variance(&[1.0]), None);
        assert_eq!(variance(&[0.1; 3]), Some(0.0));
    }
}
