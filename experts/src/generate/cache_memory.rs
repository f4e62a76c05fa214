//! Limit on the memory of the KV caches of the texts in progress.

use crate::decoder::DecoderConfig;

/// The limit, and the size of one token in the KV caches.
#[derive(Clone, Copy, Debug)]
pub(super) struct CacheMemory {
    /// Limit in bytes.
    pub(super) limit: u64,
    /// Bytes of the keys and values of one token in all layers.
    token_bytes: u64,
}

impl CacheMemory {
    /// Creates a limit that is never reached.
    pub(super) fn unlimited(config: &DecoderConfig) -> Self {
        let values = config.num_hidden_layers * config.kv_heads() * config.head_size();
        Self { limit: u64::MAX, token_bytes: (2 * values * size_of::<f32>()) as u64 }
    }

    /// Returns true if the keys and values of this many tokens are below the limit.
    pub(super) fn has_room(&self, tokens: usize) -> bool {
        (tokens as u64).saturating_mul(self.token_bytes) <= self.limit
    }
}
