//! Positions and attention mask of a batch without KV caches.

use std::sync::Arc;

use crate::ops::AttentionMask;

/// Positions and attention mask of a batch of complete sequences.
#[derive(Clone, Debug)]
pub struct BatchLayout {
    /// Number of rows (`b`), each with `t` tokens of one or more sequences.
    pub batch_size: usize,
    /// Position of each of the `b * t` tokens in its sequence.
    pub positions: Arc<[u32]>,
    /// Tokens that each token attends to.
    pub mask: AttentionMask,
}

impl BatchLayout {
    /// Creates the layout of one causal sequence of `t` tokens.
    pub fn causal(t: usize) -> Self {
        Self { batch_size: 1, positions: (0..t as u32).collect(), mask: AttentionMask::Causal }
    }
}
