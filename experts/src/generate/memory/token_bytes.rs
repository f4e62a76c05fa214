//! Size of the keys and values of a token.

use candle::DType;

use crate::decoder::{DecoderConfig, block_capacity};

/// Bytes of the keys and values of one token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::generate) struct TokenBytes {
    /// In the layers of the trunk.
    pub(super) trunk: u64,
    /// In the layers of a head.
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
        Self { trunk: (trunk_layers * layer) as u64, head: (head_layers * layer) as u64 }
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
