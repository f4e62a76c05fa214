//! KV cache: keys and values of processed tokens.
//!
//! A cache can be forked. Forks share the keys and values of the common prefix and never copy them,
//! so a prompt prefix, for example the image and question of a case, is processed once for all
//! prompts that start with it.

use std::ops::Range;
use std::sync::Arc;

use acem3_kernels::KeyValueBlock;
use candle::{Result, Tensor};

/// Tokens of a block that is filled during generation.
const BLOCK_TOKENS: usize = 64;

/// Keys and values of one layer, in token order: in blocks on the CPU, in tensors on other devices.
///
/// Forks add no tokens to a part that they share, even if it has room. So the parts of a sequence
/// depend on its own tokens only, and with them the order of summation.
#[derive(Clone, Debug, Default)]
pub struct LayerCache {
    blocks: Vec<Arc<KeyValueBlock>>,
    /// Keys and values `(h_kv, t, d)`, oldest first. Concatenation creates a new tensor, so an
    /// append never changes the tensors of a clone.
    tensors: Vec<(Tensor, Tensor)>,
    /// Number of leading blocks or tensors that forks share.
    shared_parts: usize,
}

impl LayerCache {
    /// Appends the keys and values of new tokens, which are these rows of `(n, h_kv, d)`.
    pub(super) fn append(
        &mut self,
        keys: &Tensor,
        values: &Tensor,
        rows: Range<usize>,
    ) -> Result<()> {
        if keys.device().is_cpu() {
            return self.append_to_blocks(keys, values, rows);
        }
        let heads_first =
            |x: &Tensor| x.narrow(0, rows.start, rows.len())?.transpose(0, 1)?.contiguous();
        let (keys, values) = (heads_first(keys)?, heads_first(values)?);
        if self.tensors.len() == self.shared_parts {
            self.tensors.push((keys, values));
        } else if let Some((old_keys, old_values)) = self.tensors.last_mut() {
            *old_keys = Tensor::cat(&[&*old_keys, &keys], 1)?;
            *old_values = Tensor::cat(&[&*old_values, &values], 1)?;
        }
        Ok(())
    }

    fn append_to_blocks(
        &mut self,
        keys: &Tensor,
        values: &Tensor,
        rows: Range<usize>,
    ) -> Result<()> {
        let (_, heads, d) = keys.dims3()?;
        let mut start = rows.start;
        while start < rows.end {
            let is_full = self.blocks.last().is_none_or(|block| block.room() == 0);
            if is_full || self.blocks.len() == self.shared_parts {
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

    /// Returns the blocks on the CPU.
    pub(super) fn blocks(&self) -> Vec<&KeyValueBlock> {
        self.blocks.iter().map(AsRef::as_ref).collect()
    }

    /// Returns the keys and values on other devices.
    pub(super) fn tensors(&self) -> &[(Tensor, Tensor)] {
        &self.tensors
    }
}

/// KV cache of one sequence for a stack of layers.
#[derive(Clone, Debug, Default)]
pub struct KvCache {
    pub(super) layers: Vec<LayerCache>,
    len: usize,
}

impl KvCache {
    /// Creates an empty cache for `layers` layers.
    pub fn new(layers: usize) -> Self {
        Self { layers: vec![LayerCache::default(); layers], len: 0 }
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

    /// Marks all tokens as shared with another cache: later tokens are added to parts of their own.
    pub(crate) fn share(&mut self) {
        for layer in &mut self.layers {
            layer.shared_parts = layer.blocks.len().max(layer.tensors.len());
        }
    }
}
