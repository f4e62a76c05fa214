//! Rows converted to f32 and copied to the order in which the kernel reads them.

#![expect(
    clippy::inline_always,
    reason = "vector instructions need to be part of the function that enables them"
)]

use std::ops::Range;

use pulp::{Simd, WithSimd, cast};

use super::stored_values::{CHUNK_COLUMNS, LANES, StoredValues};
use super::tile::Tile;
use super::weight_rows::{WeightRows, prefetch};
use crate::aligned_rows::AlignedRows;

/// Rows of the input in groups: chunk by chunk, group by group.
pub(crate) struct PackedInput {
    vectors: AlignedRows<LANES>,
    groups: usize,
    /// Rows of a group.
    group_rows: usize,
}

impl PackedInput {
    /// Copies an input whose rows have `columns` values, in groups of `group_rows` rows.
    pub(crate) fn new(x: &[f32], columns: usize, group_rows: usize) -> Self {
        let n = x.len() / columns;
        let groups = n.div_ceil(group_rows);
        let vectors = AlignedRows::zeros(groups * group_rows * columns.div_ceil(LANES));
        let mut packed = Self { vectors, groups, group_rows };
        for chunk in column_chunks(columns) {
            for row in 0..n {
                let (group, place) = (row / group_rows, row % group_rows);
                let range = packed.group_range(group, &chunk);
                let target = packed.vectors.as_mut_slice()[range].chunks_exact_mut(group_rows);
                let values = &x[row * columns..][chunk.clone()];
                for (target, values) in target.zip(values.chunks(LANES)) {
                    target[place][..values.len()].copy_from_slice(values);
                }
            }
        }
        packed
    }

    /// Returns a chunk of a group.
    #[inline(always)]
    pub(crate) fn group(&self, group: usize, chunk: &Range<usize>) -> &[[f32; LANES]] {
        &self.vectors.as_slice()[self.group_range(group, chunk)]
    }

    /// Returns the number of groups.
    #[inline(always)]
    pub(crate) fn groups(&self) -> usize {
        self.groups
    }

    /// Returns the place of a chunk of a group.
    #[inline(always)]
    fn group_range(&self, group: usize, chunk: &Range<usize>) -> Range<usize> {
        let vectors = chunk.len().div_ceil(LANES) * self.group_rows;
        let start = self.groups * self.group_rows * (chunk.start / LANES) + group * vectors;
        start..start + vectors
    }
}

/// Returns the chunks of a row.
#[inline(always)]
pub(crate) fn column_chunks(columns: usize) -> impl Iterator<Item = Range<usize>> {
    let chunk = move |start: usize| start..(start + CHUNK_COLUMNS).min(columns);
    (0..columns).step_by(CHUNK_COLUMNS).map(chunk)
}

/// Converts a chunk of some rows of a weight, in the groups of a tile.
pub(crate) struct WeightPacking<'a, T, V: StoredValues> {
    pub(crate) tile: T,
    pub(crate) weight: WeightRows<'a, V>,
    pub(crate) rows: Range<usize>,
    pub(crate) chunk: &'a Range<usize>,
    pub(crate) target: &'a mut [[f32; LANES]],
}

impl<T: Tile, V: StoredValues> WithSimd for WeightPacking<'_, T, V> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, _: S) {
        let Self { tile, weight, rows, chunk, target } = self;
        let simd = tile.narrow();
        let group_vectors = group_vectors::<T>(chunk);
        for (i, row) in rows.enumerate() {
            let target = &mut target[i / T::WEIGHTS * group_vectors..][..group_vectors];
            let place = tile.place(i % T::WEIGHTS);
            let (blocks, rest) = V::split_blocks(weight.part_of_row(row, chunk));
            for (block, values) in blocks.iter().enumerate() {
                prefetch(values, weight.row_bytes() * T::WEIGHTS);
                for part in 0..V::PARTS {
                    let prepared = V::prepare_part(simd, values, part);
                    for vector in 0..V::PART_VECTORS {
                        let k = (block * V::PARTS + part) * V::PART_VECTORS + vector;
                        target[k * T::WEIGHTS + place] =
                            cast(V::widen(simd, values, &prepared, vector));
                    }
                }
            }
            if V::PARTS * V::PART_VECTORS == 1 && !rest.is_empty() {
                let block = V::pad_block(rest);
                let prepared = V::prepare_part(simd, &block, 0);
                target[blocks.len() * T::WEIGHTS + place] =
                    cast(V::widen(simd, &block, &prepared, 0));
            }
        }
    }
}

/// Returns the vectors of a chunk of a group of weight rows.
#[inline(always)]
pub(crate) fn group_vectors<T: Tile>(chunk: &Range<usize>) -> usize {
    chunk.len().div_ceil(LANES) * T::WEIGHTS
}
