//! Matrix products with a weight in f32, bf16 or f16.

use candle::{DType, Result, Tensor};

use crate::custom_gradient::with_gradients;

/// Computes `x · weightᵀ`. Differentiable in both.
///
/// A weight in bf16 or f16 takes half the memory of f32. On the CPU it is converted to f32, which
/// is exact. On other devices `x` is converted to the weight's dtype, and the device accumulates in
/// f32. Converted tensors are not stored for the backward pass, and the gradient of a frozen weight
/// is not computed.
///
/// # Shapes
/// `x`: `(n, c_in)`, `weight`: `(c_out, c_in)`, result: `(n, c_out)`.
pub fn matmul_transposed(x: &Tensor, weight: &Tensor) -> Result<Tensor> {
    let dtype = if x.device().is_cpu() { x.dtype() } else { weight.dtype() };
    matmul_in_dtype(x, weight, dtype)
}

/// Multiplies in `dtype`. The result has the dtype of `x`.
fn matmul_in_dtype(x: &Tensor, weight: &Tensor, dtype: DType) -> Result<Tensor> {
    let tracked = [x.track_op(), weight.track_op()];
    if x.dtype() == weight.dtype() && tracked == [true; 2] {
        return x.matmul(&weight.t()?);
    }
    let x_dtype = x.dtype();
    let cast = move |x: &Tensor| x.to_dtype(dtype);
    let y = cast(&x.detach())?.matmul(&cast(&weight.detach())?.t()?)?;
    with_gradients(x, weight, &y.to_dtype(x_dtype)?, move |x, weight, upstream| {
        let upstream = cast(upstream)?;
        let dx = || upstream.matmul(&cast(weight)?)?.to_dtype(x_dtype);
        let dweight = || cast(x)?.t()?.matmul(&upstream)?.t()?.to_dtype(weight.dtype());
        Ok([tracked[0].then(dx).transpose()?, tracked[1].then(dweight).transpose()?])
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::{assert_equivalent, random_var, relative_error};
    use candle::Var;

    fn to_var(weight: &Tensor, dtype: DType) -> Var {
        Var::from_tensor(&weight.to_dtype(dtype).unwrap()).unwrap()
    }

    #[test]
    fn half_precision_weights_match_their_f32_values() -> Result<()> {
        let x = random_var(&[3, 8], 1);
        for dtype in [DType::BF16, DType::F16] {
            let weight = to_var(&random_var(&[5, 8], 2), dtype);
            let f32_weight = Var::from_tensor(&weight.to_dtype(DType::F32)?)?;
            let (a, b) = (matmul_transposed(&x, &weight)?, matmul_transposed(&x, &f32_weight)?);
            assert_eq!(a.to_vec2::<f32>()?, b.to_vec2::<f32>()?);
            let (a, b) = (a.sqr()?.sum_all()?.backward()?, b.sqr()?.sum_all()?.backward()?);
            let values = |x: Option<&Tensor>| x.unwrap().to_dtype(DType::F32)?.to_vec2::<f32>();
            assert_eq!(values(a.get(&x))?, values(b.get(&x))?);
            let rounded = b.get(&f32_weight).unwrap().to_dtype(dtype)?;
            assert_eq!(values(a.get(&weight))?, values(Some(&rounded))?);
        }
        Ok(())
    }

    /// Multiplication in the weight's dtype, as on a GPU, differs only by rounding.
    #[test]
    fn half_precision_product_is_close_forward_and_backward() -> Result<()> {
        let x = random_var(&[9, 8], 1);
        for (dtype, limit) in [(DType::BF16, 1e-2), (DType::F16, 1e-3)] {
            let weight = to_var(&random_var(&[5, 8], 2), dtype);
            let [a, b] = [dtype, DType::F32].map(|dtype| matmul_in_dtype(&x, &weight, dtype));
            let (a, b) = (a?, b?);
            let error = relative_error(&a, &b);
            assert!(error > 0.0 && error < limit, "{error}");
            let (a, b) = (a.sqr()?.sum_all()?.backward()?, b.sqr()?.sum_all()?.backward()?);
            for var in [&x, &weight] {
                let to_f32 = |x: Option<&Tensor>| x.unwrap().to_dtype(DType::F32);
                let error = relative_error(&to_f32(a.get(var))?, &to_f32(b.get(var))?);
                assert!(error > 0.0 && error < limit, "{error}");
            }
        }
        Ok(())
    }

    #[test]
    fn gradients_of_frozen_inputs_are_not_computed() -> Result<()> {
        let (x, weight) = (random_var(&[3, 8], 1), random_var(&[5, 8], 2));
        let (frozen_weight, frozen_x) = (weight.detach(), x.detach());
        assert_equivalent(
            std::slice::from_ref(&x),
            || matmul_transposed(&x, &frozen_weight),
            || matmul_transposed(&x, &weight),
        );
        assert_equivalent(
            std::slice::from_ref(&weight),
            || matmul_transposed(&frozen_x, &weight),
            || matmul_transposed(&x, &weight),
        );
        let gradients = matmul_transposed(&x, &frozen_weight)?.sum_all()?.backward()?;
        assert!(gradients.get(&frozen_weight).is_none());
        assert!(!matmul_transposed(&frozen_x, &frozen_weight)?.track_op());
        Ok(())
    }
}
