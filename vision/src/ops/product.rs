//! Rows times a weight, in f32 whatever type the weight is kept in.

use candle::{Result, Tensor};

/// `x · weightᵀ`.
///
/// A weight in bf16 or f16 takes half the memory. On the CPU it is widened for the product, which is
/// exact; elsewhere the rows are narrowed to it, and the device adds up in f32.
///
/// # Shapes
/// `x`: `(n, c_in)`, `weight`: `(c_out, c_in)`, result: `(n, c_out)`.
pub fn product(x: &Tensor, weight: &Tensor) -> Result<Tensor> {
    if x.dtype() == weight.dtype() {
        x.matmul(&weight.t()?)
    } else if x.device().is_cpu() {
        x.matmul(&weight.to_dtype(x.dtype())?.t()?)
    } else {
        let narrow = x.to_dtype(weight.dtype())?;
        narrow.matmul(&weight.t()?)?.to_dtype(x.dtype())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use candle::{DType, Device};

    #[test]
    fn a_narrow_weight_gives_what_its_values_give() -> Result<()> {
        let x = Tensor::randn(0f32, 1.0, (3, 8), &Device::Cpu)?;
        for dtype in [DType::BF16, DType::F16] {
            let weight = Tensor::randn(0f32, 1.0, (5, 8), &Device::Cpu)?.to_dtype(dtype)?;
            let wide = product(&x, &weight.to_dtype(DType::F32)?)?.to_vec2::<f32>()?;
            assert_eq!(product(&x, &weight)?.to_vec2::<f32>()?, wide);
        }
        Ok(())
    }
}
