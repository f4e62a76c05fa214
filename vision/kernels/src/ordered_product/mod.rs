//! Products of tensors with the kernel for few rows.

#[cfg(target_arch = "x86_64")]
mod tile_task;
#[cfg(target_arch = "x86_64")]
mod transposed_tile;
#[cfg(target_arch = "x86_64")]
mod weight_rows;
#[cfg(target_arch = "x86_64")]
mod widened_lanes;

use candle::quantized::GgmlDType;
use candle::{DType, Result, Tensor};

/// Most rows for which the kernel multiplies faster than the general one with a small f32 weight.
const MAX_F32_ROWS: usize = 8;
/// The same for a weight of at least [`LARGE_WEIGHT`] values, which the general kernel rearranges
/// in memory.
const MAX_LARGE_F32_ROWS: usize = 32;
/// Most rows for which the kernel is faster than converting blocks once for the general kernel.
const MAX_BLOCK_ROWS: usize = 256;
/// Values of a weight that exceeds a core's cache.
const LARGE_WEIGHT: usize = 1 << 19;

/// Computes `x · weightᵀ` with a dense weight, or with packed blocks of this type. `None` if the
/// kernel does not support the processor or the weight, or if the general one is faster.
///
/// The general kernel takes weights in f32 only. This one converts others as it reads them, which
/// for bf16 and f16 is faster for any number of rows.
///
/// # Shapes
/// `x` (n, `c_in`), `weight` (`c_out`, `c_in`) or (`c_out`, bytes per row) → (n, `c_out`).
pub(crate) fn multiply_ordered(
    x: &Tensor,
    weight: &Tensor,
    block_type: Option<GgmlDType>,
) -> Result<Option<Tensor>> {
    let max_rows = match weight.dtype() {
        DType::F32 if weight.elem_count() >= LARGE_WEIGHT => MAX_LARGE_F32_ROWS,
        DType::F32 => MAX_F32_ROWS,
        DType::U8 => MAX_BLOCK_ROWS,
        _ => usize::MAX,
    };
    if x.dim(0)? > max_rows {
        return Ok(None);
    }
    compute_ordered(x, weight, block_type)
}

/// Computes `x · weightᵀ` like [`multiply_ordered`], even if the general kernel is faster.
pub(crate) fn compute_ordered(
    x: &Tensor,
    weight: &Tensor,
    block_type: Option<GgmlDType>,
) -> Result<Option<Tensor>> {
    #[cfg(target_arch = "x86_64")]
    {
        use candle::{Device, Storage};
        use tile_task::OrderedProduct;
        use weight_rows::WeightRows;

        use crate::elements::as_f32_slice;

        let ((n, columns), rows) = (x.dims2()?, weight.dim(0)?);
        // The general kernel adds in another order for a single row of weights.
        if rows == 1 || x.dtype() != DType::F32 || !x.device().is_cpu() || !weight.device().is_cpu()
        {
            return Ok(None);
        }
        let x = x.contiguous()?;
        let (x_storage, x_layout) = x.storage_and_layout();
        let (weight_storage, weight_layout) = weight.storage_and_layout();
        let (Storage::Cpu(x_storage), Storage::Cpu(weight_storage)) =
            (&*x_storage, &*weight_storage)
        else {
            return Ok(None);
        };
        let Some(weight) = WeightRows::borrow(weight_storage, weight_layout, block_type) else {
            return Ok(None);
        };
        let x = as_f32_slice(x_storage, x_layout, "product")?;
        let product = OrderedProduct { x, weight, rows, columns }.compute();
        product.map(|product| Tensor::from_vec(product, (n, rows), &Device::Cpu)).transpose()
    }
    #[cfg(not(target_arch = "x86_64"))]
    {
        let _ = (x, weight, block_type);
        Ok(None)
    }
}
