//! A query of one head.

use std::ops::Range;

/// The query of a new token for one query head.
pub(super) struct Query<'a> {
    pub(super) values: &'a [f32],
    /// Positions of the sequence that it attends to.
    pub(super) visible: Range<usize>,
}
