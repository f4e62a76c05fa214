//! Statistical power of a comparison.

use crate::statistics::undefined::{Defined, require_at_least, require_finite};

/// Sum of the 97.5th and the 80th percentile of the normal distribution.
const QUANTILE_SUM: f64 = 1.959_963_984_540_054 + 0.841_621_233_572_914_3;

/// Computes the minimum detectable effect of a two-sided test at 5 % with 80 % power: 2.8 standard
/// errors, estimated from the resampled differences.
///
/// # Errors
///
/// There are fewer than two resamples.
pub fn minimum_detectable_effect(resamples: &[f64]) -> Defined<f64> {
    require_at_least(2, resamples.len(), ["bootstrap resample", "bootstrap resamples"])?;
    let n = resamples.len() as f64;
    let mean = resamples.iter().sum::<f64>() / n;
    let squares: f64 = resamples.iter().map(|d| (d - mean) * (d - mean)).sum();
    require_finite(QUANTILE_SUM * (squares / (n - 1.0)).sqrt())
}
