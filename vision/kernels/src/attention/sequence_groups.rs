//! Groups of sequences that begin with the same blocks.
//!
//! Texts about one image begin with the same keys and values. A group reads them once.

use std::ops::Range;

use super::sequence_queries::SequenceQueries;

/// Consecutive sequences that are computed together.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct SequenceGroup {
    pub(super) sequences: Range<usize>,
    /// Number of first blocks that all of them have in common.
    pub(super) shared_blocks: usize,
}

/// The best way to group the first sequences.
#[derive(Clone, Default)]
struct BestGroups {
    /// Tokens that the groups need not read again.
    saved_tokens: usize,
    /// The last group.
    last: Option<SequenceGroup>,
}

/// Splits sequences into groups that read as few tokens as possible. A group with several sequences has
/// at most `max_new_tokens` new tokens.
pub(super) fn group_sequences(
    sequences: &[SequenceQueries],
    max_new_tokens: usize,
) -> Vec<SequenceGroup> {
    let mut best = vec![BestGroups::default()];
    for (i, sequence) in sequences.iter().enumerate() {
        let mut choice: Option<BestGroups> = None;
        let mut shared_blocks = sequence.blocks.len();
        let mut new_tokens = 0;
        for start in (0..=i).rev() {
            new_tokens += sequences[start].new_tokens;
            if start < i {
                shared_blocks =
                    shared_blocks.min(count_shared_blocks(&sequences[start..=start + 1]));
                if shared_blocks == 0 || new_tokens > max_new_tokens {
                    break;
                }
            }
            let shared: usize =
                sequence.blocks.iter().take(shared_blocks).map(|block| block.len()).sum();
            let saved_tokens = best[start].saved_tokens + (i - start) * shared;
            if choice.as_ref().is_none_or(|choice| saved_tokens > choice.saved_tokens) {
                let last = SequenceGroup { sequences: start..i + 1, shared_blocks };
                choice = Some(BestGroups { saved_tokens, last: Some(last) });
            }
        }
        best.push(choice.unwrap_or_default());
    }
    let mut groups = Vec::new();
    let mut end = sequences.len();
    while let Some(group) = best.get(end).and_then(|best| best.last.clone()) {
        end = group.sequences.start;
        groups.push(group);
    }
    groups.reverse();
    groups
}

/// Returns the number of first blocks that two sequences have in common.
fn count_shared_blocks(pair: &[SequenceQueries]) -> usize {
    let [a, b] = pair else {
        return 0;
    };
    let pairs = a.blocks.iter().zip(b.blocks);
    pairs.take_while(|(a, b)| std::ptr::eq(**a, **b)).count()
}
