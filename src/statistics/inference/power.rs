//! Statistical power of a comparison.

use crate::statistics::undefined::{Defined, at_least, finite};

/// The 97.5th and the 80th percentile of the normal distribution.
const QUANTILES: f64 = 1.959_963_984_540_054 + 0.841_621_233_572_914_3;

/// Minimum detectable effect of a two-sided test at 5 % with 80 % power: 2.8 standard errors, estimated from
/// the resampled differences.
///
/// # Errors
///
/// There are fewer than two resamples.
pub fn smallest_detectable(draws: &[f64]) -> Defined<f64> {
    at_least(2, draws.len(), "bootstrap resamples")?;
    let n = draws.len() as f64;
    let mean = draws.iter().sum::<f64>() / n;
    let squares: f64 = draws.iter().map(|d| (d - mean) * (d - mean)).sum();
    finite(QUANTILES * (squares / (n - 1.0)).sqrt())
}
