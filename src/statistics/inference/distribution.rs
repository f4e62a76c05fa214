//! The F, Student and binomial distributions, for exact intervals and tests.
//!
//! All use the regularised incomplete beta function, computed from its continued fraction with
//! Lentz's method (DLMF 8.17.22).

use crate::statistics::undefined::{Defined, Undefined, require_finite};

/// Computes the natural logarithm of the gamma function for x > 0: Stirling's series (DLMF 5.11.1)
/// for x ≥ 12, the recurrence otherwise.
fn ln_gamma(x: f64) -> f64 {
    const SERIES: [f64; 7] = [
        1.0 / 12.0,
        -1.0 / 360.0,
        1.0 / 1260.0,
        -1.0 / 1680.0,
        1.0 / 1188.0,
        -691.0 / 360_360.0,
        1.0 / 156.0,
    ];
    let (mut x, mut shift) = (x, 0.0);
    while x < 12.0 {
        shift -= x.ln();
        x += 1.0;
    }
    let squared = 1.0 / (x * x);
    let series = SERIES.iter().rev().fold(0.0, |sum, c| sum * squared + c) / x;
    let half_ln_tau = 0.918_938_533_204_672_7;
    shift + (x - 0.5) * x.ln() - x + half_ln_tau + series
}

/// Computes the regularised incomplete beta function at `x`, with `y = 1 − x`. The caller passes
/// both, because the smaller one would lose precision otherwise.
fn incomplete_beta(a: f64, b: f64, [x, y]: [f64; 2]) -> f64 {
    if x <= 0.0 {
        return 0.0;
    }
    if y <= 0.0 {
        return 1.0;
    }
    // The fraction converges fast below the mean.
    if x > (a + 1.0) / (a + b + 2.0) {
        return 1.0 - incomplete_beta(b, a, [y, x]);
    }
    let scale = a * x.ln() + b * y.ln() + ln_gamma(a + b) - ln_gamma(a) - ln_gamma(b);
    let (mut c, mut d) = (1.0, replace_zero(1.0 - (a + b) * x / (a + 1.0)).recip());
    let mut fraction = d;
    for m in 1..20_000 {
        let m = f64::from(m);
        let even = m * (b - m) * x / ((a + 2.0 * m - 1.0) * (a + 2.0 * m));
        let odd = -(a + m) * (a + b + m) * x / ((a + 2.0 * m) * (a + 2.0 * m + 1.0));
        let previous = fraction;
        for term in [even, odd] {
            d = replace_zero(1.0 + term * d).recip();
            c = replace_zero(1.0 + term / c);
            fraction *= c * d;
        }
        if (fraction - previous).abs() <= f64::EPSILON * fraction.abs() {
            break;
        }
    }
    (scale.exp() * fraction / a).clamp(0.0, 1.0)
}

/// Replaces zero, because Lentz's method divides by the value.
fn replace_zero(value: f64) -> f64 {
    if value.abs() < 1e-300 { 1e-300 } else { value }
}

/// Computes a quantile of the F distribution with `a` and `b` degrees of freedom.
///
/// # Errors
///
/// The degrees of freedom are not positive, or the quantile overflows.
pub fn f_quantile(probability: f64, a: f64, b: f64) -> Defined<f64> {
    if !(a > 0.0 && b > 0.0 && a.is_finite() && b.is_finite()) {
        return Err(Undefined::NotFinite);
    }
    // F = (b / a) e^t, where e^t are the odds of a beta-distributed variable; solved by bisection.
    let (mut low, mut high) = (-700.0_f64, 700.0_f64);
    for _ in 0..200 {
        let t = f64::midpoint(low, high);
        let x = [1.0 / (1.0 + (-t).exp()), 1.0 / (1.0 + t.exp())];
        if incomplete_beta(a / 2.0, b / 2.0, x) < probability {
            low = t;
        } else {
            high = t;
        }
    }
    if high >= 699.0 {
        return Err(Undefined::NotFinite);
    }
    require_finite(b / a * high.exp())
}

/// Computes a quantile above the median of Student's t with `freedom` degrees of freedom.
///
/// # Errors
///
/// The degrees of freedom are not positive.
pub fn student_quantile(probability: f64, freedom: f64) -> Defined<f64> {
    Ok(f_quantile(2.0 * probability - 1.0, 1.0, freedom)?.sqrt())
}

/// Computes the two-sided p-value of a value of Student's t with `freedom` degrees of freedom.
pub fn student_two_sided_p(t: f64, freedom: f64) -> f64 {
    let sum = freedom + t * t;
    incomplete_beta(freedom / 2.0, 0.5, [freedom / sum, t * t / sum])
}

/// Computes the probability of at most `k` successes in `n` fair coin tosses.
pub fn binomial_tail(k: u64, n: u64) -> f64 {
    if k >= n {
        return 1.0;
    }
    incomplete_beta((n - k) as f64, k as f64 + 1.0, [0.5, 0.5])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ln_gamma_equals_factorials() {
        let mut ln = 0.0;
        for n in 1..200 {
            assert!((ln_gamma(f64::from(n)) - ln).abs() < 1e-13 * (1.0 + ln), "{n}");
            ln += f64::from(n).ln();
        }
        let half = std::f64::consts::PI.sqrt().ln();
        assert!((ln_gamma(0.5) - half).abs() < 1e-14);
    }

    #[test]
    fn binomial_tail_equals_counts() {
        // 1 + 4 + 6 of 16.
        assert!((binomial_tail(2, 4) - 11.0 / 16.0).abs() < 1e-14);
        assert!((binomial_tail(0, 10) - 1.0 / 1024.0).abs() < 1e-15);
        assert!((binomial_tail(4, 4) - 1.0).abs() < 1e-15);
    }

    /// From tables of Student's t.
    #[test]
    fn student_equals_tables() {
        for (freedom, quantile) in [(1.0, 12.706_205), (9.0, 2.262_157), (99.0, 1.984_217)] {
            assert!((student_quantile(0.975, freedom).unwrap() - quantile).abs() < 1e-5);
            assert!((student_two_sided_p(quantile, freedom) - 0.05).abs() < 1e-6);
        }
        assert!((student_two_sided_p(0.0, 9.0) - 1.0).abs() < 1e-12);
    }

    #[test]
    fn f_quantile_needs_positive_degrees_of_freedom() {
        assert!(f_quantile(0.975, 0.0, 3.0).is_err());
        assert!(f_quantile(0.975, 3.0, f64::INFINITY).is_err());
    }
}
