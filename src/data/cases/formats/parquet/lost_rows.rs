//! Rows of a file that cannot be read.

use std::ops::Range;

/// Maximum number of rows that get a problem each. A damaged file may claim to have any number.
const MAX_LISTED: u64 = 10_000;

/// Rows that cannot be read, all for the same reason. Iterates over their indices and messages. If
/// they are too many, only the first one is returned.
#[derive(Default)]
pub(super) struct LostRows {
    rows: Range<u64>,
    message: String,
}

impl LostRows {
    /// Creates the problems of rows, given as indices from 0.
    pub(super) fn new(rows: Range<u64>, reason: &str) -> Self {
        let (first, last) = (rows.start + 1, rows.end);
        let message = match last.saturating_sub(rows.start) {
            0 | 1 => format!("row {first} cannot be read: {reason}"),
            _ => format!("rows {first} to {last} cannot be read: {reason}"),
        };
        let is_listed = last.saturating_sub(rows.start) <= MAX_LISTED;
        let end = if is_listed { last.max(first) } else { first };
        Self { rows: rows.start..end, message }
    }
}

impl Iterator for LostRows {
    type Item = (u64, String);

    fn next(&mut self) -> Option<Self::Item> {
        self.rows.next().map(|index| (index, self.message.clone()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_row_has_a_problem_unless_they_are_too_many() {
        let indices = |rows| LostRows::new(rows, "x").map(|(i, _)| i).collect::<Vec<_>>();
        assert_eq!(indices(3..6), [3, 4, 5]);
        assert_eq!(indices(3..u64::MAX), [3]);
        // An error after the last row is a problem too.
        assert_eq!(indices(3..3), [3]);
        let messages = |rows| LostRows::new(rows, "x").next();
        assert_eq!(messages(3..4), Some((3, "row 4 cannot be read: x".to_owned())));
        assert_eq!(messages(3..6), Some((3, "rows 4 to 6 cannot be read: x".to_owned())));
        assert!(LostRows::default().next().is_none());
    }
}
