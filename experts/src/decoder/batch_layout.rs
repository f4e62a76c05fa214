//! How a batch of whole sequences is laid out for a forward pass without caches.

use std::sync::Arc;

use crate::ops::Visibility;

/// What whole sequences see of themselves, for a forward pass without caches.
#[derive(Clone, Debug)]
pub struct Sight {
    /// Sequences in the batch (`b`).
    pub batch: usize,
    /// The place of each of the `b * t` tokens in its sequence.
    pub positions: Arc<[u32]>,
    /// Which tokens see which.
    pub visibility: Visibility,
}

impl Sight {
    /// One plain causal sequence of `t` tokens.
    pub fn causal(t: usize) -> Self {
        Self {
            batch: 1,
            positions: (0..t as u32).collect(),
            visibility: Visibility::Causal,
        }
    }
}
