//! Attention of new tokens over cached keys and values on the CPU.
//!
//! The kernel processes 16 rows of queries at a time, so only their scores are in memory. Sequences that
//! share blocks read them together. The result for a query depends on its own sequence alone, not on the
//! batch or the number of threads.

mod attended_segment;
mod head_attention;
mod key_value_block;
mod panel_lanes;
mod panel_product;
mod panels;
mod row_block;
mod row_buffers;
mod segment;
mod sequence_groups;
mod settings;

use std::ops::Range;

use candle::{Result, Tensor, bail};
use rayon::prelude::*;

use self::head_attention::{HeadAttention, HeadSizes, SequenceQueries};
pub use self::key_value_block::KeyValueBlock;
use self::sequence_groups::group_sequences;
pub use self::settings::AttentionSettings;
use crate::elements::with_f32_slice;

/// Multiplications from which the heads of a batch are shared among threads.
const MIN_PARALLEL_PRODUCTS: usize = 1 << 18;

/// New tokens of one sequence, and the keys and values that they attend to.
pub struct AttendedSequence<'a> {
    /// Number of new tokens: the last ones of the blocks.
    pub new_tokens: usize,
    /// Keys and values of all tokens, those of the new tokens last.
    pub blocks: Vec<&'a KeyValueBlock>,
    /// Ranges of tokens, counted from the start of the sequence, that attend to all tokens of their
    /// range, also to later ones. In order.
    pub bidirectional: &'a [Range<usize>],
}

/// Computes the attention of the new tokens of sequences, each over its own keys and values. It is
/// causal except in bidirectional ranges.
/// Consecutive query heads share a key head.
///
/// # Shapes
/// `q`: (n, h, d) in f32 on the CPU, the sequences one after the other → (n, h · d).
///
/// # Errors
///
/// The shapes do not match.
pub fn attend(
    q: &Tensor,
    sequences: &[AttendedSequence<'_>],
    settings: AttentionSettings,
) -> Result<Tensor> {
    let (n, heads, d) = q.dims3()?;
    let new_tokens: usize = sequences.iter().map(|sequence| sequence.new_tokens).sum();
    if new_tokens != n {
        bail!("attention: {n} queries for {new_tokens} new tokens");
    }
    let attended =
        with_f32_slice(q, |queries| attend_slice(queries, [heads, d], sequences, settings))??;
    Tensor::from_vec(attended, (n, heads * d), q.device())
}

/// Computes [`attend`] for queries of `heads` heads with `d` values each.
fn attend_slice(
    queries: &[f32],
    [heads, d]: [usize; 2],
    sequences: &[AttendedSequence<'_>],
    settings: AttentionSettings,
) -> Result<Vec<f32>> {
    let key_heads = sequences.first().map_or(1, AttendedSequence::key_heads);
    let mut first = 0;
    let mut of_sequences = Vec::with_capacity(sequences.len());
    for sequence in sequences {
        sequence.check([heads, key_heads, d])?;
        let end = first + sequence.new_tokens;
        of_sequences.push(SequenceQueries {
            queries: &queries[first * heads * d..end * heads * d],
            new_tokens: sequence.new_tokens,
            blocks: &sequence.blocks,
            bidirectional: sequence.bidirectional,
        });
        first = end;
    }
    let group = heads / key_heads;
    let sizes = HeadSizes { query_heads: heads, group, head_size: d };
    let groups = group_sequences(&of_sequences, group);
    let tasks = groups.iter().flat_map(|group| {
        let sequences = &of_sequences[group.sequences.clone()];
        let shared_blocks = group.shared_blocks;
        (0..key_heads).map(move |key_head| HeadAttention {
            sequences,
            shared_blocks,
            key_head,
            sizes,
            settings,
        })
    });
    let tasks: Vec<HeadAttention> = tasks.collect();
    let products: usize = tasks.iter().map(HeadAttention::products).sum();
    let outputs: Vec<Vec<f32>> = if products < MIN_PARALLEL_PRODUCTS {
        tasks.iter().map(HeadAttention::compute).collect()
    } else {
        tasks.par_iter().map(HeadAttention::compute).collect()
    };
    let row = group * d;
    let mut attended = Vec::with_capacity(queries.len());
    for by_head in outputs.chunks_exact(key_heads) {
        for first in (0..by_head.first().map_or(0, Vec::len)).step_by(row.max(1)) {
            for output in by_head {
                attended.extend_from_slice(&output[first..first + row]);
            }
        }
    }
    Ok(attended)
}

impl AttendedSequence<'_> {
    /// Returns the number of key heads.
    fn key_heads(&self) -> usize {
        self.blocks.first().map_or(0, |block| block.heads())
    }

    /// Checks the blocks for these numbers of query heads, key heads, and values of a head.
    fn check(&self, [heads, key_heads, head_size]: [usize; 3]) -> Result<()> {
        if key_heads == 0 || !heads.is_multiple_of(key_heads) {
            bail!("attention: {heads} query heads for {key_heads} key heads");
        }
        let mut tokens = 0;
        for block in &self.blocks {
            if (block.heads(), block.head_size()) != (key_heads, head_size) {
                bail!(
                    "attention: a block of {} heads of {} values, expected {key_heads} of {head_size}",
                    block.heads(),
                    block.head_size()
                );
            }
            tokens += block.len();
        }
        if tokens < self.new_tokens {
            bail!("attention: {} new tokens, but only {tokens} keys", self.new_tokens);
        }
        if let Some(range) = self.bidirectional.iter().find(|range| range.end > tokens) {
            bail!("attention: bidirectional tokens {range:?}, but only {tokens} keys");
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
