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

/// Returns the most tokens that blocks have room for if a cache adds this many tokens to them. A block
/// has at least [`BLOCK_TOKENS`], and only the last one has room left.
pub(crate) fn block_capacity(tokens: usize) -> usize {
    KeyValueBlock::round_capacity(tokens + BLOCK_TOKENS - 1)
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
    /// A mark for each cache that this one was forked from, and its own, which its forks share.
    marks: Vec<Arc<()>>,
}

impl KvCache {
    /// Creates an empty cache for `layers` layers.
    pub fn new(layers: usize) -> Self {
        Self {
            layers: vec![LayerCache::default(); layers],
            on_device: DeviceCache::default(),
            len: 0,
            marks: vec![Arc::new(())],
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
        fork.marks.push(Arc::new(()));
        fork
    }

    /// Returns true if a cache that was forked from this one exists.
    pub(crate) fn has_forks(&self) -> bool {
        self.marks.last().is_some_and(|mark| Arc::strong_count(mark) > 1)
    }

    /// Marks all blocks as shared with another cache. Later tokens go into new blocks.
    pub(crate) fn share(&mut self) {
        for layer in &mut self.layers {
            layer.shared_blocks = layer.blocks.len();
        }
        self.on_device.share();
    }
}

#[cfg(test)]
mod tests {
    use candle::{DType, Device};

    use super::*;

    #[test]
    fn forks_are_known_while_they_exist() {
        let cache = KvCache::new(1);
        assert!(!cache.has_forks());
        let fork = cache.fork();
        let later_fork = fork.fork();
        assert!(cache.has_forks() && fork.has_forks() && !later_fork.has_forks());
        drop(fork);
        assert!(cache.has_forks());
        drop(later_fork);
        assert!(!cache.has_forks());
    }

    #[test]
    fn blocks_have_at_most_the_stated_room() {
        let rows = Tensor::zeros((200, 1, 16), DType::F32, &Device::Cpu).unwrap();
        for parts in [vec![1], vec![64], vec![65], vec![100, 28], vec![63, 1, 1], vec![100, 100]] {
            let mut cache = LayerCache::default();
            let mut start = 0;
            for part in &parts {
                cache.append(&rows, &rows, start..start + part).unwrap();
                start += part;
            }
            let room: usize = cache.blocks().iter().map(|block| block.len() + block.room()).sum();
            assert!(room <= block_capacity(start), "{parts:?}: {room}");
        }
    }
}
