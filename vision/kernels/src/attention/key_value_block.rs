//! Keys and values of consecutive tokens, in the order in which attention reads them.

use std::ops::Range;

use candle::{Result, Tensor, bail};

use super::panels::{LANES, Panels};
use crate::aligned_rows::AlignedRows;
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
    /// For each head, panels of [`LANES`] tokens, with a row for each value of the head.
    keys: AlignedRows<LANES>,
    /// For each head, panels of [`LANES`] of its values, with a row for each token. The last panel of
    /// a head is padded with zeros.
    values: AlignedRows<LANES>,
}

impl KeyValueBlock {
    /// Creates an empty block for a number of tokens.
    pub fn with_capacity(tokens: usize, heads: usize, head_size: usize) -> Self {
        let capacity = Self::round_capacity(tokens);
        let keys = heads * (capacity / LANES) * head_size;
        let values = heads * head_size.div_ceil(LANES) * capacity;
        let (keys, values) = (AlignedRows::zeros(keys), AlignedRows::zeros(values));
        Self { heads, head_size, len: 0, capacity, keys, values }
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
        if heads * d == 0
            || (heads, d) != (self.heads, self.head_size)
            || values.dims() != keys.dims()
        {
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
        let head_rows = self.capacity / LANES * d;
        for (i, token) in keys.chunks_exact(self.heads * d).enumerate() {
            let (panel, lane) = ((self.len + i) / LANES, (self.len + i) % LANES);
            let by_head = self.keys.as_mut_slice().chunks_exact_mut(head_rows);
            for (stored, head) in by_head.zip(token.chunks_exact(d)) {
                for (row, value) in stored[panel * d..].iter_mut().zip(head) {
                    row[lane] = *value;
                }
            }
        }
    }

    fn write_values(&mut self, values: &[f32]) {
        let (d, head_rows) = (self.head_size, self.value_panels() * self.capacity);
        for (i, token) in values.chunks_exact(self.heads * d).enumerate() {
            let by_head = self.values.as_mut_slice().chunks_exact_mut(head_rows);
            for (stored, head) in by_head.zip(token.chunks_exact(d)) {
                let panels = stored.chunks_exact_mut(self.capacity);
                for (panel, values) in panels.zip(head.chunks(LANES)) {
                    panel[self.len + i][..values.len()].copy_from_slice(values);
                }
            }
        }
    }

    /// Returns the number of panels with the values of a head.
    fn value_panels(&self) -> usize {
        self.head_size.div_ceil(LANES)
    }

    /// Returns the keys of a head. A panel has [`LANES`] tokens, and a row for each value of the head.
    pub(super) fn keys_of(&self, head: usize) -> Panels<'_> {
        let rows = self.capacity / LANES * self.head_size;
        Panels {
            rows: &self.keys.as_slice()[head * rows..(head + 1) * rows],
            depth: self.head_size,
        }
    }

    /// Returns the values of a head. A panel has [`LANES`] of them, and a row for each token.
    pub(super) fn values_of(&self, head: usize) -> Panels<'_> {
        let rows = self.value_panels() * self.capacity;
        Panels {
            rows: &self.values.as_slice()[head * rows..(head + 1) * rows],
            depth: self.capacity,
        }
    }
}
