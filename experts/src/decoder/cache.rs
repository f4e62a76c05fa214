//! KV cache: keys and values of processed tokens.
//!
//! A cache can be forked. Forks share the keys and values of the common prefix and never copy them,
//! so a prompt prefix, for example the image and question of a case, is processed once for all
//! prompts that start with it.

use std::ops::Range;
use std::sync::Arc;

use acem3_kernels::{DeviceCache, KeyValueBlock};
use candle::{Result, Tensor};

/// Tokens of a block that is filled during generation.
const BLOCK_TOKENS: usize = 64;

/// Returns the tokens of the blocks that hold this many tokens of one cache.
pub(crate) fn block_capacity(tokens: usize) -> usize {
    tokens.next_multiple_of(BLOCK_TOKENS).max(BLOCK_TOKENS)
}

/// Keys and values of one layer on the CPU, in blocks.
///
/// Forks add no tokens to a block that they share, even if it has room. So the blocks of a sequence
/// depend on its own tokens only, and with them the order of summation.
#[derive(Clone, Debug, Default)]
pub struct LayerCache {
    blocks: Vec<Arc<KeyValueBlock>>,
    /// Number of leading blocks that forks share.
    shared_blocks: usize,
}

impl LayerCache {
    /// Appends the keys and values of new tokens, which are these rows of `(n, h_kv, d)`.
    pub(super) fn append(
        &mut self,
        keys: &Tensor,
        values: &Tensor,
        rows: Range<usize>,
    ) -> Result<()> {
        let (_, heads, d) = keys.dims3()?;
        let mut start = rows.start;
        while start < rows.end {
            let is_full = self.blocks.last().is_none_or(|block| block.room() == 0);
            if is_full || self.blocks.len() == self.shared_blocks {
                let tokens = (rows.end - start).max(BLOCK_TOKENS);
                self.blocks.push(Arc::new(KeyValueBlock::with_capacity(tokens, heads, d)));
            }
            if let Some(block) = self.blocks.last_mut() {
                let count = block.room().min(rows.end - start);
                // Copies the block only if the cache was cloned without a fork.
                Arc::make_mut(block).append(keys, values, start..start + count)?;
                start += count;
            }
        }
        Ok(())
    }

    /// Returns the blocks.
    pub(super) fn blocks(&self) -> Vec<&KeyValueBlock> {
        self.blocks.iter().map(AsRef::as_ref).collect()
    }
}

/// KV cache of one sequence for a stack of layers.
#[derive(Clone, Debug, Default)]
pub struct KvCache {
    /// Keys and values on the CPU.
    pub(super) layers: Vec<LayerCache>,
    /// Keys and values of all layers on a GPU.
    pub(super) on_device: DeviceCache,
    len: usize,
}

impl KvCache {
    /// Creates an empty cache for `layers` layers.
    pub fn new(layers: usize) -> Self {
        Self {
            layers: vec![LayerCache::default(); layers],
            on_device: DeviceCache::default(),
            len: 0,
        }
    }

    /// Returns the number of cached tokens.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Returns true if the cache contains no tokens.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Adds to the token count, after all layers have appended their keys and values.
    pub(super) fn advance(&mut self, tokens: usize) {
        self.len += tokens;
    }

    /// Returns a cache that continues from this one. The existing keys and values are shared;
    /// later appends to one cache do not affect the other.
    #[must_use]
    pub fn fork(&self) -> Self {
        let mut fork = self.clone();
        fork.share();
        fork
    }

    /// Marks all blocks as shared with another cache. Later tokens go into new blocks.
    pub(crate) fn share(&mut self) {
        for layer in &mut self.layers {
            layer.shared_blocks = layer.blocks.len();
        }
        self.on_device.share();
    }
}
