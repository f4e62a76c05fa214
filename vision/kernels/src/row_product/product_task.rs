//! Products `x · weightᵀ` as dot products of rows, for AVX2 with FMA and for AVX-512.
//!
//! The general matrix kernel (`gemm`) rearranges the whole weight before it multiplies. With few
//! input rows, that takes longer than the product. Dot products read both matrices as they are
//! stored, and read each weight once for all input rows. With many input rows, a part of the weight
//! that fits into a core's second cache is converted and rearranged first.

use std::ops::Range;

use pulp::Simd;
use pulp::x86::{V3, V4};

use super::packed_products::PackedProducts;
use super::packed_rows::{PackedInput, WeightPacking, column_chunks};
use super::stored_products::{MAX_REGISTERS, StoredProducts};
use super::stored_values::{CHUNK_COLUMNS, LANES, StoredValues};
use super::tile::Tile;
use super::weight_rows::WeightRows;
use crate::aligned_rows::AlignedRows;
use crate::output_columns::{OutputColumns, compute_columns};

/// Weight rows that are multiplied with all input rows before the next ones are read. Their chunks
/// take 200 kB in f32.
const PANEL_ROWS: usize = 48;
/// Up to this number of input rows, the next panel is prefetched. With more rows, most of the time goes into
/// computing, so prefetching saves little.
const MAX_FETCHING_ROWS: usize = 64;
/// Values of a panel that is prefetched, so that it fits into a core's second cache beside the current one.
const FETCHED_VALUES: usize = PANEL_ROWS * CHUNK_COLUMNS;
/// Up to this number of input rows, AVX2 reads memory as fast as AVX-512.
const MAX_NARROW_ROWS: usize = 4;
/// Weight rows that are multiplied with all input rows before the next ones, if they are read where
/// they are stored.
const DIRECT_ROWS: usize = 24;

/// A product of `n` input rows with the rows of a weight.
#[derive(Clone, Copy)]
pub(crate) struct RowProduct<'a> {
    /// The input, row by row.
    pub(crate) x: &'a [f32],
    /// Number of input rows.
    pub(crate) n: usize,
    /// Rows of the weight.
    pub(crate) rows: usize,
}

impl RowProduct<'_> {
    /// Computes the product, row by row. `None` if the processor has no AVX2 and FMA, or if a length
    /// does not match.
    pub(crate) fn compute<V: StoredValues>(&self, weight: &[V::Element]) -> Option<Vec<f32>> {
        match V4::try_new() {
            Some(tile) if self.n > MAX_NARROW_ROWS => self.compute_with::<V4, V>(tile, weight),
            _ => self.compute_with::<V3, V>(V3::try_new()?, weight),
        }
    }

    fn compute_with<T: Tile, V: StoredValues>(
        &self,
        tile: T,
        weight: &[V::Element],
    ) -> Option<Vec<f32>> {
        let Self { x, n, rows } = *self;
        let columns = x.len().checked_div(n)?;
        let weight = WeightRows::<V>::borrow(weight, rows, columns)?;
        if columns == 0 || rows == 0 {
            return Some(vec![0.; n * rows]);
        }
        let is_direct = n <= V::MAX_DIRECT_ROWS.min(T::MAX_DIRECT_ROWS);
        let x = PackedInput::new(x, columns, if is_direct { T::ROWS } else { T::INPUTS });
        let work = n * rows * columns;
        Some(compute_columns([n, rows], T::WEIGHTS, work, |outputs| {
            let task = ProductTask { tile, x: &x, weight, outputs };
            if is_direct {
                task.multiply_stored();
            } else {
                task.multiply_packed();
            }
        }))
    }
}

/// Computes the outputs of consecutive weight rows.
struct ProductTask<'a, T, V: StoredValues> {
    tile: T,
    /// The input, in groups of a register or of a tile.
    x: &'a PackedInput,
    weight: WeightRows<'a, V>,
    outputs: OutputColumns<'a>,
}

impl<'a, T: Tile, V: StoredValues> ProductTask<'a, T, V> {
    /// Multiplies with weights that are read where they are stored.
    fn multiply_stored(mut self) {
        let width = self.outputs.width();
        for start in (0..width).step_by(DIRECT_ROWS) {
            self.add_stored(&(start..(start + DIRECT_ROWS).min(width)));
        }
    }

