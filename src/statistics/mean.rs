//! Means of values, some of which are missing.

use super::undefined::{Defined, at_least};
use crate::statistics::agreement::contingency::ContingencyTable;
use crate::statistics::inference::distribution::f_quantile;

/// Weighted mean of the present values.
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
    at_least(1, n as usize, "cases")?;
    Ok(sum / n)
}

/// The 95 % interval of the mean of independent values, from Student's t (scipy, `stats.t.interval`).
///
/// # Errors
///
/// There are fewer than two values.
pub fn mean_interval(values: &[f64]) -> Defined<[f64; 2]> {
    at_least(2, values.len(), "values")?;
    let n = values.len() as f64;
    let mean = values.iter().sum::<f64>() / n;
    let squares: f64 = values.iter().map(|v| (v - mean).powi(2)).sum();
    let error = (squares / (n - 1.0) / n).sqrt();
    // The square of t with k degrees of freedom is F with 1 and k.
    let reach = f_quantile(0.95, 1.0, n - 1.0)?.sqrt() * error;
    Ok([mean - reach, mean + reach])
}

/// Mean over a table of a function of the two ratings; cases with `None` are left out.
///
/// # Errors
///
/// No case counts.
pub fn mean_of(table: &ContingencyTable<'_>, of: impl Fn(f64, f64) -> Option<f64>) -> Defined<f64> {
    let entries = table.entries();
    let counted = entries.filter_map(|(a, b, weight)| Some((of(a, b)?, weight)));
    let (sum, n) = counted.fold((0.0, 0.0), |(sum, n), (value, weight)| {
        (sum + weight * value, n + weight)
    });
    at_least(1, n as usize, "cases")?;
    Ok(sum / n)
}
