//! KV cache: keys and values of processed tokens.
//!
//! A cache can be forked. Forks share the tensors of the common prefix and never copy them, so a
//! prompt prefix, for example the image and question of a case, is processed once for all prompts
//! that start with it.

use std::sync::Arc;

use candle::{Result, Tensor};

/// Keys and values of one layer, in token order.
#[derive(Clone, Debug, Default)]
pub struct LayerCache {
    /// Keys and values `(h_kv, t, d)`, oldest first. Concatenation creates a new tensor, so an
    /// append never changes the tensors of a clone.
    parts: Vec<(Tensor, Tensor)>,
    /// Number of leading parts that forks share. New tokens are not appended to them.
    shared_parts: usize,
}

impl LayerCache {
    /// Appends keys and values `(h_kv, t, d)` of new tokens.
    pub(super) fn append(&mut self, keys: Tensor, values: Tensor) -> Result<()> {
        if self.parts.len() == self.shared_parts {
            self.parts.push((keys, values));
        } else if let Some((old_keys, old_values)) = self.parts.last_mut() {
            *old_keys = Tensor::cat(&[&*old_keys, &keys], 1)?;
            *old_values = Tensor::cat(&[&*old_values, &values], 1)?;
        }
        Ok(())
    }

    pub(super) fn parts(&self) -> &[(Tensor, Tensor)] {
        &self.parts
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
    pub fn fork(self: &Arc<Self>) -> Self {
        let mut fork = Self::clone(self);
        for layer in &mut fork.layers {
            layer.shared_parts = layer.parts.len();
        }
        fork
    }
}
