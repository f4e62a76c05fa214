//! Keys and values of consecutive tokens, in the order in which attention reads them.

use std::ops::Range;

use candle::{Result, Tensor, bail};

use super::lane_product::LANES;
use crate::elements::with_f32_slice;

/// Keys and values of consecutive tokens of one layer, for all key heads.
///
/// Sequences that begin with the same tokens share a block by reference.
#[derive(Clone, Debug)]
pub struct KeyValueBlock {
    heads: usize,
    head_size: usize,
    /// Number of tokens.
    len: usize,
    /// Number of tokens that fit, a multiple of the lanes.
    capacity: usize,
    /// For each head, tiles of [`LANES`] tokens: for each value of the head, that of each token.
    keys: Vec<f32>,
    /// For each head and token, the values, padded with zeros to a multiple of the lanes.
    values: Vec<f32>,
}

impl KeyValueBlock {
    /// Creates an empty block for a number of tokens.
    pub fn with_capacity(tokens: usize, heads: usize, head_size: usize) -> Self {
        let capacity = Self::round_capacity(tokens);
        let values = heads * capacity * head_size.next_multiple_of(LANES);
        Self {
            heads,
            head_size,
            len: 0,
            capacity,
            keys: vec![0.; heads * capacity * head_size],
            values: vec![0.; values],
        }
    }

    /// Returns the capacity of a block that is created for this many tokens.
    pub fn round_capacity(tokens: usize) -> usize {
        tokens.next_multiple_of(LANES)
    }

    /// Returns the number of tokens.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Returns true if the block has no tokens.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Returns the number of tokens that can be added.
    pub fn room(&self) -> usize {
        self.capacity - self.len
    }

    /// Returns the number of key heads.
    pub fn heads(&self) -> usize {
        self.heads
    }

    /// Returns the number of values of a head.
    pub fn head_size(&self) -> usize {
        self.head_size
    }

    /// Adds the keys and values of tokens, which are these rows of the tensors.
    ///
    /// # Shapes
    /// `keys`, `values`: (n, `h_kv`, d) in f32 on the CPU.
    ///
    /// # Errors
    ///
    /// The shapes do not match, or the block has no room.
    pub fn append(&mut self, keys: &Tensor, values: &Tensor, rows: Range<usize>) -> Result<()> {
        let (n, heads, d) = keys.dims3()?;
        if (heads, d) != (self.heads, self.head_size) || values.dims() != keys.dims() {
            bail!("attention: keys {:?} and values {:?}", keys.shape(), values.shape());
        }
        if rows.end > n || rows.len() > self.room() {
            bail!("attention: no room for tokens {rows:?} of {n} in a block of {}", self.capacity);
        }
        let range = rows.start * heads * d..rows.end * heads * d;
        with_f32_slice(keys, |keys| self.write_keys(&keys[range.clone()]))?;
        with_f32_slice(values, |values| self.write_values(&values[range]))?;
        self.len += rows.len();
        Ok(())
    }

    fn write_keys(&mut self, keys: &[f32]) {
        let d = self.head_size;
        for (i, token) in keys.chunks_exact(self.heads * d).enumerate() {
            let (tile, lane) = ((self.len + i) / LANES, (self.len + i) % LANES);
            let by_head = self.keys.chunks_exact_mut(self.capacity * d);
            for (stored, head) in by_head.zip(token.chunks_exact(d)) {
                let tile = &mut stored[tile * LANES * d..][..LANES * d];
                for (column, value) in tile.chunks_exact_mut(LANES).zip(head) {
                    column[lane] = *value;
                }
            }
        }
    }

    fn write_values(&mut self, values: &[f32]) {
        let (d, stride) = (self.head_size, self.value_stride());
        for (i, token) in values.chunks_exact(self.heads * d).enumerate() {
            let by_head = self.values.chunks_exact_mut(self.capacity * stride);
            for (stored, head) in by_head.zip(token.chunks_exact(d)) {
                stored[(self.len + i) * stride..][..d].copy_from_slice(head);
            }
        }
    }

    /// Returns the length of a row of values, with its padding.
    pub(super) fn value_stride(&self) -> usize {
        self.head_size.next_multiple_of(LANES)
    }

    /// Returns the tiles of keys of a head: [`LANES`] · d numbers each.
    pub(super) fn keys_of(&self, head: usize) -> &[f32] {
        let size = self.capacity * self.head_size;
        &self.keys[head * size..(head + 1) * size]
    }

    /// Returns the rows of values of a head.
    pub(super) fn values_of(&self, head: usize) -> &[f32] {
        let size = self.capacity * self.value_stride();
        &self.values[head * size..(head + 1) * size]
    }
}
