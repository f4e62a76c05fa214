//! Rows converted to f32 and copied to the order in which the kernel reads them.

#![expect(
    clippy::inline_always,
    reason = "vector instructions need to be part of the function that enables them"
)]

use std::ops::Range;

use pulp::x86::V3;
use pulp::{Simd, WithSimd, cast};

use super::stored_values::{LANES, StoredValues};
use super::weight_rows::{WeightRows, prefetch};

/// Input rows that are multiplied together.
pub(crate) const INPUT_GROUP: usize = 4;
/// Weight rows that are multiplied together.
pub(crate) const WEIGHT_GROUP: usize = 3;
/// Columns that are multiplied before their partial sums are added. A group of input rows takes
/// 16 kB then, half of a core's first cache. A multiple of the size of all packed blocks.
pub(crate) const CHUNK_COLUMNS: usize = 1024;

/// Rows of the input, in groups of [`INPUT_GROUP`]: chunk by chunk, group by group.
pub(crate) struct PackedInput {
    vectors: Vec<[f32; LANES]>,
    groups: usize,
}

impl PackedInput {
    /// Copies an input whose rows have `columns` values.
    pub(crate) fn new(x: &[f32], columns: usize) -> Self {
        let n = x.len() / columns;
        let groups = n.div_ceil(INPUT_GROUP);
        let mut vectors = vec![[0.; LANES]; groups * INPUT_GROUP * columns.div_ceil(LANES)];
        for chunk in column_chunks(columns) {
            for row in 0..n {
                let (group, place) = (row / INPUT_GROUP, row % INPUT_GROUP);
                let target = &mut vectors[group_range(groups, group, &chunk)];
                let values = &x[row * columns..][chunk.clone()];
                for (target, values) in
                    target.chunks_exact_mut(INPUT_GROUP).zip(values.chunks(LANES))
                {
                    target[place][..values.len()].copy_from_slice(values);
                }
            }
        }
        Self { vectors, groups }
    }

    /// Returns a chunk of a group.
    #[inline(always)]
    pub(crate) fn group(&self, group: usize, chunk: &Range<usize>) -> &[[f32; LANES]] {
        &self.vectors[group_range(self.groups, group, chunk)]
    }

    /// Returns the number of groups.
    #[inline(always)]
    pub(crate) fn groups(&self) -> usize {
        self.groups
    }
}

/// Returns the chunks of a row.
pub(crate) fn column_chunks(columns: usize) -> impl Iterator<Item = Range<usize>> {
    (0..columns)
        .step_by(CHUNK_COLUMNS)
        .map(move |start| start..(start + CHUNK_COLUMNS).min(columns))
}

/// Returns the place of a chunk of an input group.
#[inline(always)]
fn group_range(groups: usize, group: usize, chunk: &Range<usize>) -> Range<usize> {
    let vectors = chunk.len().div_ceil(LANES) * INPUT_GROUP;
    let start = groups * INPUT_GROUP * (chunk.start / LANES) + group * vectors;
    start..start + vectors
}

/// Converts a chunk of some rows of a weight, in groups of [`WEIGHT_GROUP`].
pub(crate) struct WeightPacking<'a, V: StoredValues> {
    pub(crate) simd: V3,
    pub(crate) weight: WeightRows<'a, V>,
    pub(crate) rows: Range<usize>,
    pub(crate) chunk: &'a Range<usize>,
    pub(crate) target: &'a mut [[f32; LANES]],
}

impl<V: StoredValues> WithSimd for WeightPacking<'_, V> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, _: S) {
        let Self { simd, weight, rows, chunk, target } = self;
        let group_vectors = group_vectors(chunk);
        for (i, row) in rows.enumerate() {
            let target = &mut target[i / WEIGHT_GROUP * group_vectors..][..group_vectors];
            let place = i % WEIGHT_GROUP;
            let (blocks, rest) = V::split_blocks(weight.part_of_row(row, chunk));
            for (block, values) in blocks.iter().enumerate() {
                prefetch(values, weight.row_bytes() * WEIGHT_GROUP);
                for part in 0..V::PARTS {
                    let prepared = V::prepare_part(simd, values, part);
                    for vector in 0..V::PART_VECTORS {
                        let k = (block * V::PARTS + part) * V::PART_VECTORS + vector;
                        target[k * WEIGHT_GROUP + place] =
                            cast(V::widen(simd, values, &prepared, vector));
                    }
                }
            }
            if V::PARTS * V::PART_VECTORS == 1 && !rest.is_empty() {
                let block = V::pad_block(rest);
                let prepared = V::prepare_part(simd, &block, 0);
                target[blocks.len() * WEIGHT_GROUP + place] =
                    cast(V::widen(simd, &block, &prepared, 0));
            }
        }
    }
}

/// Returns the vectors of a chunk of [`WEIGHT_GROUP`] rows.
#[inline(always)]
pub(crate) fn group_vectors(chunk: &Range<usize>) -> usize {
    chunk.len().div_ceil(LANES) * WEIGHT_GROUP
}
