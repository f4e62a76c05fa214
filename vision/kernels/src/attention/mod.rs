//! Attention of new tokens over cached keys and values on the CPU.
//!
//! The kernel processes 16 rows of queries at a time, so only their scores are in memory. The result
//! for a query depends on its own sequence alone, not on the batch or the number of threads.

mod head_attention;
mod key_value_block;
mod lane_product;
mod settings;

use std::ops::Range;

use candle::{Result, Tensor, bail};
use rayon::prelude::*;

use self::head_attention::HeadAttention;
pub use self::key_value_block::KeyValueBlock;
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
    let mut tasks = Vec::new();
    let mut first = 0;
    for sequence in sequences {
        let end = first + sequence.new_tokens;
        let queries = &queries[first * heads * d..end * heads * d];
        let key_heads = sequence.check(heads, d)?;
        tasks.extend((0..key_heads).map(|key_head| HeadAttention {
            queries,
            query_heads: heads,
            group: heads / key_heads,
            key_head,
            head_size: d,
            blocks: &sequence.blocks,
            bidirectional: sequence.bidirectional,
            settings,
        }));
        first = end;
    }
    let products: usize = tasks.iter().map(HeadAttention::products).sum();
    let outputs: Vec<Vec<f32>> = if products < MIN_PARALLEL_PRODUCTS {
        tasks.iter().map(HeadAttention::compute).collect()
    } else {
        tasks.par_iter().map(HeadAttention::compute).collect()
    };
    let mut attended = Vec::with_capacity(queries.len());
    let mut outputs = outputs.iter();
    for sequence in sequences {
        let key_heads = sequence.key_heads();
        let by_head: Vec<&Vec<f32>> = outputs.by_ref().take(key_heads).collect();
        let row = heads / key_heads.max(1) * d;
        for token in 0..sequence.new_tokens {
            for output in &by_head {
                attended.extend_from_slice(&output[token * row..(token + 1) * row]);
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

    /// Checks the blocks and returns the number of key heads.
    fn check(&self, heads: usize, head_size: usize) -> Result<usize> {
        let key_heads = self.key_heads();
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
        Ok(key_heads)
    }
}

#[cfg(test)]
mod tests;
