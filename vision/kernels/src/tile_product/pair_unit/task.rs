//! Products of all inputs with some weight rows.

use std::ops::Range;

use super::super::bf16_rows::Bf16Rows;
use super::input::PairInput;
use super::kernel::StoredRows;
use super::sizes::{BLOCK_COLUMNS, WEIGHT_ROWS};
use super::unit::Bf16PairUnit;
use super::weights::{WeightPairs, parts_of_rows};
use crate::output_columns::{OutputColumns, compute_columns};
use crate::row_product::{CHUNK_COLUMNS, column_chunks};

/// Up to this number of groups of input rows, weights are read where they are stored.
const MAX_STORED_GROUPS: usize = 2;
/// Groups of packed weight rows that are multiplied with all inputs before the next ones are packed.
/// Their chunks take 100 kB.
const PANEL_GROUPS: usize = 6;

impl Bf16PairUnit {
    /// Computes the product of `n` input rows, at least one, with a weight.
    ///
    /// # Shapes
    /// `x` (n, columns) → (n, rows).
    pub(in super::super) fn product(self, x: &[f32], n: usize, weight: Bf16Rows) -> Vec<f32> {
        let input = PairInput::round(self.simd(), x, weight.columns);
        let work = n * weight.rows * weight.columns;
        compute_columns([n, weight.rows], WEIGHT_ROWS, work, |outputs| {
            PairTask { unit: self, input: &input, weight, outputs }.run();
        })
    }
}

/// Computes the outputs of consecutive weight rows.
struct PairTask<'a> {
    unit: Bf16PairUnit,
    input: &'a PairInput,
    weight: Bf16Rows<'a>,
    outputs: OutputColumns<'a>,
}

impl PairTask<'_> {
    /// Computes the outputs.
    fn run(self) {
        if self.input.groups() <= MAX_STORED_GROUPS {
            self.multiply_stored();
        } else {
            self.multiply_packed();
        }
    }

    /// Multiplies with weights that are read where they are stored.
    fn multiply_stored(mut self) {
        let width = self.outputs.width();
        for start in (0..width).step_by(WEIGHT_ROWS) {
            let places = start..(start + WEIGHT_ROWS).min(width);
            let mut ahead = WEIGHT_ROWS * self.weight.columns * size_of::<u16>();
            for chunk in column_chunks(self.weight.columns) {
                let rows = parts_of_rows(self.weight, self.outputs.first + start, &chunk);
                let groups = self.outputs.rows.chunks_mut(self.input.group_rows());
                for (group, outputs) in groups.enumerate() {
                    let x = self.input.group(group, &chunk);
                    // The first group fetches the next weights.
                    let ahead = (group == 0).then_some(ahead);
                    let weights = StoredRows { rows: &rows, ahead };
                    self.unit.multiply_stored(x, weights, outputs, places.clone());
                }
                ahead += size_of_val(rows[0]) * (WEIGHT_ROWS - 1);
            }
        }
    }

    /// Packs the weights panel by panel, and multiplies with each panel.
    fn multiply_packed(mut self) {
        let panel_rows = PANEL_GROUPS * WEIGHT_ROWS;
        let blocks = self.weight.columns.min(CHUNK_COLUMNS).div_ceil(BLOCK_COLUMNS);
        let mut panel = vec![WeightPairs::ZERO; PANEL_GROUPS * blocks];
        let width = self.outputs.width();
        for start in (0..width).step_by(panel_rows) {
            let places = start..(start + panel_rows).min(width);
            for chunk in column_chunks(self.weight.columns) {
                self.pack(&places, &chunk, &mut panel);
                self.multiply(&places, &chunk, &panel);
            }
        }
    }

    /// Copies a chunk of the weights of the outputs at `places` to groups of blocks.
    fn pack(&self, places: &Range<usize>, chunk: &Range<usize>, panel: &mut [WeightPairs]) {
        let blocks = chunk.len().div_ceil(BLOCK_COLUMNS);
        let ahead = WEIGHT_ROWS * self.weight.columns * size_of::<u16>();
        let groups = places.clone().step_by(WEIGHT_ROWS);
        for (place, panel) in groups.zip(panel.chunks_mut(blocks)) {
            let rows = parts_of_rows(self.weight, self.outputs.first + place, chunk);
            self.unit.pack_weights(&rows, panel, ahead);
        }
    }

    /// Adds the products of a chunk of all inputs with the weights of the outputs at `places`.
    fn multiply(&mut self, places: &Range<usize>, chunk: &Range<usize>, panel: &[WeightPairs]) {
        let blocks = chunk.len().div_ceil(BLOCK_COLUMNS);
        for (group, outputs) in self.outputs.rows.chunks_mut(self.input.group_rows()).enumerate() {
            let x = self.input.group(group, chunk);
            let groups = places.clone().step_by(WEIGHT_ROWS);
            for (place, weights) in groups.zip(panel.chunks(blocks)) {
                let places = place..(place + WEIGHT_ROWS).min(places.end);
                self.unit.multiply_packed(x, weights, outputs, places);
            }
        }
    }
}
