//! Score errors, in points.

use crate::statistics::agreement::contingency::ContingencyTable;
use crate::statistics::undefined::{Defined, at_least};

/// The mean absolute difference of the two ratings of a case.
///
/// # Errors
///
/// There is no case.
pub fn mean_absolute(table: &ContingencyTable<'_>) -> Defined<f64> {
    of_difference(table, f64::abs)
}

/// Mean signed error: the mean of first rating − second rating.
///
/// # Errors
///
/// There is no case.
pub fn bias(table: &ContingencyTable<'_>) -> Defined<f64> {
    of_difference(table, |difference| difference)
}

fn of_difference(table: &ContingencyTable<'_>, of: fn(f64) -> f64) -> Defined<f64> {
    let n = table.total();
    at_least(1, n as usize, "cases")?;
    let sum: f64 = table.entries().map(|(a, b, w)| w * of(a - b)).sum();
    Ok(sum / n)
}
