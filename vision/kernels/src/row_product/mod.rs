//! Products of tensors with the rows of a weight in its stored type.

#[cfg(target_arch = "x86_64")]
mod input_lanes;
#[cfg(target_arch = "x86_64")]
mod lane_sums;
#[cfg(target_arch = "x86_64")]
mod packed_products;
#[cfg(target_arch = "x86_64")]
mod packed_rows;
#[cfg(target_arch = "x86_64")]
mod product_task;
#[cfg(target_arch = "x86_64")]
mod stored_products;
#[cfg(target_arch = "x86_64")]
mod stored_values;
#[cfg(target_arch = "x86_64")]
mod tile;
#[cfg(target_arch = "x86_64")]
mod weight_rows;

#[cfg(target_arch = "x86_64")]
pub(crate) use self::{
    input_lanes::InputLanes, packed_rows::column_chunks, stored_values::CHUNK_COLUMNS,
    tile::add_lanes, weight_rows::prefetch, weight_rows::prefetch_bytes,
};
use candle::quantized::GgmlDType;
use candle::{Result, Tensor};

/// What a weight is stored as, and the order in which products are added.
#[derive(Clone, Copy, Debug)]
#[cfg_attr(not(target_arch = "x86_64"), expect(dead_code, reason = "there is no kernel to choose"))]
pub(crate) enum WeightOrder {
    /// Numbers.
    Dense,
    /// Numbers in bf16, in the order of [`crate::tile_product`].
    Tiles,
    /// Packed blocks of a type.
    Blocks(GgmlDType),
}

/// Computes `x · weightᵀ`. `None` if the kernel does not support the processor, the devices or the type
/// of the weight.
///
/// Every result is the dot product of a row of `x` and a row of the weight. The products of their values
/// are added in an order that depends on the number of columns and the [`WeightOrder`] only: `Dense` and
/// `Blocks` have the same order. Weights are converted to f32 as they are read, which is exact, so their
/// results do not depend on the type in which a weight is stored.
///
/// # Shapes
/// `x` (n, `c_in`), `weight` (`c_out`, `c_in`) or (`c_out`, bytes per row) → (n, `c_out`).
pub(crate) fn multiply_by_rows(
    x: &Tensor,
    weight: &Tensor,
    order: WeightOrder,
) -> Result<Option<Tensor>> {
    #[cfg(target_arch = "x86_64")]
    {
        use candle::{CpuStorage, DType, Device, Storage};
        use half::slice::HalfFloatSliceExt as _;
        use product_task::RowProduct;
        use stored_values::{Bf16Values, F16Values, F32Values, Q6KBlocks, TileValues};

        use crate::elements::as_f32_slice;

        if x.dtype() != DType::F32 || !x.device().is_cpu() || !weight.device().is_cpu() {
            return Ok(None);
        }
        let (n, rows) = (x.dim(0)?, weight.dim(0)?);
        let (x, weight) = (x.contiguous()?, weight.contiguous()?);
        let (x_storage, x_layout) = x.storage_and_layout();
        let (weight_storage, weight_layout) = weight.storage_and_layout();
        let (Storage::Cpu(x_storage), Storage::Cpu(weight_storage), Some((start, end))) =
            (&*x_storage, &*weight_storage, weight_layout.contiguous_offsets())
        else {
            return Ok(None);
        };
        let x = as_f32_slice(x_storage, x_layout, "product")?;
        let product = RowProduct { x, n, rows };
        let product = match (weight_storage, order) {
            (CpuStorage::F32(values), WeightOrder::Dense) => {
                product.compute::<F32Values>(&values[start..end])
            }
            (CpuStorage::BF16(values), WeightOrder::Dense) => {
                product.compute::<Bf16Values>(values[start..end].reinterpret_cast())
            }
            (CpuStorage::BF16(values), WeightOrder::Tiles) => {
                product.compute::<TileValues>(values[start..end].reinterpret_cast())
            }
            (CpuStorage::F16(values), WeightOrder::Dense) => {
                product.compute::<F16Values>(values[start..end].reinterpret_cast())
            }
            (CpuStorage::U8(bytes), WeightOrder::Blocks(GgmlDType::Q6K)) => {
                product.compute::<Q6KBlocks>(&bytes[start..end])
            }
            _ => None,
        };
        product.map(|product| Tensor::from_vec(product, (n, rows), &Device::Cpu)).transpose()
    }
    #[cfg(not(target_arch = "x86_64"))]
    {
        let _ = (x, weight, order);
        Ok(None)
    }
}
