//! Products `x · weightᵀ` as dot products of rows, for AVX2 and FMA.
//!
//! The general matrix kernel (`gemm`) rearranges the whole weight before it multiplies. With few
//! input rows, that takes longer than the product. Dot products read both matrices as they are
//! stored, and read each weight once for all input rows. With many input rows, a part of the weight
//! that fits into a core's second cache is converted and rearranged first.

use std::ops::Range;

use pulp::Simd;
use pulp::x86::V3;
use rayon::prelude::*;

use super::packed_products::PackedProducts;
use super::packed_rows::{
    CHUNK_COLUMNS, INPUT_GROUP, PackedInput, WEIGHT_GROUP, WeightPacking, column_chunks,
};
use super::stored_products::StoredProducts;
use super::stored_values::{LANES, StoredValues};
use super::weight_rows::WeightRows;

/// Weight rows that are multiplied with all input rows before the next ones are read. Their chunks
/// take 200 kB in f32.
const PANEL_ROWS: usize = 48;
/// Products with fewer multiplications run on one thread, because starting others takes longer.
const MIN_PARALLEL_WORK: usize = 1 << 18;
/// Tasks per thread.
const THREAD_TASKS: usize = 4;

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
        let simd = V3::try_new()?;
        let Self { x, n, rows } = *self;
        let columns = x.len().checked_div(n)?;
        let weight = WeightRows::<V>::borrow(weight, rows, columns)?;
        let mut product = vec![0.; n * rows];
        if columns == 0 || rows == 0 {
            return Some(product);
        }
        let packed = (n > V::MAX_DIRECT_ROWS).then(|| PackedInput::new(x, columns));
        let threads = rayon::current_num_threads();
        let is_parallel = threads > 1 && n * rows * columns >= MIN_PARALLEL_WORK;
        let task_rows = if is_parallel { rows.div_ceil(threads * THREAD_TASKS) } else { rows };
        let width = task_rows.next_multiple_of(WEIGHT_GROUP);
        let new_task = |first| ProductTask {
            simd,
            x,
            packed: packed.as_ref(),
            weight,
            first,
            outputs: Vec::with_capacity(n),
        };
        let mut tasks: Vec<_> = (0..rows).step_by(width).map(new_task).collect();
        for row in product.chunks_mut(rows) {
            for (task, outputs) in tasks.iter_mut().zip(row.chunks_mut(width)) {
                task.outputs.push(outputs);
            }
        }
        if is_parallel {
            tasks.into_par_iter().for_each(ProductTask::run);
        } else {
            tasks.into_iter().for_each(ProductTask::run);
        }
        Some(product)
    }
}

/// Computes the outputs of consecutive weight rows.
struct ProductTask<'a, V: StoredValues> {
    simd: V3,
    x: &'a [f32],
    /// The input in the order in which the kernel reads it, if there are many rows.
    packed: Option<&'a PackedInput>,
    weight: WeightRows<'a, V>,
    /// First row of the weight.
    first: usize,
    /// The outputs of each input row.
    outputs: Vec<&'a mut [f32]>,
}

impl<V: StoredValues> ProductTask<'_, V> {
    fn run(mut self) {
        let width = self.outputs.first().map_or(0, |outputs| outputs.len());
        let mut panel = match self.packed {
            Some(_) => vec![[0.; LANES]; PANEL_ROWS * CHUNK_COLUMNS / LANES],
            None => Vec::new(),
        };
        for start in (0..width).step_by(PANEL_ROWS) {
            let outputs = start..(start + PANEL_ROWS).min(width);
            for chunk in column_chunks(self.weight.columns) {
                match self.packed {
                    Some(packed) => self.multiply_packed(packed, &mut panel, &outputs, &chunk),
                    None => self.multiply_stored(&outputs, &chunk),
                }
            }
        }
    }

    /// Adds the products of a chunk of some weight rows, which are read where they are stored.
    fn multiply_stored(&mut self, outputs: &Range<usize>, chunk: &Range<usize>) {
        let n = self.outputs.len();
        let groups = n.div_ceil(INPUT_GROUP);
        // The sizes of groups differ by at most one.
        let group = |i: usize| n * i / groups..n * (i + 1) / groups;
        for inputs in (0..groups).map(group) {
            let products = StoredProducts {
                simd: self.simd,
                x: &self.x[inputs.start * self.weight.columns..],
                weight: self.weight,
                first: self.first,
                chunk,
                places: outputs,
                outputs: &mut self.outputs[inputs],
            };
            products.add();
        }
    }

    /// Adds the products of a chunk of some weight rows, which are converted first.
    fn multiply_packed(
        &mut self,
        x: &PackedInput,
        panel: &mut [[f32; LANES]],
        outputs: &Range<usize>,
        chunk: &Range<usize>,
    ) {
        let packing = WeightPacking {
            simd: self.simd,
            weight: self.weight,
            rows: self.first + outputs.start..self.first + outputs.end,
            chunk,
            target: panel,
        };
        Simd::vectorize(self.simd, packing);
        let products = PackedProducts {
            simd: self.simd,
            x,
            panel,
            chunk,
            places: outputs,
            outputs: &mut self.outputs,
        };
        Simd::vectorize(self.simd, products);
    }
}
