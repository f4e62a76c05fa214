//! Products of all inputs with some weight rows.

use std::arch::x86_64::_mm512_add_ps;
use std::ops::Range;

use pulp::cast;

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
        // SAFETY: A processor with a tile unit has AVX-512.
        #[expect(unsafe_code, reason = "products take a fifth of the time of those in vectors")]
        let input = unsafe { TileInput::round(x, weight.columns) };
        let work = n * weight.rows * weight.columns;
        compute_columns([n, weight.rows], WEIGHT_ROWS, work, |outputs| {
            let mut task = TileTask {
                unit: self.configure(),
                input: &input,
                weight,
                packed: vec![Tile::ZERO; blocks(CHUNK_COLUMNS) * PASSES * GROUPS],
                outputs,
            };
            // SAFETY: As above.
            #[expect(unsafe_code, reason = "products take a fifth of the time of those in vectors")]
            unsafe {
                task.compute();
            }
        })
    }
}

/// Computes the outputs of consecutive weight rows.
struct TileTask<'a> {
    unit: ConfiguredTiles,
    input: &'a TileInput,
    weight: Weight<'a>,
    /// Tiles of the weights of a chunk.
    packed: Vec<Tile>,
    outputs: OutputColumns<'a>,
}

impl TileTask<'_> {
    #[target_feature(enable = "avx512f")]
    fn compute(&mut self) {
        let Weight { values, columns, .. } = self.weight;
        let mut sums = [[[[Tile::ZERO; GROUPS]; GROUPS]; PASSES]; REUSED_PAIRS];
        for place in (0..self.outputs.width()).step_by(WEIGHT_ROWS) {
            let rows = WEIGHT_ROWS.min(self.outputs.width() - place);
            for start in (0..columns).step_by(CHUNK_COLUMNS) {
                let end = (start + CHUNK_COLUMNS).min(columns);
                let first = self.outputs.first + place;
                let row = |row: usize| &values[row * columns + start..row * columns + end];
                let tiles = blocks(end - start) * PASSES;
                let (packed, later) = self.packed.split_at_mut(tiles);
                let packed = [packed, &mut later[..tiles]];
                for (group, packed) in packed.into_iter().enumerate() {
                    let rows = (first..first + rows).skip(group * TILE_ROWS).take(TILE_ROWS);
                    pack_weights(rows.map(row), packed);
                }
                let (packed, later) = self.packed.split_at(tiles);
                let weights = [packed, &later[..tiles]];
                for first_pair in (0..self.input.pairs()).step_by(REUSED_PAIRS) {
                    let pairs = first_pair..(first_pair + REUSED_PAIRS).min(self.input.pairs());
                    for pass in 0..PASSES {
                        let part = tiles / PASSES * pass..tiles / PASSES * (pass + 1);
                        let weights = weights.map(|tiles| &tiles[part.clone()]);
                        for (pair, sums) in pairs.clone().zip(&mut sums) {
                            let group = |i: usize| {
                                &self.input.group(pair * GROUPS + i, start)[part.clone()]
                            };
                            self.unit.multiply(weights, [group(0), group(1)], &mut sums[pass]);
                        }
                    }
                    for (pair, sums) in pairs.zip(&sums) {
                        let outputs = self.outputs.rows.iter_mut().skip(pair * INPUT_ROWS);
                        add_sums(sums, outputs, place..place + rows);
                    }
                }
            }
        }
    }
}

/// Adds the partial sums of all passes, first those of neighbouring passes, to the outputs of up to 32
/// inputs at `places`.
#[target_feature(enable = "avx512f")]
fn add_sums<'a, 'b: 'a>(
    sums: &[TileSums; PASSES],
    mut outputs: impl Iterator<Item = &'a mut &'b mut [f32]>,
    places: Range<usize>,
) {
    for inputs in 0..GROUPS {
        let totals: [[[f32; TILE_ROWS]; TILE_ROWS]; GROUPS] = std::array::from_fn(|weights| {
            let part = |pass: usize, row: usize| cast(sums[pass][weights][inputs].0[row]);
            let total = Tile(std::array::from_fn(|row| {
                let low = _mm512_add_ps(part(0, row), part(1, row));
                let high = _mm512_add_ps(part(2, row), part(3, row));
                cast(_mm512_add_ps(low, high))
            }));
            cast(transpose(&total).0)
        });
        for (row, outputs) in outputs.by_ref().take(TILE_ROWS).enumerate() {
            let outputs = &mut outputs[places.clone()];
            for (outputs, totals) in outputs.chunks_mut(TILE_ROWS).zip(&totals) {
                if let Some(outputs) = outputs.as_mut_array::<TILE_ROWS>() {
                    let sum = _mm512_add_ps(cast(*outputs), cast(totals[row]));
                    *outputs = cast(sum);
                } else {
                    outputs
                        .iter_mut()
                        .zip(totals[row])
                        .for_each(|(output, total)| *output += total);
                }
            }
        }
    }
}
