//! Limit on the memory of KV caches.

use candle::DType;

use crate::decoder::DecoderConfig;

/// The part of the limit for prompt stages that are kept for later texts is one of this many.
const PREFIX_SHARE: u64 = 4;
/// Tokens of the prompt stages that are kept without a limit.
const UNLIMITED_PREFIX_TOKENS: usize = 4096;

/// The limit, and the size of one token in the KV caches.
#[derive(Clone, Copy, Debug)]
pub(super) struct CacheMemory {
    /// Limit in bytes.
    pub(super) limit: u64,
    /// Bytes of the keys and values of one token in all layers.
    token_bytes: u64,
}

impl CacheMemory {
    /// Creates an unlimited budget for caches with keys and values in `dtype`.
    pub(super) fn unlimited(config: &DecoderConfig, dtype: DType) -> Self {
        let values = config.num_hidden_layers * config.kv_heads() * config.head_size();
        Self { limit: u64::MAX, token_bytes: (2 * values * dtype.size_in_bytes()) as u64 }
    }

    /// Returns true if there is room for the keys and values of this many tokens of texts.
    pub(super) fn has_room(&self, tokens: usize) -> bool {
        let limit = self.limit - self.limit / PREFIX_SHARE;
        (tokens as u64).saturating_mul(self.token_bytes) <= limit
    }

    /// Returns the number of tokens of the prompt stages that are kept for later texts.
    pub(super) fn prefix_tokens(&self) -> usize {
        if self.limit == u64::MAX {
            return UNLIMITED_PREFIX_TOKENS;
        }
        let tokens = self.limit / PREFIX_SHARE / self.token_bytes.max(1);
        usize::try_from(tokens).unwrap_or(usize::MAX)
    }
}
