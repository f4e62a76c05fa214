//! Products of all inputs with some weight rows.

#![expect(
    clippy::inline_always,
    reason = "vector instructions need to be part of the function that enables them"
)]

use std::ops::Range;

use pulp::x86::V4;
use pulp::{Simd, WithSimd, cast};

use super::bf16_rows::Bf16Rows;
use super::tile_input::{INPUT_ROWS, TileInput};
use super::tile_unit::{ConfiguredTiles, GROUPS, TileSums, TileUnit};
use super::tile_weights::{CHUNK_COLUMNS, PASSES, blocks, pack_weights};
use super::tile_words::{TILE_ROWS, TileWords};
use super::transpose::transpose;
use crate::output_columns::{OutputColumns, compute_columns};

/// Weight rows that are multiplied together.
const WEIGHT_ROWS: usize = TILE_ROWS * GROUPS;

/// Pairs of input groups that are multiplied with the weights of a pass while these are in a core's first
/// cache.
const REUSED_PAIRS: usize = 4;

impl TileUnit {
    /// Computes the product of `n` input rows with a weight, row by row.
    pub(super) fn product(self, x: &[f32], n: usize, weight: Bf16Rows) -> Vec<f32> {
        let simd = self.simd();
        let input = TileInput::round(simd, x, weight.columns);
        let work = n * weight.rows * weight.columns;
        compute_columns([n, weight.rows], WEIGHT_ROWS, work, |outputs| {
            Simd::vectorize(simd, TileTask { unit: self, input: &input, weight, outputs });
        })
    }
}

/// Computes the outputs of consecutive weight rows.
struct TileTask<'a> {
    unit: TileUnit,
    input: &'a TileInput,
    weight: Bf16Rows<'a>,
    outputs: OutputColumns<'a>,
}

impl WithSimd for TileTask<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(mut self, _: S) {
        let simd = self.unit.simd();
        let columns = self.weight.columns;
        // Tiles of the weights of a chunk.
        let tiles = blocks(columns.min(CHUNK_COLUMNS)) * PASSES;
        let mut packed = vec![TileWords::ZERO; tiles * GROUPS];
        let pairs = self.input.pairs().min(REUSED_PAIRS);
        let mut sums = vec![[[[TileWords::ZERO; GROUPS]; GROUPS]; PASSES]; pairs];
        let mut tiles = self.unit.configure();
        for place in (0..self.outputs.width()).step_by(WEIGHT_ROWS) {
            let places = place..(place + WEIGHT_ROWS).min(self.outputs.width());
            for start in (0..columns).step_by(CHUNK_COLUMNS) {
                let weights = self.pack(simd, &places, start, &mut packed);
                for first in (0..self.input.pairs()).step_by(REUSED_PAIRS) {
                    let pairs = first..(first + REUSED_PAIRS).min(self.input.pairs());
                    let inputs = ChunkPairs { pairs: pairs.clone(), first_column: start };
                    self.multiply(&mut tiles, weights, &inputs, &mut sums);
                    for (pair, sums) in pairs.zip(&sums) {
                        self.add_sums(simd, pair, sums, &places);
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
        simd: V4,
        places: &Range<usize>,
        start: usize,
        packed: &'b mut [TileWords],
    ) -> [&'b [TileWords]; GROUPS] {
        let Bf16Rows { values, columns, .. } = self.weight;
        let end = (start + CHUNK_COLUMNS).min(columns);
        let tiles = blocks(end - start) * PASSES;
        let (first, second) = packed[..tiles * GROUPS].split_at_mut(tiles);
        let rows = |group: usize| {
            let rows = places.clone().skip(group * TILE_ROWS).take(TILE_ROWS);
            rows.map(|place| (self.outputs.first + place) * columns)
                .map(|row| &values[row + start..row + end])
        };
        pack_weights(simd, rows(0), first);
        pack_weights(simd, rows(1), second);
        [first, second]
    }

    /// Multiplies the weights of a chunk with some pairs of input groups, pass by pass.
    #[inline(always)]
    fn multiply(
        &self,
        tiles: &mut ConfiguredTiles,
        weights: [&[TileWords]; GROUPS],
        inputs: &ChunkPairs,
        sums: &mut [[TileSums; PASSES]],
    ) {
        let count = weights[0].len() / PASSES;
        for pass in 0..PASSES {
            let part = count * pass..count * (pass + 1);
            let weights = weights.map(|tiles| &tiles[part.clone()]);
            for (pair, sums) in inputs.pairs.clone().zip(sums.iter_mut()) {
                let group = |i: usize| {
                    &self.input.group(pair * GROUPS + i, inputs.first_column)[part.clone()]
                };
                tiles.multiply(weights, [group(0), group(1)], &mut sums[pass]);
            }
        }
    }

    /// Adds the sums of a pair of input groups to its outputs at `places`: first those of neighbouring
    /// passes, then both halves.
    #[inline(always)]
    fn add_sums(
        &mut self,
        simd: V4,
        pair: usize,
        sums: &[TileSums; PASSES],
        places: &Range<usize>,
    ) {
        let mut outputs = self.outputs.rows.iter_mut().skip(pair * INPUT_ROWS);
        for inputs in 0..GROUPS {
            let mut totals = [TileWords::ZERO; GROUPS];
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
                let outputs = outputs[places.clone()].chunks_mut(TILE_ROWS);
                for (outputs, total) in outputs.zip(&totals) {
                    if let Some(outputs) = outputs.first_chunk_mut::<TILE_ROWS>() {
                        *outputs = cast(simd.add_f32x16(cast(*outputs), cast(total.0[row])));
                    } else {
                        let totals = total.0[row].map(f32::from_bits);
                        outputs.iter_mut().zip(totals).for_each(|(output, sum)| *output += sum);
                    }
                }
            }
        }
    }
}

/// Pairs of input groups, and the first column of a chunk.
struct ChunkPairs {
    pairs: Range<usize>,
    first_column: usize,
}
