//! How many times as large one sample is as another.

use statrs::distribution::{ContinuousCDF, StudentsT};

use super::moments::{mean, variance};

/// The ratio of the geometric means of two samples, with its uncertainty.
///
/// It is Welch's t procedure on the logarithms: values are independent, and their logarithms
/// roughly normal (values roughly log-normal), with a variance of its own in each sample. With few
/// values the interval leans on that assumption. Sources: Welch, "The generalization of 'Student's'
/// problem when several different population variances are involved", Biometrika 34 (1947);
/// Satterthwaite, "An approximate distribution of estimates of variance components", Biometrics
/// Bulletin 2 (1946), for the degrees of freedom.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Ratio {
    /// Natural logarithm of the ratio, second over first.
    log: f64,
    /// Standard error of `log`; 0 when neither sample varies.
    error: f64,
    /// Degrees of freedom of the t distribution; 0 when neither sample varies.
    freedom: f64,
    /// Sizes of the samples.
    sizes: (usize, usize),
}

/// Two ends.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Interval {
    /// Lower end.
    pub low: f64,
    /// Upper end.
    pub high: f64,
}

/// Why two samples have no ratio with an uncertainty.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum RatioError {
    /// A sample has fewer than two values.
    #[error("two or more values are needed on each side, there are {0} and {1}")]
    TooFew(usize, usize),
    /// Zero or negative values have no logarithm.
    #[error("a ratio needs values above zero")]
    NotPositive,
}

impl Ratio {
    /// The ratio of `second` to `first`.
    ///
    /// # Errors
    /// When a sample has fewer than two values, or one that is not above zero.
    pub fn new(first: &[f64], second: &[f64]) -> Result<Self, RatioError> {
        if !first
            .iter()
            .chain(second)
            .all(|v| *v > 0.0 && v.is_finite())
        {
            return Err(RatioError::NotPositive);
        }
        let too_few = RatioError::TooFew(first.len(), second.len());
        // Mean of the logarithms, variance of that mean, degrees of freedom of the variance.
        let describe = |values: &[f64]| {
            let logs: Vec<_> = values.iter().map(|v| v.ln()).collect();
            let n = logs.len() as f64;
            Some((mean(&logs)?, variance(&logs)? / n, n - 1.0))
        };
        let (mean1, square1, freedom1) = describe(first).ok_or(too_few)?;
        let (mean2, square2, freedom2) = describe(second).ok_or(too_few)?;
        let square = square1 + square2;
        let freedom = if square > 0.0 {
            square.powi(2) / (square1.powi(2) / freedom1 + square2.powi(2) / freedom2)
        } else {
            0.0
        };
        let sizes = (first.len(), second.len());
        Ok(Self {
            log: mean2 - mean1,
            error: square.sqrt(),
            freedom,
            sizes,
        })
    }

    /// The ratio.
    pub fn estimate(&self) -> f64 {
        self.log.exp()
    }

    /// The interval that holds the true ratio with a probability of `level`. Of no width when
    /// neither sample varies.
    pub fn interval(&self, level: f64) -> Interval {
        let reach = self.t().map_or(0.0, |t| {
            t.inverse_cdf(f64::midpoint(1.0, level)) * self.error
        });
        Interval {
            low: (self.log - reach).exp(),
            high: (self.log + reach).exp(),
        }
    }

    /// The p-value of the claim that the true ratio lies within `[1/(1 + margin), 1 + margin]`: the
    /// larger of two one-sided tests (Schuirmann, "A comparison of the two one-sided tests
    /// procedure and the power approach …", Journal of Pharmacokinetics and Biopharmaceutics 15
    /// (1987)). It is below α exactly when the interval of level 1 − 2α lies within.
    ///
    /// When neither sample varies there is no t distribution. Then it is the smallest p-value that
    /// a one-sided permutation test can give for samples of these sizes.
    pub fn p_within(&self, margin: f64) -> f64 {
        let edge = margin.ln_1p();
        match self.t() {
            Some(t) => t.sf((edge - self.log.abs()) / self.error),
            None if self.log.abs() > edge => 1.0,
            None => self.smallest_permutation_p() / 2.0,
        }
    }

    /// The p-value of the claim that the true ratio lies outside of `[1/(1 + margin), 1 + margin]`
    /// (a minimum-effect test: both tails under the nearer edge; Welch's two-sided test when
    /// `margin` is 0).
    ///
    /// When neither sample varies there is no t distribution. Then it is the smallest p-value that
    /// a two-sided permutation test can give for samples of these sizes, so that two values a side
    /// are no proof however equal they are.
    pub fn p_beyond(&self, margin: f64) -> f64 {
        let edge = margin.ln_1p();
        let size = self.log.abs();
        match self.t() {
            Some(t) => t.sf((size - edge) / self.error) + t.sf((size + edge) / self.error),
            None if size > edge => self.smallest_permutation_p(),
            None => 1.0,
        }
        .min(1.0)
    }

    fn t(&self) -> Option<StudentsT> {
        StudentsT::new(0.0, 1.0, self.freedom).ok()
    }

