//! How far scores lie from the right ones, in points.

use crate::statistics::agreement::contingency::ContingencyTable;
use crate::statistics::undefined::{Defined, at_least};

/// The mean absolute difference of the two ratings of a case.
///
/// # Errors
///
/// Without a case.
pub fn mean_absolute(table: &ContingencyTable<'_>) -> Defined<f64> {
    of_difference(table, f64::abs)
}

/// The mean of the first rating less the second: above 0 where the first is generous.
///
/// # Errors
///
/// Without a case.
pub fn bias(table: &ContingencyTable<'_>) -> Defined<f64> {
    of_difference(table, |difference| difference)
}

fn of_difference(table: &ContingencyTable<'_>, of: fn(f64) -> f64) -> Defined<f64> {
    let n = table.total();
    at_least(1, n as usize, "cases")?;
    let sum: f64 = table.entries().map(|(a, b, w)| w * of(a - b)).sum();
    Ok(sum / n)
}
