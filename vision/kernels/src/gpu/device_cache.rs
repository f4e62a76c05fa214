//! Keys and values of one sequence in the memory of a GPU.

use std::sync::Arc;

use candle::{DType, Device, Result, Tensor, bail};

/// Tokens of a block that is filled during generation.
const BLOCK_TOKENS: usize = 64;

/// Shape and place of the keys and values of a stack of decoder layers.
#[derive(Clone, Debug)]
pub struct CacheShape {
    /// Number of layers.
    pub layers: usize,
    /// Number of key heads of a layer.
    pub kv_heads: usize,
    /// Values of a head.
    pub head_size: usize,
    /// f32, f16 or bf16.
    pub dtype: DType,
    /// GPU that holds the cache.
    pub device: Device,
}

/// Keys and values of consecutive tokens in all layers.
#[derive(Debug)]
pub(super) struct DeviceBlock {
    /// (layers, 2, `h_kv`, capacity, d): keys, then values. The kernels write to it.
    pub(super) memory: Tensor,
    /// Number of tokens that fit.
    pub(super) capacity: usize,
    /// Number of tokens.
    pub(super) len: usize,
}

impl DeviceBlock {
    fn with_capacity(capacity: usize, shape: &CacheShape) -> Result<Self> {
        let size = (shape.layers, 2, shape.kv_heads, capacity, shape.head_size);
        Ok(Self { memory: Tensor::zeros(size, shape.dtype, &shape.device)?, capacity, len: 0 })
    }

    fn room(&self) -> usize {
        self.capacity - self.len
    }
}

/// The place of a token: the index of its block, and its index in this block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct TokenSlot {
    pub(super) block: usize,
    pub(super) slot: usize,
}

/// Keys and values of one sequence, in blocks.
///
/// Forks add no tokens to a block that they share, even if it has room. So the blocks of a sequence
/// depend on its own tokens only, and with them the order of summation.
#[derive(Clone, Debug, Default)]
pub struct DeviceCache {
    pub(super) blocks: Vec<Arc<DeviceBlock>>,
    /// Number of leading blocks that forks share.
    shared_blocks: usize,
}

impl DeviceCache {
    /// Marks all blocks as shared with another cache. Later tokens go into new blocks.
    pub fn share(&mut self) {
        self.shared_blocks = self.blocks.len();
    }

    /// Checks the shape of all blocks, and the number of tokens in the cache.
    pub(super) fn check(&self, tokens: usize, shape: &CacheShape) -> Result<()> {
        for DeviceBlock { memory, capacity, .. } in self.blocks.iter().map(AsRef::as_ref) {
            let expected = [shape.layers, 2, shape.kv_heads, *capacity, shape.head_size];
            let is_expected = memory.dims() == expected
                && memory.dtype() == shape.dtype
                && memory.device().same_device(&shape.device);
            if !is_expected {
                bail!("attention: a cache of {:?}, expected {expected:?}", memory.shape());
            }
        }
        let found: usize = self.blocks.iter().map(|block| block.len).sum();
        if found != tokens {
            bail!("attention: a cache of {found} tokens, expected {tokens}");
        }
        Ok(())
    }

    /// Makes room for new tokens and returns their places. A pass then stores their keys and values.
    pub(super) fn reserve(&mut self, tokens: usize, shape: &CacheShape) -> Result<Vec<TokenSlot>> {
        let mut slots = Vec::with_capacity(tokens);
        while slots.len() < tokens {
            let missing = tokens - slots.len();
            let is_full = self.blocks.last().is_none_or(|block| block.room() == 0);
            if is_full || self.blocks.len() == self.shared_blocks {
                let block = DeviceBlock::with_capacity(missing.max(BLOCK_TOKENS), shape)?;
                self.blocks.push(Arc::new(block));
            }
            let index = self.blocks.len() - 1;
            let Some(last) = self.blocks.last_mut() else { continue };
            if Arc::get_mut(last).is_none() {
                // Another cache or a running pass holds the block.
                let (capacity, len) = (last.capacity, last.len);
                *last = Arc::new(DeviceBlock { memory: last.memory.copy()?, capacity, len });
            }
            let Some(block) = Arc::get_mut(last) else { continue };
            let count = block.room().min(missing);
            let range = block.len..block.len + count;
            slots.extend(range.map(|slot| TokenSlot { block: index, slot }));
            block.len += count;
        }
        Ok(slots)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shape() -> CacheShape {
        let (dtype, device) = (DType::F32, Device::Cpu);
        CacheShape { layers: 1, kv_heads: 1, head_size: 2, dtype, device }
    }

    fn blocks(cache: &DeviceCache) -> Vec<(usize, usize)> {
        cache.blocks.iter().map(|block| (block.len, block.capacity)).collect()
    }

    #[test]
    fn tokens_fill_a_block_before_the_next() -> Result<()> {
        let mut cache = DeviceCache::default();
        cache.reserve(60, &shape())?;
        let slots = cache.reserve(70, &shape())?;
        assert_eq!(blocks(&cache), [(64, 64), (66, 66)]);
        assert_eq!(slots[3], TokenSlot { block: 0, slot: 63 });
        assert_eq!(slots[4], TokenSlot { block: 1, slot: 0 });
        Ok(())
    }

    #[test]
    fn forks_share_blocks_and_add_none_of_their_tokens_to_them() -> Result<()> {
        let mut cache = DeviceCache::default();
        cache.reserve(5, &shape())?;
        let mut fork = cache.clone();
        fork.share();
        assert_eq!(fork.reserve(1, &shape())?, [TokenSlot { block: 1, slot: 0 }]);
        assert!(Arc::ptr_eq(&fork.blocks[0], &cache.blocks[0]));
        assert_eq!(blocks(&cache), [(5, 64)]);
        Ok(())
    }

    #[test]
    fn tokens_of_a_clone_do_not_change_the_original() -> Result<()> {
        let mut cache = DeviceCache::default();
        cache.reserve(5, &shape())?;
        let mut clone = cache.clone();
        clone.reserve(1, &shape())?;
        assert_eq!([blocks(&cache), blocks(&clone)], [[(5, 64)], [(6, 64)]]);
        assert!(!Arc::ptr_eq(&clone.blocks[0], &cache.blocks[0]));
        Ok(())
    }
}
