//! Keys that each query attends to.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;

use acem3_kernels::CausalSpan;

/// Keys that each query attends to.
#[derive(Clone, Debug)]
pub enum AttentionMask {
    /// Each query attends to the keys up to its own position.
    Causal,
    /// Causal, except that the tokens of these ranges attend to all tokens of their range. The ranges
    /// are in order.
    Bidirectional(Arc<[Range<usize>]>),
    /// Causal within packed sequences. A token attends to the prefix of its sequence (branch 0) and
    /// to its own branch. One row can contain several sequences, and one sequence several
    /// continuations of its prefix.
    Branches {
        /// [`AttentionMask::branch_id`] of each token, row by row: `b * t` values.
        branch_ids: Arc<[u32]>,
        /// Number of tokens per row (`t`).
        tokens_per_row: usize,
    },
}

/// Bits of a branch id that contain the branch number; the others contain the sequence number.
pub(super) const BRANCH_BITS: u32 = 0xffff;

impl AttentionMask {
    /// Returns the id of a branch of a sequence.
    pub fn branch_id(sequence: u32, branch: u16) -> u32 {
        sequence << 16 | u32::from(branch)
    }

    /// Returns the spans of a batch of rows with `t` tokens each. Returns `None` if the mask is not
    /// causal, if the tokens of a branch are not consecutive, or if the batch has another shape.
    pub(crate) fn spans(&self, batch_size: usize, t: usize) -> Option<Vec<CausalSpan>> {
        let rows = (0..batch_size).map(|row| row * t..(row + 1) * t);
        match self {
            Self::Causal => {
                Some(rows.map(|row| CausalSpan { prefix: 0..0, tokens: row }).collect())
            }
            Self::Bidirectional(_) => None,
            Self::Branches { branch_ids, tokens_per_row } => {
                if branch_ids.len() != batch_size * t || *tokens_per_row != t {
                    return None;
                }
                let mut spans = Vec::new();
                for row in rows {
                    let start = row.start;
                    spans.extend(branch_spans(start, branch_ids.get(row)?)?);
                }
                Some(spans)
            }
        }
    }
}

/// Returns the spans of a row whose first token has the number `start`, or `None` if a branch is
/// interrupted.
fn branch_spans(start: usize, branch_ids: &[u32]) -> Option<Vec<CausalSpan>> {
    let mut end = start;
    let mut tokens_of = HashMap::new();
    let runs = branch_ids.chunk_by(|a, b| a == b);
    let spans = runs.map(|run| {
        let tokens = end..end + run.len();
        end = tokens.end;
        let id = *run.first()?;
        let prefix = tokens_of.get(&(id & !BRANCH_BITS)).cloned().unwrap_or_default();
        let is_new = tokens_of.insert(id, tokens.clone()).is_none();
        is_new.then_some(CausalSpan { prefix, tokens })
    });
    spans.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn branches(ids: &[(u32, u16)], tokens_per_row: usize) -> AttentionMask {
        let branch_ids = ids.iter().map(|(s, b)| AttentionMask::branch_id(*s, *b)).collect();
        AttentionMask::Branches { branch_ids, tokens_per_row }
    }

    #[test]
    fn consecutive_branches_are_spans() {
        let mask = branches(&[(0, 0), (0, 0), (0, 1), (0, 2), (1, 0), (2, 0), (2, 7), (2, 7)], 4);
        let span = |prefix, tokens| CausalSpan { prefix, tokens };
        let expected = [
            span(0..0, 0..2),
            span(0..2, 2..3),
            span(0..2, 3..4),
            span(0..0, 4..5),
            span(0..0, 5..6),
            span(5..6, 6..8),
        ];
        assert_eq!(mask.spans(2, 4).unwrap(), expected);
        assert_eq!(
            AttentionMask::Causal.spans(2, 3).unwrap(),
            [span(0..0, 0..3), span(0..0, 3..6)]
        );
    }

    #[test]
    fn other_masks_have_no_spans() {
        assert!(branches(&[(0, 0), (0, 1), (0, 0)], 3).spans(1, 3).is_none());
        assert!(branches(&[(0, 0)], 3).spans(1, 3).is_none());
        assert!(AttentionMask::Bidirectional([0..1, 1..2].into()).spans(1, 3).is_none());
    }
}
