//! Keys and values of the tokens seen so far.
//!
//! A cache is a chain: it may grow out of another one, which it shares and never copies. The
//! question of a case is so computed once for all orders and branches.

use std::sync::Arc;

use candle::{Result, Tensor};

/// Keys and values of one layer, in the order of the tokens.
#[derive(Clone, Debug, Default)]
pub struct LayerCache {
    /// `(h_kv, t, d)` keys and values, oldest first. Concatenating makes a new tensor, so that a
    /// clone never aliases what another sequence appends to.
    parts: Vec<(Tensor, Tensor)>,
    /// How many leading parts are shared with other sequences and must not be grown.
    shared: usize,
}

impl LayerCache {
    /// Adds keys and values `(h_kv, t, d)` of new tokens.
    pub(super) fn append(&mut self, keys: Tensor, values: Tensor) -> Result<()> {
        if self.parts.len() == self.shared {
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

/// The cache of a stack of layers for one sequence.
#[derive(Clone, Debug, Default)]
pub struct KvCache {
    pub(super) layers: Vec<LayerCache>,
    len: usize,
}

impl KvCache {
    /// An empty cache for a stack of `layers` layers.
    pub fn new(layers: usize) -> Self {
        Self {
            layers: vec![LayerCache::default(); layers],
            len: 0,
        }
    }

    /// Tokens seen so far.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether no token was seen yet.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    pub(super) fn grew(&mut self, tokens: usize) {
        self.len += tokens;
    }

    /// A sequence that goes on from here. What was seen is shared, not copied; what either of
    /// the two appends afterwards is not seen by the other.
    pub fn fork(self: &Arc<Self>) -> Self {
        let mut fork = Self::clone(self);
        for layer in &mut fork.layers {
            layer.shared = layer.parts.len();
        }
        fork
    }
}
