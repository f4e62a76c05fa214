//! Columns of a product, shared among threads.

use rayon::prelude::*;

/// Products with fewer multiplications run on one thread, because starting others takes longer.
pub(crate) const MIN_PARALLEL_WORK: usize = 1 << 18;
/// Tasks per thread.
const THREAD_TASKS: usize = 4;

/// Consecutive columns of all rows of a product.
pub(crate) struct OutputColumns<'a> {
    /// The first column.
    pub(crate) first: usize,
    /// The columns of each row.
    pub(crate) rows: Vec<&'a mut [f32]>,
}

impl OutputColumns<'_> {
    /// Returns the number of columns.
    pub(crate) fn width(&self) -> usize {
        self.rows.first().map_or(0, |row| row.len())
    }
}

/// Computes a product, row by row, from zeros. Columns are divided into tasks between groups of
/// `group` columns. `work` is the number of multiplications.
pub(crate) fn compute_columns(
    [n, columns]: [usize; 2],
    group: usize,
    work: usize,
    compute: impl Fn(OutputColumns<'_>) + Send + Sync,
) -> Vec<f32> {
    let mut product = vec![0.; n * columns];
    let threads = rayon::current_num_threads();
    let is_parallel = threads > 1 && work >= MIN_PARALLEL_WORK;
    let width = if is_parallel { columns.div_ceil(threads * THREAD_TASKS) } else { columns };
    let width = width.next_multiple_of(group).max(1);
    let new_task = |first| OutputColumns { first, rows: Vec::with_capacity(n) };
    let mut tasks: Vec<_> = (0..columns).step_by(width).map(new_task).collect();
    for row in product.chunks_mut(columns.max(1)) {
        for (task, part) in tasks.iter_mut().zip(row.chunks_mut(width)) {
            task.rows.push(part);
        }
    }
    if is_parallel {
        tasks.into_par_iter().for_each(compute);
    } else {
        tasks.into_iter().for_each(compute);
    }
    product
}
