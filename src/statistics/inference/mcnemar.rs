//! McNemar's test of two judges on the same cases.

use serde::Serialize;

use super::distribution::binomial_tail;

/// Result of McNemar's test: the cases that only one of two judges orders correctly, and the
/// p-value.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct McNemar {
    /// Cases that only the first judge orders correctly.
    pub only_first: u64,
    /// Cases that only the second judge orders correctly.
    pub only_second: u64,
    /// Exact two-sided p-value.
    pub p: f64,
}

/// Computes McNemar's exact test (McNemar 1947). Each item of `are_correct` describes one case:
/// whether the first judge orders it correctly, and whether the second judge does.
pub fn mcnemar(are_correct: impl IntoIterator<Item = (bool, bool)>) -> McNemar {
    let count = |(a, b): (u64, u64), are_correct| match are_correct {
        (true, false) => (a + 1, b),
        (false, true) => (a, b + 1),
        _ => (a, b),
    };
    let (only_first, only_second) = are_correct.into_iter().fold((0, 0), count);
    let tail = binomial_tail(only_first.min(only_second), only_first + only_second);
    McNemar { only_first, only_second, p: (2.0 * tail).min(1.0) }
}
