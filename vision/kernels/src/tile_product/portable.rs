//! Products in the order of AMX for any processor.

use crate::output_columns::compute_columns;

/// Sums of neighbouring chains of an output.
pub(super) const PAIR_SUMS: usize = 4;
/// Columns of a chain of fused operations, for each of its eight sums.
pub(super) const CHAIN_COLUMNS: usize = 128;
/// Columns whose sums begin with zero and are added to the output.
const CHUNK_COLUMNS: usize = 1024;

/// Computes the products of `n` inputs with `rows` weights of the same length, row by row.
pub(super) fn multiply(x: &[f32], weights: &[f32], [n, rows, columns]: [usize; 3]) -> Vec<f32> {
    if columns == 0 {
        return vec![0.; n * rows];
    }
    compute_columns([n, rows], 1, n * rows * columns, |mut outputs| {
        let first = outputs.first;
        for (x, outputs) in x.chunks_exact(columns).zip(&mut outputs.rows) {
            for (output, weights) in
                outputs.iter_mut().zip(weights[first * columns..].chunks_exact(columns))
            {
                *output = dot_product(x, weights);
            }
        }
    })
}

/// Computes a dot product: in each chunk eight chains of fused operations, then the sums of neighbours
/// after each chain, of pairs and of halves.
fn dot_product(x: &[f32], weights: &[f32]) -> f32 {
    let mut product = 0.;
    for (x, weights) in x.chunks(CHUNK_COLUMNS).zip(weights.chunks(CHUNK_COLUMNS)) {
        let mut pairs = [0f32; PAIR_SUMS];
        for (x, weights) in x.chunks(CHAIN_COLUMNS).zip(weights.chunks(CHAIN_COLUMNS)) {
            let mut sums = [0f32; 2 * PAIR_SUMS];
            for (x, weights) in x.chunks(sums.len()).zip(weights.chunks(sums.len())) {
                for ((sum, x), weight) in sums.iter_mut().zip(x).zip(weights) {
                    *sum = x.mul_add(*weight, *sum);
                }
            }
            for (pair, sums) in pairs.iter_mut().zip(sums.as_chunks::<2>().0) {
                *pair += sums[0] + sums[1];
            }
        }
        product += (pairs[0] + pairs[1]) + (pairs[2] + pairs[3]);
    }
    product
}
