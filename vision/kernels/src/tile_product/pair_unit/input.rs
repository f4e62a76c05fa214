//! Inputs as pairs.

#![expect(
    clippy::inline_always,
    reason = "vector instructions need to be part of the function that enables them"
)]

use std::ops::Range;

use pulp::x86::V4;
use pulp::{Simd, WithSimd};

use super::super::rounding::{round_groups, round_input};
use super::sizes::{BLOCK_COLUMNS, INPUT_ROWS, LANES};
use crate::row_product::column_chunks;

/// The pairs of a block of columns, for each input row of a group.
#[derive(Clone, Copy)]
#[repr(C, align(64))]
pub(super) struct InputPairs(pub(super) [[u32; LANES]; INPUT_ROWS]);

impl InputPairs {
    const ZERO: Self = Self([[0; LANES]; INPUT_ROWS]);
}

/// Input rows rounded to bf16, in groups: chunk by chunk, group by group.
pub(super) struct PairInput {
    blocks: Vec<InputPairs>,
    /// Number of groups.
    groups: usize,
    /// Rows of a group. The last group may have fewer.
    group_rows: usize,
}

impl PairInput {
    /// Rounds rows of `columns` values.
    pub(super) fn round(simd: V4, x: &[f32], columns: usize) -> Self {
        let rows = x.len() / columns;
        let groups = rows.div_ceil(INPUT_ROWS);
        let group_rows = rows.div_ceil(groups);
        let count = groups * columns.div_ceil(BLOCK_COLUMNS);
        let mut input = Self { blocks: vec![InputPairs::ZERO; count], groups, group_rows };
        for chunk in column_chunks(columns) {
            let first = input.group_range(0, &chunk);
            let blocks = &mut input.blocks[first.start..first.start + groups * first.len()];
            round_groups(x, blocks, [group_rows * columns, first.len()], |blocks, rows| {
                let chunk = chunk.clone();
                Simd::vectorize(simd, GroupOfPairs { rows, columns, chunk, blocks });
            });
        }
        input
    }

    /// Returns the number of groups of rows.
    pub(super) fn groups(&self) -> usize {
        self.groups
    }

    /// Returns the number of rows of a group. The last group may have fewer.
    pub(super) fn group_rows(&self) -> usize {
        self.group_rows
    }

    /// Returns the blocks of a group for a chunk of columns.
    pub(super) fn group(&self, group: usize, chunk: &Range<usize>) -> &[InputPairs] {
        &self.blocks[self.group_range(group, chunk)]
    }

    /// Returns the place of the blocks of a group for a chunk of columns.
    fn group_range(&self, group: usize, chunk: &Range<usize>) -> Range<usize> {
        let len = chunk.len().div_ceil(BLOCK_COLUMNS);
        let start = chunk.start / BLOCK_COLUMNS * self.groups + group * len;
        start..start + len
    }
}

/// The rounding of a chunk of a group of rows.
struct GroupOfPairs<'a> {
    rows: &'a [f32],
    columns: usize,
    chunk: Range<usize>,
    blocks: &'a mut [InputPairs],
}

impl WithSimd for GroupOfPairs<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, _: S) {
        let Self { rows, columns, chunk, blocks } = self;
        for (r, row) in rows.chunks_exact(columns).enumerate() {
            let (whole, rest) = row[chunk.clone()].as_chunks::<BLOCK_COLUMNS>();
            for (block, values) in blocks.iter_mut().zip(whole) {
                block.0[r] = round_block(values);
            }
            if let Some(block) = blocks.get_mut(whole.len()) {
                let mut values = [0.; BLOCK_COLUMNS];
                values[..rest.len()].copy_from_slice(rest);
                block.0[r] = round_block(&values);
            }
        }
    }
}

/// Rounds a block of a row to pairs of the columns `j + 8` and `j`.
#[inline(always)]
fn round_block(values: &[f32; BLOCK_COLUMNS]) -> [u32; LANES] {
    let mut pairs = [0; LANES];
    let (second, first) = values.split_at(LANES);
    for ((pair, second), first) in pairs.iter_mut().zip(second).zip(first) {
        *pair = u32::from(round_input(*second)) << 16 | u32::from(round_input(*first));
    }
    pairs
}
