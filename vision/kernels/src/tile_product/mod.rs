//! Products of inputs rounded to bf16 with weights in bf16, in the order of the matrix instructions
//! AMX.
//!
//! The order of addition is that of `TDPBF16PS` (Intel's Software Developer's Manual, volume 2): one
//! instruction multiplies 16 pairs of values. It adds the products of the first values of the pairs
//! in one chain of fused operations, those of the second values in another, adds both sums, and adds
//! the result to the output. Here the pairs of a row are the neighbours at columns `2t + 8m` and
//! `2t + 8m + 1` for `m` from 0 to 15: four instructions `t` for 128 columns. Other processors compute
//! eight chains in a vector register ([`crate::row_product`]). So all processors give equal results.
//!
//! AMX treats numbers below 2⁻¹²⁶ as zero. They do not occur: inputs below 2⁻⁴⁰ count as zero
//! ([`round_input`]) and weights below 2⁻⁷² are zero ([`flush_tiny_weights`]), so all products are
//! multiples of 2⁻¹²⁶, and so are all sums.

mod rounding;
#[cfg(target_arch = "x86_64")]
mod self_test;
#[cfg(target_arch = "x86_64")]
mod tile;
#[cfg(target_arch = "x86_64")]
mod tile_input;
#[cfg(target_arch = "x86_64")]
mod tile_task;
#[cfg(target_arch = "x86_64")]
mod tile_unit;
#[cfg(target_arch = "x86_64")]
mod tile_weights;
#[cfg(target_arch = "x86_64")]
mod transpose;

use candle::{Result, Tensor};
#[cfg(target_arch = "x86_64")]
use half::slice::HalfFloatSliceExt as _;

pub use self::rounding::flush_tiny_weights;
use self::rounding::round_input;
#[cfg(target_arch = "x86_64")]
use self::{tile_task::Weight, tile_unit::TileUnit};
use crate::elements::with_f32_slice;
use crate::linear::matmul_batch_invariant;
use crate::row_product::{WeightOrder, multiply_by_rows};

/// From this number of input rows on, a product uses the tile unit. Fewer are multiplied as fast as
/// their weights are read.
#[cfg(target_arch = "x86_64")]
const MIN_TILE_INPUTS: usize = 8;

/// Computes `x · weightᵀ` with inputs rounded to bf16 and a weight in bf16, on the CPU.
///
/// # Shapes
/// `x` (n, `c_in`), `weight` (`c_out`, `c_in`) → (n, `c_out`).
pub(crate) fn multiply_rounded(x: &Tensor, weight: &Tensor) -> Result<Tensor> {
    let shape = (x.dims2()?, weight.dims2()?);
    let ((n, c_in), (c_out, columns)) = shape;
    if c_in != columns {
        candle::bail!("product of {n} rows of {c_in} values with {c_out} rows of {columns} values");
    }
    #[cfg(target_arch = "x86_64")]
    if n >= MIN_TILE_INPUTS
        && columns > 0
        && let Some(unit) = find_unit()
    {
        return multiply_with(unit, x, weight);
    }
    let rounded = with_f32_slice(x, |x| x.iter().map(|x| widen(round_input(*x))).collect())?;
    let x = Tensor::from_vec::<_, f32>(rounded, (n, c_in), x.device())?;
    match multiply_by_rows(&x, weight, WeightOrder::Tiles)? {
        Some(y) => Ok(y),
        None => matmul_batch_invariant(&x, &weight.t()?),
    }
}

/// Returns the value of bits in bf16.
fn widen(bits: u16) -> f32 {
    half::bf16::from_bits(bits).to_f32()
}

/// Returns true if products of inputs rounded to bf16 use the matrix unit of this processor. It has
/// passed a test of equality with the vector instructions. Results do not depend on it.
pub fn has_tile_unit() -> bool {
    #[cfg(target_arch = "x86_64")]
    {
        find_unit().is_some()
    }
    #[cfg(not(target_arch = "x86_64"))]
    {
        false
    }
}

/// Returns the tile unit of this processor if its results equal those of the vector instructions in a
/// test at the first use.
#[cfg(target_arch = "x86_64")]
fn find_unit() -> Option<TileUnit> {
    static FOUND: std::sync::OnceLock<Option<TileUnit>> = std::sync::OnceLock::new();
    *FOUND.get_or_init(|| TileUnit::find().filter(|unit| self_test::is_equal(*unit)))
}

#[cfg(target_arch = "x86_64")]
fn multiply_with(unit: TileUnit, x: &Tensor, weight: &Tensor) -> Result<Tensor> {
    let (rows, columns) = weight.dims2()?;
    let n = x.dim(0)?;
    let (storage, layout) = weight.storage_and_layout();
    let (candle::Storage::Cpu(storage), Some((start, end))) =
        (&*storage, layout.contiguous_offsets())
    else {
        candle::bail!("the weight is not contiguous on the CPU");
    };
    let values = storage.as_slice::<half::bf16>()?[start..end].reinterpret_cast();
    let weight = Weight { values, rows, columns };
    let product = with_f32_slice(x, |x| unit.product(x, n, weight))?;
    Tensor::from_vec(product, (n, rows), x.device())
}
