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

/// Panels that the kernel multiplies with an input row at the same time.
const PANEL_GROUP: usize = 2;

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
    /// Multiplies `R` input rows with panels.
    fn multiply<K: Kernel, const R: usize, const G: usize>(
        kernel: K,
        x: &ByteRows,
        panels: [Self; G],
    ) -> [[PanelProducts; R]; G];
}

impl<'a> KernelPanel<'a> for BytePanel<'a> {
    fn multiply<K: Kernel, const R: usize, const G: usize>(
        kernel: K,
        x: &ByteRows,
        panels: [Self; G],
    ) -> [[PanelProducts; R]; G] {
        kernel.multiply_bytes(x, panels)
    }
}

impl<'a> KernelPanel<'a> for NibblePanel<'a> {
    fn multiply<K: Kernel, const R: usize, const G: usize>(
        kernel: K,
        x: &ByteRows,
        panels: [Self; G],
    ) -> [[PanelProducts; R]; G] {
        kernel.multiply_nibbles(x, panels)
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
        compute_columns([n, rows], PANEL_ROWS * PANEL_GROUP, work, |mut outputs| {
            let first = outputs.first / PANEL_ROWS;
            let last = (outputs.first + outputs.width()).div_ceil(PANEL_ROWS);
            for i in (first..last).step_by(PANEL_GROUP) {
                let column = (i - first) * PANEL_ROWS;
                let mut rows = outputs.rows.as_mut_slice();
                for x in &inputs {
                    let (targets, later) = rows.split_at_mut(x.rows);
                    rows = later;
                    if i + 1 < last {
                        multiply_rows(kernel, x, [panels[i], panels[i + 1]], column, targets);
                    } else {
                        multiply_rows(kernel, x, [panels[i]], column, targets);
                    }
                }
            }
        })
    }
}

/// Multiplies input rows with panels and writes the results to the outputs from a column on.
fn multiply_rows<'a, K: Kernel, W: KernelPanel<'a>, const G: usize>(
    kernel: K,
    x: &ByteRows,
    panels: [W; G],
    column: usize,
    outputs: &mut [&mut [f32]],
) {
    match x.rows {
        1 => write(W::multiply::<K, 1, G>(kernel, x, panels), column, outputs),
        2 => write(W::multiply::<K, 2, G>(kernel, x, panels), column, outputs),
        3 => write(W::multiply::<K, 3, G>(kernel, x, panels), column, outputs),
        4 => write(W::multiply::<K, 4, G>(kernel, x, panels), column, outputs),
        5 => write(W::multiply::<K, 5, G>(kernel, x, panels), column, outputs),
        _ => write(W::multiply::<K, 6, G>(kernel, x, panels), column, outputs),
    }
}

/// Writes products to the outputs. Those of the rows that fill a panel have no place.
fn write<const R: usize, const G: usize>(
    products: [[PanelProducts; R]; G],
    column: usize,
    outputs: &mut [&mut [f32]],
) {
    for (g, products) in products.iter().enumerate() {
        for (products, outputs) in products.iter().zip(outputs.iter_mut()) {
            for (output, product) in outputs.iter_mut().skip(column + g * PANEL_ROWS).zip(products)
            {
                *output = *product;
            }
        }
    }
}
