//! Lengths of the free texts of an evaluation.

/// Lengths of free texts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::judging::served) struct TextLimit {
    /// Maximum characters of an analysis; 0 to write none.
    pub(in crate::judging::served) characters: usize,
}
