//! Lengths of the free texts of an evaluation.

/// Lengths of free texts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::judging::served) struct TextLimit {
    /// Maximum characters of an analysis; 0 to write none.
    pub(in crate::judging::served) characters: usize,
}

impl TextLimit {
    /// Shortens an analysis to the limit, if there is one. Returns true if it was longer.
    pub(super) fn cut(self, analysis: &mut String) -> bool {
        let end = analysis.char_indices().nth(self.characters).filter(|_| self.characters > 0);
        if let Some((end, _)) = end {
            analysis.truncate(end);
        }
        end.is_some()
    }
}
