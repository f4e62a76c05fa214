//! Confidence interval of a proportion for few clusters.
//!
//! With few or equal values, the bootstrap interval is too narrow or a single point.

use crate::statistics::undefined::{Defined, Undefined};

/// Minimum number of clusters for a bootstrap interval.
pub const MIN_CLUSTERS: usize = 10;
/// 97.5 % quantile of the normal distribution.
const Z: f64 = 1.959_963_984_540_054;

/// Computes Wilson's score interval of a proportion of `n` (Wilson, Probable inference, 1927; scipy
/// `stats/_binomtest.py`). With the number of images as `n`, the interval is conservative.
pub fn wilson_interval(proportion: f64, n: f64) -> [f64; 2] {
    let scale = 1.0 + Z * Z / n;
    let center = (proportion + Z * Z / (2.0 * n)) / scale;
    let half = Z * (proportion * (1.0 - proportion) / n + Z * Z / (4.0 * n * n)).sqrt() / scale;
    [(center - half).max(0.0), (center + half).min(1.0)]
}

/// Returns the 95 % interval of a proportion: the bootstrap interval, or
/// [Wilson's](wilson_interval) over the clusters if there are fewer than ten or all resamples are
/// equal.
///
/// # Errors
///
/// There are enough clusters, but too few resamples have a value.
pub fn proportion_interval(
    proportion: f64,
    resampled: Defined<[f64; 2]>,
    clusters: usize,
) -> Defined<[f64; 2]> {
    match resampled {
        Ok(_) | Err(Undefined::Unstable { .. }) if clusters >= MIN_CLUSTERS => resampled,
        _ => Ok(wilson_interval(proportion, clusters.max(1) as f64)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn intervals_equal_scipy() {
        let golden = include_str!("../../../assets/golden/intervals.json");
        let golden: Vec<serde_json::Value> = serde_json::from_str(golden).unwrap();
        for entry in &golden {
            let [k, n] = ["k", "n"].map(|name| entry[name].as_u64().unwrap() as f64);
            for (i, end) in wilson_interval(k / n, n).iter().enumerate() {
                let expected = entry["interval"][i].as_f64().unwrap();
                assert!((end - expected).abs() < 1e-9, "{entry}: {end}");
            }
        }
    }

    #[test]
    fn few_or_equal_values_have_a_wide_interval() {
        let resampled = Ok([0.4, 0.6]);
        assert_eq!(proportion_interval(0.5, resampled, MIN_CLUSTERS), resampled);
        assert_eq!(proportion_interval(0.5, resampled, 8), Ok(wilson_interval(0.5, 8.0)));
        let constant = proportion_interval(1.0, Err(Undefined::NoSpread), 500).unwrap();
        assert!(constant[0] > 0.99 && constant[0] < 0.993 && constant[1] > 0.999, "{constant:?}");
        let unstable = Err(Undefined::Unstable { defined: 1, resamples: 9 });
        assert_eq!(proportion_interval(0.5, unstable, 50), unstable);
    }
}
