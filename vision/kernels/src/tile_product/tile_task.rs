//! Products of all inputs with some weight rows.

#![expect(
    clippy::inline_always,
    reason = "vector instructions need to be part of the function that enables them"
)]

use std::ops::Range;

use pulp::x86::V4;
use pulp::{Simd, WithSimd, cast};

use super::tile::{TILE_ROWS, Tile};
use super::tile_input::{INPUT_ROWS, TileInput};
use super::tile_unit::{ConfiguredTiles, GROUPS, TileSums, TileUnit};
use super::tile_weights::{CHUNK_COLUMNS, PASSES, blocks, pack_weights};
use super::transpose::transpose;
use crate::output_columns::{OutputColumns, compute_columns};

/// Weight rows that are multiplied together.
const WEIGHT_ROWS: usize = TILE_ROWS * GROUPS;

/// Pairs of input groups that are multiplied with the weights of a pass while these are in a core's first
/// cache.
const REUSED_PAIRS: usize = 4;

/// A weight in bf16, row by row.
#[derive(Clone, Copy)]
pub(super) struct Weight<'a> {
    /// The bits of the values.
    pub(super) values: &'a [u16],
    /// Number of rows.
    pub(super) rows: usize,
    /// Values of a row, at least one.
    pub(super) columns: usize,
}

impl TileUnit {
    /// Computes the product of `n` input rows with a weight, row by row.
    pub(super) fn product(self, x: &[f32], n: usize, weight: Weight) -> Vec<f32> {
        let simd = self.simd();
        let input = TileInput::round(simd, x, weight.columns);
        let work = n * weight.rows * weight.columns;
        compute_columns([n, weight.rows], WEIGHT_ROWS, work, |outputs| {
            let unit = self.configure();
            Simd::vectorize(simd, TileTask { simd, unit, input: &input, weight, outputs });
        })
    }
}

/// Computes the outputs of consecutive weight rows.
struct TileTask<'a> {
    simd: V4,
    unit: ConfiguredTiles,
    input: &'a TileInput,
    weight: Weight<'a>,
    outputs: OutputColumns<'a>,
}

impl WithSimd for TileTask<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(mut self, _: S) {
        // Tiles of the weights of a chunk.
        let mut packed = vec![Tile::ZERO; blocks(CHUNK_COLUMNS) * PASSES * GROUPS];
        let mut sums = [[[[Tile::ZERO; GROUPS]; GROUPS]; PASSES]; REUSED_PAIRS];
        for place in (0..self.outputs.width()).step_by(WEIGHT_ROWS) {
            let places = place..(place + WEIGHT_ROWS).min(self.outputs.width());
            for start in (0..self.weight.columns).step_by(CHUNK_COLUMNS) {
                let weights = self.pack(&places, start, &mut packed);
                for first in (0..self.input.pairs()).step_by(REUSED_PAIRS) {
                    let pairs = first..(first + REUSED_PAIRS).min(self.input.pairs());
                    self.multiply(weights, pairs.clone(), start, &mut sums);
                    for (pair, sums) in pairs.zip(&sums) {
                        let outputs = self.outputs.rows.iter_mut().skip(pair * INPUT_ROWS);
                        add_sums(self.simd, sums, outputs, places.clone());
                    }
                }
            }
        }
    }
}

impl TileTask<'_> {
    /// Copies the weights of the outputs at `places` to tiles: the chunk that begins at a column.
    #[inline(always)]
    fn pack<'b>(
        &self,
        places: &Range<usize>,
        start: usize,
        packed: &'b mut [Tile],
    ) -> [&'b [Tile]; GROUPS] {
        let Weight { values, columns, .. } = self.weight;
        let end = (start + CHUNK_COLUMNS).min(columns);
        let tiles = blocks(end - start) * PASSES;
        let (first, second) = packed[..tiles * GROUPS].split_at_mut(tiles);
        let rows = |group: usize| {
            let rows = places.clone().skip(group * TILE_ROWS).take(TILE_ROWS);
            rows.map(|place| (self.outputs.first + place) * columns)
                .map(|row| &values[row + start..row + end])
        };
        pack_weights(self.simd, rows(0), first);
        pack_weights(self.simd, rows(1), second);
        [first, second]
    }

    /// Multiplies weights with some pairs of input groups, pass by pass.
    #[inline(always)]
    fn multiply(
        &mut self,
        weights: [&[Tile]; GROUPS],
        pairs: Range<usize>,
        start: usize,
        sums: &mut [[TileSums; PASSES]; REUSED_PAIRS],
    ) {
        let count = weights[0].len() / PASSES;
        for pass in 0..PASSES {
            let part = count * pass..count * (pass + 1);
            for (pair, sums) in pairs.clone().zip(sums.iter_mut()) {
                let group = |i: usize| &self.input.group(pair * GROUPS + i, start)[part.clone()];
                let weights = weights.map(|tiles| &tiles[part.clone()]);
                self.unit.multiply(weights, [group(0), group(1)], &mut sums[pass]);
            }
        }
    }
}

/// Adds the partial sums of all passes, first those of neighbouring passes, to the outputs of up to 32
/// inputs at `places`.
#[inline(always)]
fn add_sums<'a, 'b: 'a>(
    simd: V4,
    sums: &[TileSums; PASSES],
    mut outputs: impl Iterator<Item = &'a mut &'b mut [f32]>,
    places: Range<usize>,
) {
    for inputs in 0..GROUPS {
        let mut totals = [Tile::ZERO; GROUPS];
        for (weights, total) in totals.iter_mut().enumerate() {
            let [a, b, c, d] = sums.each_ref().map(|sums| &sums[weights][inputs].0);
            for row in 0..TILE_ROWS {
                let low = simd.add_f32x16(cast(a[row]), cast(b[row]));
                let high = simd.add_f32x16(cast(c[row]), cast(d[row]));
                total.0[row] = cast(simd.add_f32x16(low, high));
            }
            *total = transpose(simd, total);
        }
        for (row, outputs) in outputs.by_ref().take(TILE_ROWS).enumerate() {
            let outputs = &mut outputs[places.clone()];
            for (outputs, total) in outputs.chunks_mut(TILE_ROWS).zip(&totals) {
                if let Some(outputs) = outputs.as_mut_array::<TILE_ROWS>() {
                    *outputs = cast(simd.add_f32x16(cast(*outputs), cast(total.0[row])));
                } else {
                    let totals = total.0[row].map(f32::from_bits);
                    outputs.iter_mut().zip(totals).for_each(|(output, total)| *output += total);
                }
            }
        }
    }
}
