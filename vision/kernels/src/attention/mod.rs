//! Attention of new tokens over cached keys and values on the CPU.
//!
//! The kernel processes 16 queries at a time, so only their scores are in memory. Sequences that share
//! blocks read them together. For finite keys and values, the result for a query depends on its own
//! sequence alone, not on the batch or the number of threads.

mod attended_segment;
mod head_attention;
mod key_value_block;
mod panel_lanes;
mod panels;
mod query;
mod query_block;
mod query_buffers;
mod query_product;
mod segment;
mod sequence_groups;
mod sequence_queries;
mod settings;
mod unmasked;

use std::ops::Range;

use candle::{Result, Tensor, bail};
use rayon::prelude::*;

use self::head_attention::{HeadAttention, HeadSizes};
pub use self::key_value_block::KeyValueBlock;
use self::query_block::BLOCK_QUERIES;
use self::sequence_groups::group_sequences;
use self::sequence_queries::SequenceQueries;
pub use self::settings::AttentionSettings;
pub use self::unmasked::attend_unmasked;
use crate::elements::with_f32_slice;

/// Multiplications from which the heads of a batch are shared among threads.
const MIN_PARALLEL_PRODUCTS: usize = 1 << 18;
/// Tasks for each thread, so that all threads end at about the same time.
const TASKS_PER_THREAD: usize = 4;
/// Smallest limit of the queries of a group. So many queries are multiplied at the same time.
const MIN_GROUP_QUERIES: usize = 4;

/// New tokens of one sequence, and the keys and values that they attend to.
pub struct AttendedSequence<'a> {
    /// Number of new tokens: the last ones of the blocks.
    pub new_tokens: usize,
    /// Keys and values of all tokens, those of the new tokens last.
    pub blocks: Vec<&'a KeyValueBlock>,
    /// Ranges of tokens, counted from the start of the sequence, that also attend to the later tokens of their
    /// range. In order.
    pub bidirectional: &'a [Range<usize>],
}

/// Computes the attention of the new tokens of sequences, each over its own keys and values. It is
/// causal except in bidirectional ranges. Consecutive query heads share a key head.
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
    let Some(key_heads) = sequences.first().map(AttendedSequence::key_heads) else {
        return Ok(Vec::new());
    };
    let mut first = 0;
    let mut batch = Vec::with_capacity(sequences.len());
    for sequence in sequences {
        sequence.check([heads, key_heads, d])?;
        let end = first + sequence.new_tokens;
        batch.push(SequenceQueries {
            queries: &queries[first * heads * d..end * heads * d],
            new_tokens: sequence.new_tokens,
            tokens: sequence.tokens(),
            blocks: &sequence.blocks,
            bidirectional: sequence.bidirectional,
        });
        first = end;
    }
    let sizes = HeadSizes { query_heads: heads, heads_per_key: heads / key_heads, head_size: d };
    let products =
        batch.iter().map(|sequence| sequence.new_tokens * sequence.tokens).sum::<usize>();
    let threads = rayon::current_num_threads();
    let is_parallel = threads > 1 && products * heads * d >= MIN_PARALLEL_PRODUCTS;
    let queries_of_task = if is_parallel {
        let even = (first * heads).div_ceil(threads * TASKS_PER_THREAD);
        even.next_multiple_of(MIN_GROUP_QUERIES).min(BLOCK_QUERIES)
    } else {
        BLOCK_QUERIES
    };
    let groups = group_sequences(&batch, queries_of_task / sizes.heads_per_key);
    let tasks = groups.iter().flat_map(|group| {
        let sequences = &batch[group.sequences.clone()];
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
    let outputs: Vec<Vec<f32>> = if is_parallel {
        tasks.par_iter().map(HeadAttention::compute).collect()
    } else {
        tasks.iter().map(HeadAttention::compute).collect()
    };
    let mut attended = Vec::with_capacity(queries.len());
    for heads in outputs.chunks_exact(key_heads) {
        join_heads(heads, sizes.heads_per_key * d, &mut attended);
    }
    Ok(attended)
}

/// Joins the outputs of the key heads, so that the values of a token follow each other.
fn join_heads(heads: &[Vec<f32>], values_per_token: usize, joined: &mut Vec<f32>) {
    for first in (0..heads.first().map_or(0, Vec::len)).step_by(values_per_token) {
        for head in heads {
            joined.extend_from_slice(&head[first..first + values_per_token]);
        }
    }
}

impl AttendedSequence<'_> {
    /// Returns the number of key heads.
    fn key_heads(&self) -> usize {
        self.blocks.first().map_or(0, |block| block.heads())
    }

    /// Returns the number of tokens.
    fn tokens(&self) -> usize {
        self.blocks.iter().map(|block| block.len()).sum()
    }

    /// Checks the sequence for `heads` query heads and `key_heads` key heads with `d` values each.
    fn check(&self, [heads, key_heads, d]: [usize; 3]) -> Result<()> {
        if self.blocks.is_empty() || d == 0 {
            bail!("attention: a sequence without keys");
        }
        if key_heads == 0 || heads == 0 || !heads.is_multiple_of(key_heads) {
            bail!("attention: {heads} query heads for {key_heads} key heads");
        }
        for block in &self.blocks {
            if (block.heads(), block.head_size()) != (key_heads, d) {
                bail!(
                    "attention: a block of {} heads of {} values, expected {key_heads} of {d}",
                    block.heads(),
                    block.head_size()
                );
            }
        }
        let tokens = self.tokens();
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
