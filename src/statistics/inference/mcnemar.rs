//! McNemar's test of two judges on the same cases.

use serde::Serialize;

use super::distribution::binomial_tail;

/// The cases that exactly one of two judges orders correctly.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct McNemar {
    /// Cases that only the first judge orders correctly.
    pub only_first: u64,
    /// Cases that only the second judge orders correctly.
    pub only_second: u64,
    /// Exact two-sided p-value.
    pub p: f64,
}

/// Computes McNemar's exact test (McNemar 1947). Each item of `pairs` states whether the first and
/// the second judge are correct in one case.
pub fn mcnemar(pairs: impl IntoIterator<Item = (bool, bool)>) -> McNemar {
    let count = |(a, b): (u64, u64), pair| match pair {
        (true, false) => (a + 1, b),
        (false, true) => (a, b + 1),
        _ => (a, b),
    };
    let (only_first, only_second) = pairs.into_iter().fold((0, 0), count);
    let tail = binomial_tail(only_first.min(only_second), only_first + only_second);
    McNemar { only_first, only_second, p: (2.0 * tail).min(1.0) }
}