    /// Adds the products of some weight rows to the outputs at `places`.
    fn add_stored(&mut self, places: &Range<usize>) {
        let registers = self.x.groups();
        let groups = registers.div_ceil(MAX_REGISTERS);
        // The sizes of groups differ by at most one.
        let first = |group: usize| registers * group / groups;
        let mut outputs = self.outputs.rows.as_mut_slice();
        for group in 0..groups {
            let registers = first(group)..first(group + 1);
            let rows = (registers.len() * T::ROWS).min(outputs.len());
            let (targets, later) = outputs.split_at_mut(rows);
            outputs = later;
            let products = StoredProducts {
                lanes: self.tile,
                x: self.x,
                registers,
                weight: self.weight,
                first: self.outputs.first,
                places,
                outputs: targets,
            };
            products.add();
        }
    }

    /// Returns the number of rows of a panel.
    fn panel_rows(&self) -> usize {
        if !self.fetches_ahead() {
            return PANEL_ROWS;
        }
        let rows = FETCHED_VALUES / self.weight.columns;
        (rows / T::WEIGHTS * T::WEIGHTS).clamp(T::WEIGHTS, PANEL_ROWS)
    }

    /// Returns true if the tiles of a panel prefetch the weight rows of the next one.
    fn fetches_ahead(&self) -> bool {
        T::FETCHES && self.outputs.rows.len() <= MAX_FETCHING_ROWS
    }

    /// Returns the elements of weight rows that are prefetched; none if nothing is.
    fn upcoming(&self, rows: Range<usize>) -> &'a [V::Element] {
        if self.fetches_ahead() { self.weight.elements_of_rows(rows) } else { &[] }
    }

    /// Multiplies with weights that are first converted to f32 and packed, panel by panel.
    fn multiply_packed(mut self) {
        let mut panel = AlignedRows::<LANES>::zeros(PANEL_ROWS * CHUNK_COLUMNS / LANES);
        let first = self.outputs.first;
        let width = self.outputs.width();
        let panel_rows = self.panel_rows();
        for start in (0..width).step_by(panel_rows) {
            let places = start..(start + panel_rows).min(width);
            let next = first + places.end..first + (places.end + panel_rows).min(width);
            let mut upcoming = self.upcoming(next);
            for chunk in column_chunks(self.weight.columns) {
                let fetched = upcoming.len() * chunk.len() / (self.weight.columns - chunk.start);
                let (fetched, later) = upcoming.split_at(fetched);
                upcoming = later;
                let packing = WeightPacking {
                    tile: self.tile,
                    weight: self.weight,
                    rows: first + places.start..first + places.end,
                    chunk: &chunk,
                    target: panel.as_mut_slice(),
                };
                Simd::vectorize(self.tile.narrow(), packing);
                let products = PackedProducts {
                    tile: self.tile,
                    x: self.x,
                    panel: panel.as_slice(),
                    chunk: &chunk,
                    sum_steps: V::SUM_STEPS,
                    fetched,
                    places: &places,
                    outputs: &mut self.outputs.rows,
                };
                Simd::vectorize(self.tile, products);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::stored_values::{Bf16Values, F32Values, TileValues};
    use super::*;

    /// Because of this property, verdicts do not depend on the processor.
    #[test]
    #[expect(clippy::print_stdout, reason = "a skipped test says why")]
    fn both_register_sizes_give_equal_results() {
        let (Some(narrow), Some(wide)) = (V3::try_new(), V4::try_new()) else {
            println!("skipped: this processor has no AVX-512");
            return;
        };
        let value = |i: usize| ((i * 7919 + 13) % 1009) as f32 / 500. - 1.;
        for (rows, columns) in [(1, 1), (50, 7), (49, 192), (100, 1029), (25, 2100)] {
            let weight: Vec<f32> = (0..rows * columns).map(value).collect();
            let half: Vec<u16> =
                weight.iter().map(|w| half::bf16::from_f32(*w).to_bits()).collect();
            for n in [1, 2, 3, 5, 8, 9, 17, 32, 33, 71] {
                let x: Vec<f32> = (0..n * columns).map(|i| value(i + 3)).collect();
                let product = RowProduct { x: &x, n, rows };
                let results = [
                    product.compute_with::<V3, F32Values>(narrow, &weight),
                    product.compute_with::<V4, F32Values>(wide, &weight),
                ];
                assert!(results[0] == results[1], "{n} rows, {rows}x{columns}");
                let results = [
                    product.compute_with::<V3, Bf16Values>(narrow, &half),
                    product.compute_with::<V4, Bf16Values>(wide, &half),
                ];
                assert!(results[0] == results[1], "{n} rows, {rows}x{columns} in bf16");
                let results = [
                    product.compute_with::<V3, TileValues>(narrow, &half),
                    product.compute_with::<V4, TileValues>(wide, &half),
                ];
                assert!(results[0] == results[1], "{n} rows, {rows}x{columns} in the order of AMX");
            }
        }
    }
}
