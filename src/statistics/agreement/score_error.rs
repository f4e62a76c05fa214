//! Score errors, in points.

use crate::statistics::agreement::contingency::ContingencyTable;
use crate::statistics::undefined::{Defined, require_at_least};

/// Computes the mean absolute difference of the two ratings of a case.
///
/// # Errors
///
/// There is no case.
pub fn mean_absolute(table: &ContingencyTable<'_>) -> Defined<f64> {
    mean_of_differences(table, f64::abs)
}

/// Computes the mean signed error: the mean of first rating − second rating.
///
/// # Errors
///
/// There is no case.
pub fn bias(table: &ContingencyTable<'_>) -> Defined<f64> {
    mean_of_differences(table, |difference| difference)
}

fn mean_of_differences(table: &ContingencyTable<'_>, function: fn(f64) -> f64) -> Defined<f64> {
    let n = table.total();
    require_at_least(1, n as usize, ["case", "cases"])?;
    let sum: f64 = table.entries().map(|(a, b, w)| w * function(a - b)).sum();
    Ok(sum / n)
}
