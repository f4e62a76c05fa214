//! Products of an input with all panels of a weight.

use candle::quantized::GgmlDType;
use candle::{Device, Result, Tensor, bail};
use rayon::prelude::*;

use super::arrangement::{arranged_shape, as_bytes};
use super::byte_panels::BytePanel;
use super::byte_rows::ByteRows;
use super::kernel::{Kernel, PanelProducts};
use super::nibble_panels::NibblePanel;
use super::panel_rows::{PANEL_ROWS, PanelRows};
use super::tier::{WithKernel, with_kernel};
use crate::elements::with_f32_slice;
use crate::output_columns::{MIN_PARALLEL_WORK, compute_columns};

/// Bytes of input rows that are multiplied with all panels before the next rows. They stay in the L2 cache,
/// so a product of 2,000 rows of 11,008 values takes less than half of the time.
const CACHED_BYTES: usize = 128 << 10;

/// Computes `x · weightᵀ` for a weight in panels.
///
/// # Shapes
/// `x` (n, `c_in`), `panels` (padded rows, bytes per row) of a weight (`rows`, `c_in`) → (n, `rows`).
///
/// # Errors
///
/// The tensors are not on the CPU, or their shapes do not match.
pub(crate) fn multiply_by_panels(
    x: &Tensor,
    panels: &Tensor,
    block_type: GgmlDType,
    (rows, columns): (usize, usize),
) -> Result<Tensor> {
    let (n, c_in) = x.dims2()?;
    let arranged = arranged_shape((rows, columns), block_type);
    if c_in != columns
        || !columns.is_multiple_of(block_type.block_size())
        || panels.dims2()? != arranged
    {
        bail!(
            "product of {n} rows of {c_in} values with {rows} quantised rows of {columns} values"
        );
    }
    let (storage, layout) = panels.storage_and_layout();
    let panels = as_bytes(&storage, layout)?;
    let panel_bytes = arranged.1 * PANEL_ROWS;
    let product = with_f32_slice(x, |x| {
        let input = Input { x, n, columns };
        if block_type == GgmlDType::Q4K {
            with_kernel(PanelProduct::<NibblePanel>::new(input, panels, panel_bytes, rows))
        } else {
            with_kernel(PanelProduct::<BytePanel>::new(input, panels, panel_bytes, rows))
        }
    })?;
    Tensor::from_vec(product, (n, rows), &Device::Cpu)
}

/// A type of panel that kernels multiply.
trait KernelPanel<'a>: PanelRows<'a> {
    /// Multiplies `R` input rows with the panel.
    fn multiply<K: Kernel, const R: usize>(self, kernel: K, x: &ByteRows) -> [PanelProducts; R];
}

impl<'a> KernelPanel<'a> for BytePanel<'a> {
    fn multiply<K: Kernel, const R: usize>(self, kernel: K, x: &ByteRows) -> [PanelProducts; R] {
        kernel.multiply_bytes(x, self)
    }
}

impl<'a> KernelPanel<'a> for NibblePanel<'a> {
    fn multiply<K: Kernel, const R: usize>(self, kernel: K, x: &ByteRows) -> [PanelProducts; R] {
        kernel.multiply_nibbles(x, self)
    }
}

/// Rows of `columns` values.
#[derive(Clone, Copy)]
struct Input<'a> {
    x: &'a [f32],
    n: usize,
    columns: usize,
}

/// A product with all panels.
struct PanelProduct<'a, W> {
    input: Input<'a>,
    panels: Vec<W>,
    /// Rows of the weight.
    rows: usize,
}

impl<'a, W: KernelPanel<'a>> PanelProduct<'a, W> {
    fn new(input: Input<'a>, bytes: &'a [u8], panel_bytes: usize, rows: usize) -> Self {
        let panels = bytes.chunks_exact(panel_bytes.max(1)).map(W::borrow).collect();
        Self { input, panels, rows }
    }
}

impl<'a, W: KernelPanel<'a> + Sync> WithKernel for PanelProduct<'a, W> {
    type Output = Vec<f32>;

    fn run<K: Kernel>(self, kernel: K) -> Vec<f32> {
        let Self { input: Input { x, n, columns }, panels, rows } = self;
        let groups = n.div_ceil(K::MAX_ROWS);
        // The sizes of groups differ by at most one.
        let first_row = |group: usize| n * group / groups;
        let round = |group: usize| {
            let rows = first_row(group)..first_row(group + 1);
            kernel.round(&x[rows.start * columns..rows.end * columns], columns)
        };
        let work = n * rows * columns;
        let inputs: Vec<ByteRows> = if rayon::current_num_threads() > 1 && work >= MIN_PARALLEL_WORK
        {
            (0..groups).into_par_iter().map(round).collect()
        } else {
            (0..groups).map(round).collect()
        };
        let cached_groups = cached_groups(&inputs);
        compute_columns([n, rows], PANEL_ROWS, work, |mut outputs| {
            let panels = &panels[outputs.first / PANEL_ROWS..];
            let width = outputs.width();
            let mut later = outputs.rows.as_mut_slice();
            for inputs in inputs.chunks(cached_groups) {
                let rows = inputs.iter().map(|x| x.rows).sum();
                let outputs;
                (outputs, later) = later.split_at_mut(rows);
                for (column, panel) in (0..width).step_by(PANEL_ROWS).zip(panels) {
                    multiply_groups(kernel, inputs, *panel, column, outputs);
                }
            }
        })
    }
}

/// Returns how many groups of input rows fit into [`CACHED_BYTES`], at least one.
fn cached_groups(inputs: &[ByteRows]) -> usize {
    let bytes = inputs.first().map_or(1, ByteRows::bytes);
    (CACHED_BYTES / bytes.max(1)).max(1)
}

/// Multiplies groups of input rows with a panel. The results fill the outputs from `column` on.
fn multiply_groups<'a, K: Kernel, W: KernelPanel<'a>>(
    kernel: K,
    inputs: &[ByteRows],
    panel: W,
    column: usize,
    mut outputs: &mut [&mut [f32]],
) {
    for x in inputs {
        let targets;
        (targets, outputs) = outputs.split_at_mut(x.rows);
        multiply_rows(kernel, x, panel, column, targets);
    }
}

/// Multiplies a group of input rows with a panel.
fn multiply_rows<'a, K: Kernel, W: KernelPanel<'a>>(
    kernel: K,
    x: &ByteRows,
    panel: W,
    column: usize,
    outputs: &mut [&mut [f32]],
) {
    match x.rows {
        1 => write(panel.multiply::<K, 1>(kernel, x), column, outputs),
        2 => write(panel.multiply::<K, 2>(kernel, x), column, outputs),
        3 => write(panel.multiply::<K, 3>(kernel, x), column, outputs),
        4 => write(panel.multiply::<K, 4>(kernel, x), column, outputs),
        5 => write(panel.multiply::<K, 5>(kernel, x), column, outputs),
        6 => write(panel.multiply::<K, 6>(kernel, x), column, outputs),
        7 => write(panel.multiply::<K, 7>(kernel, x), column, outputs),
        _ => write(panel.multiply::<K, 8>(kernel, x), column, outputs),
    }
}

/// Writes products to the outputs. Those of the rows that fill a panel have no place.
fn write<const R: usize>(products: [PanelProducts; R], column: usize, outputs: &mut [&mut [f32]]) {
    for (products, outputs) in products.iter().zip(outputs) {
        for (output, product) in outputs.iter_mut().skip(column).zip(products) {
            *output = *product;
        }
    }
}
