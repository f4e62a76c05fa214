//! Rounding of the numbers of a record.

/// Rounds to four decimals, so that records do not depend on the last bits of a computation.
pub(super) fn round_to_4_decimals(value: f64) -> f64 {
    (value * 1e4).round() / 1e4
}
