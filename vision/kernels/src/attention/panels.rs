//! Panels of a matrix.

#![expect(
    clippy::inline_always,
    reason = "vector instructions need to be part of the function that enables them"
)]

/// Number of columns of a panel.
pub(super) const LANES: usize = 16;

/// A matrix, stored as panels of [`LANES`] columns.
#[derive(Clone, Copy)]
pub(super) struct Panels<'a> {
    /// The rows of all panels, one panel after the other.
    pub(super) rows: &'a [[f32; LANES]],
    /// Number of rows of a panel.
    pub(super) depth: usize,
}

impl<'a> Panels<'a> {
    /// Returns `P` panels from this one on.
    #[inline(always)]
    pub(super) fn select<const P: usize>(&self, first: usize) -> [&'a [[f32; LANES]]; P] {
        let mut panels: [&[[f32; LANES]]; P] = [&[]; P];
        for (p, panel) in panels.iter_mut().enumerate() {
            *panel = &self.rows[(first + p) * self.depth..(first + p + 1) * self.depth];
        }
        panels
    }
}
