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

/// Splits sequences into groups that read as few tokens as possible. A group with several sequences has
/// at most `max_new_tokens` new tokens.
pub(super) fn group_sequences(
    sequences: &[SequenceQueries],
    max_new_tokens: usize,
) -> Vec<SequenceGroup> {
    // For each number of first sequences, the tokens that the best groups of them need not read again,
    // and the last of these groups.
    let mut saved_tokens = vec![0];
    let mut last_groups = Vec::with_capacity(sequences.len());
    for (i, sequence) in sequences.iter().enumerate() {
        let mut shared_blocks = sequence.blocks.len();
        let mut new_tokens = sequence.new_tokens;
        let mut group = SequenceGroup { sequences: i..i + 1, shared_blocks };
        let mut saved = saved_tokens[i];
        for start in (0..i).rev() {
            new_tokens += sequences[start].new_tokens;
            let pair = [&sequences[start], &sequences[start + 1]];
            shared_blocks = shared_blocks.min(count_shared_blocks(pair));
            if shared_blocks == 0 || new_tokens > max_new_tokens {
                break;
            }
            let shared: usize =
                sequence.blocks[..shared_blocks].iter().map(|block| block.len()).sum();
            let saved_here = saved_tokens[start] + (i - start) * shared;
            if saved_here > saved {
                saved = saved_here;
                group = SequenceGroup { sequences: start..i + 1, shared_blocks };
            }
        }
        saved_tokens.push(saved);
        last_groups.push(group);
    }
    let mut groups = Vec::new();
    let mut end = sequences.len();
    while end > 0 {
        let group = last_groups[end - 1].clone();
        end = group.sequences.start;
        groups.push(group);
    }
    groups.reverse();
    groups
}

/// Returns the number of first blocks that two sequences have in common.
fn count_shared_blocks([a, b]: [&SequenceQueries; 2]) -> usize {
    let pairs = a.blocks.iter().zip(b.blocks);
    pairs.take_while(|(a, b)| std::ptr::eq(**a, **b)).count()
}
