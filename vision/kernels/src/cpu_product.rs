//! Products of tensors with the kernel for few rows.

use candle::quantized::GgmlDType;
use candle::{DType, Device, Result, Storage, Tensor};

use crate::elements::as_f32_slice;

/// Computes `x · weightᵀ` with a dense weight, or with packed blocks of this type. `None` if the
/// kernel does not support the processor or the weight, or if another kernel is as fast.
///
/// # Shapes
/// `x` (n, `c_in`), `weight` (`c_out`, `c_in`) or (`c_out`, bytes per row) → (n, `c_out`).
pub(crate) fn multiply_ordered(
    x: &Tensor,
    weight: &Tensor,
    block_type: Option<GgmlDType>,
) -> Result<Option<Tensor>> {
    #[cfg(target_arch = "x86_64")]
    {
        use crate::ordered_product::{BLOCK_ROWS, OrderedProduct};
        use crate::weight_rows::WeightRows;

        let ((n, columns), rows) = (x.dims2()?, weight.dim(0)?);
        if x.dtype() != DType::F32 || !x.device().is_cpu() || !weight.device().is_cpu() {
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
        if weight.is_f32() && n > BLOCK_ROWS {
            return Ok(None);
        }
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