    /// 2 / C(n1 + n2, n1): two of all ways to deal the values out are as extreme as a full
    /// separation.
    fn smallest_permutation_p(&self) -> f64 {
        let (n1, n2) = self.sizes;
        let ways = (1..=n1).fold(1.0, |ways, i| ways * (n2 + i) as f64 / i as f64);
        2.0 / ways
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    pub(in crate::stats) const A: [f64; 6] = [31.8, 32.4, 30.9, 33.1, 32.0, 31.5];
    pub(in crate::stats) const B: [f64; 5] = [29.7, 30.8, 31.2, 28.9, 30.1];

    /// Agreement to 9 digits.
    pub(in crate::stats) fn close(found: f64, expected: f64) {
        assert!(
            (found - expected).abs() <= 1e-9 * expected.abs(),
            "{found} is not {expected}"
        );
    }

    // python3 -c 'import numpy as np; from scipy import stats
    //   a=np.log([31.8,32.4,30.9,33.1,32.0,31.5]); b=np.log([29.7,30.8,31.2,28.9,30.1])
    //   r=stats.ttest_ind(b,a,equal_var=False); c=r.confidence_interval(.90); d=b.mean()-a.mean()
    //   s=np.sqrt(a.var(ddof=1)/6+b.var(ddof=1)/5); t=stats.t(r.df); m,k=np.log(1.1),np.log(1.02)
    //   print(np.exp(d), np.exp(c.low), np.exp(c.high), r.df, r.pvalue,
    //     max(t.sf((d+m)/s), t.cdf((d-m)/s)), t.sf((abs(d)-k)/s)+t.sf((abs(d)+k)/s))'
    #[test]
    fn agrees_with_scipy() {
        let ratio = Ratio::new(&A, &B).unwrap();
        close(ratio.estimate(), 0.943_225_131_588_122_2);
        let interval = ratio.interval(0.90);
        close(interval.low, 0.914_349_336_907_506_5);
        close(interval.high, 0.973_012_844_159_176_8);
        close(ratio.freedom, 7.548_336_939_969_259);
        close(ratio.p_beyond(0.0), 0.008_573_960_343_349_413);
        close(ratio.p_within(0.10), 0.029_494_400_425_744_794);
        close(ratio.p_beyond(0.02), 0.025_912_660_018_536_31);
    }

    // python3 -c 'from scipy import stats
    //   for f in (1,2.5,4,10,37.3,1000): print(stats.t.ppf(.95,f), stats.t.ppf(.975,f), stats.t.sf(2.2,f))'
    #[test]
    fn t_quantiles_agree_with_scipy() {
        let cases = [
            (
                1.0,
                6.313_751_514_675_037,
                12.706_204_736_174_694,
                0.135_799_748_780_091_88,
            ),
            (
                2.5,
                2.558_218_614_135_925_5,
                3.574_654_842_003_681_7,
                0.066_456_992_709_834_56,
            ),
            (
                4.0,
                2.131_846_786_326_649_5,
                2.776_445_105_197_793_4,
                0.046_326_335_089_817_296,
            ),
            (
                10.0,
                1.812_461_122_811_675_6,
                2.228_138_851_986_274,
                0.026_220_534_224_676_58,
            ),
            (
                37.3,
                1.686_745_297_143_436_7,
                2.025_642_523_077_960_4,
                0.017_039_020_323_684_27,
            ),
            (
                1000.0,
                1.646_378_817_285_464_3,
                1.962_339_080_826_408_3,
                0.014_017_512_663_348_957,
            ),
        ];
        for (freedom, t95, t975, tail) in cases {
            let t = Ratio {
                log: 0.0,
                error: 1.0,
                freedom,
                sizes: (2, 2),
            }
            .t()
            .unwrap();
            close(t.inverse_cdf(0.95), t95);
            close(t.inverse_cdf(0.975), t975);
            close(t.sf(2.2), tail);
        }
    }

    #[test]
    fn the_order_of_the_samples_only_inverts_the_ratio() {
        let (there, back) = (Ratio::new(&A, &B).unwrap(), Ratio::new(&B, &A).unwrap());
        close(there.estimate(), 1.0 / back.estimate());
        close(there.interval(0.9).low, 1.0 / back.interval(0.9).high);
        close(there.p_within(0.1), back.p_within(0.1));
        close(there.p_beyond(0.01), back.p_beyond(0.01));
    }

    #[test]
    fn samples_that_do_not_vary_prove_only_what_their_number_allows() {
        let same = Ratio::new(&[0.1; 3], &[0.1; 3]).unwrap();
        assert_eq!(
            same.interval(0.9),
            Interval {
                low: 1.0,
                high: 1.0
            }
        );
        close(same.p_within(0.1), 0.05);
        assert_eq!(same.p_beyond(0.1), 1.0);
        for (n, p) in [(2, 1.0 / 3.0), (3, 0.1), (4, 2.0 / 70.0)] {
            let doubled = Ratio::new(&vec![0.1; n], &vec![0.2; n]).unwrap();
            close(doubled.p_beyond(0.1), p);
            assert_eq!(doubled.p_within(0.1), 1.0);
        }
    }

    #[test]
    fn some_samples_have_no_ratio() {
        assert_eq!(
            Ratio::new(&[1.0], &[1.0, 2.0]),
            Err(RatioError::TooFew(1, 2))
        );
        assert_eq!(Ratio::new(&[], &[]), Err(RatioError::TooFew(0, 0)));
        assert_eq!(
            Ratio::new(&[1.0, 0.0], &[1.0, 2.0]),
            Err(RatioError::NotPositive)
        );
        assert_eq!(
            Ratio::new(&[1.0, 2.0], &[1.0, f64::NAN]),
            Err(RatioError::NotPositive)
        );
    }
}
