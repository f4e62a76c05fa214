//! Means that skip missing values.

use super::undefined::{Defined, require_at_least};
use crate::statistics::agreement::contingency::ContingencyTable;
use crate::statistics::inference::distribution::f_quantile;

/// Computes the weighted mean of the present values.
///
/// # Errors
///
/// There is no value.
pub fn mean(values: &[Option<f64>], weights: &[f64]) -> Defined<f64> {
    let present = values.iter().zip(weights);
    let (sum, n) = present.fold((0.0, 0.0), |(sum, n), (value, weight)| match value {
        Some(value) => (sum + weight * value, n + weight),
        None => (sum, n),
    });
    require_at_least(1, n as usize, ["case", "cases"])?;
    Ok(sum / n)
}

/// Computes the 95 % interval of the mean of independent values, from Student's t (scipy,
/// `stats.t.interval`).
///
/// # Errors
///
/// There are fewer than two values.
pub fn mean_interval(values: &[f64]) -> Defined<[f64; 2]> {
    require_at_least(2, values.len(), ["value", "values"])?;
    let n = values.len() as f64;
    let mean = values.iter().sum::<f64>() / n;
    let squares: f64 = values.iter().map(|v| (v - mean).powi(2)).sum();
    let error = (squares / (n - 1.0) / n).sqrt();
    // The square of t with k degrees of freedom is F with 1 and k.
    let half_width = f_quantile(0.95, 1.0, n - 1.0)?.sqrt() * error;
    Ok([mean - half_width, mean + half_width])
}

/// Computes the mean of a function of the two ratings over a table; cases with `None` are left out.
///
/// # Errors
///
/// The function returns `None` for every case.
pub fn mean_over_table(
    table: &ContingencyTable<'_>,
    function: impl Fn(f64, f64) -> Option<f64>,
) -> Defined<f64> {
    let entries = table.entries();
    let counted = entries.filter_map(|(a, b, weight)| Some((function(a, b)?, weight)));
    let (sum, n) =
        counted.fold((0.0, 0.0), |(sum, n), (value, weight)| (sum + weight * value, n + weight));
    require_at_least(1, n as usize, ["case", "cases"])?;
    Ok(sum / n)
}
