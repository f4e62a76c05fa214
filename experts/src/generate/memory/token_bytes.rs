//! Memory that a token takes.

use candle::DType;

use crate::decoder::{DecoderConfig, block_capacity};

/// Bytes that one token takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::generate) struct TokenBytes {
    /// Keys and values in the layers of the trunk, and the output of the trunk in f32. Written tokens keep no output,
    /// so this is more than they take.
    pub(super) trunk: u64,
    /// Keys and values in the layers of a head.
    pub(super) head: u64,
}

impl TokenBytes {
    /// Returns the sizes for caches with keys and values in `dtype`. `trunk_layers`: the number of layers
    /// of the trunk; the heads have the others.
    pub(in crate::generate) fn new(
        config: &DecoderConfig,
        trunk_layers: usize,
        dtype: DType,
    ) -> Self {
        let layer = 2 * config.kv_heads() * config.head_size() * dtype.size_in_bytes();
        let head_layers = config.num_hidden_layers.saturating_sub(trunk_layers);
        let output = config.hidden_size * DType::F32.size_in_bytes();
        Self { trunk: (trunk_layers * layer + output) as u64, head: (head_layers * layer) as u64 }
    }

    /// Returns the bytes of a prompt stage in the trunk and some heads.
    pub(in crate::generate) fn of_stage(self, tokens: usize, heads: usize) -> u64 {
        block_capacity(tokens) as u64 * (self.trunk + heads as u64 * self.head)
    }

    /// Returns the bytes of a token in all layers.
    pub(super) fn all(self) -> u64 {
        self.trunk + self.head
    }
}
