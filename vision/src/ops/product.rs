//! Rows times a weight, in f32 whatever type the weight is kept in.

use candle::{Result, Tensor};

use super::by_hand;

/// `x · weightᵀ`, differentiable in both.
///
/// A weight in bf16 or f16 takes half the memory. On the CPU it is widened for the product, which is
/// exact; elsewhere the rows are narrowed to it, and the device adds up in f32. What was widened or narrowed is
/// not remembered for the gradient, and a frozen weight's gradient is not computed.
///
/// # Shapes
/// `x`: `(n, c_in)`, `weight`: `(c_out, c_in)`, result: `(n, c_out)`.
pub fn product(x: &Tensor, weight: &Tensor) -> Result<Tensor> {
    product_in(x, weight, !x.device().is_cpu())
}

/// The same, the rows being narrowed to the weight's type where so, and the weight widened to theirs where not.
fn product_in(x: &Tensor, weight: &Tensor, narrowed: bool) -> Result<Tensor> {
    let wanted = [x.track_op(), weight.track_op()];
    if x.dtype() == weight.dtype() && wanted == [true; 2] {
        return x.matmul(&weight.t()?);
    }
    let (dtype, kept) = (if narrowed { weight.dtype() } else { x.dtype() }, x.dtype());
    let cast = move |x: &Tensor| x.to_dtype(dtype);
    let y = cast(&x.detach())?.matmul(&cast(&weight.detach())?.t()?)?;
    by_hand::of_two(x, weight, &y.to_dtype(kept)?, move |x, weight, upstream| {
        let upstream = cast(upstream)?;
        let of_x = || upstream.matmul(&cast(weight)?)?.to_dtype(kept);
        let of_weight = || {
            cast(x)?
                .t()?
                .matmul(&upstream)?
                .t()?
                .to_dtype(weight.dtype())
        };
        Ok([
            wanted[0].then(of_x).transpose()?,
            wanted[1].then(of_weight).transpose()?,
        ])
    })
}

#[cfg(test)]
mod tests {
    use super::super::tests::{distance, numbers, same};
    use super::*;
    use candle::{DType, Var};

    fn narrow(weight: &Tensor, dtype: DType) -> Var {
        Var::from_tensor(&weight.to_dtype(dtype).unwrap()).unwrap()
    }

    #[test]
    fn a_narrow_weight_gives_what_its_values_give() -> Result<()> {
        let x = numbers(&[3, 8], 1);
        for dtype in [DType::BF16, DType::F16] {
            let weight = narrow(&numbers(&[5, 8], 2), dtype);
            let wide = Var::from_tensor(&weight.to_dtype(DType::F32)?)?;
            let (a, b) = (product(&x, &weight)?, product(&x, &wide)?);
            assert_eq!(a.to_vec2::<f32>()?, b.to_vec2::<f32>()?);
            let (a, b) = (
                a.sqr()?.sum_all()?.backward()?,
                b.sqr()?.sum_all()?.backward()?,
            );
            let of = |x: Option<&Tensor>| x.unwrap().to_dtype(DType::F32)?.to_vec2::<f32>();
            assert_eq!(of(a.get(&x))?, of(b.get(&x))?);
            let rounded = b.get(&wide).unwrap().to_dtype(dtype)?;
            assert_eq!(of(a.get(&weight))?, of(Some(&rounded))?);
        }
        Ok(())
    }

    /// What another device computes: the same but for the rounding of rows and sums to the weight's type.
    #[test]
    fn narrowed_rows_give_nearly_the_same_forwards_and_backwards() -> Result<()> {
        let x = numbers(&[9, 8], 1);
        for (dtype, most) in [(DType::BF16, 1e-2), (DType::F16, 1e-3)] {
            let weight = narrow(&numbers(&[5, 8], 2), dtype);
            let [a, b] = [true, false].map(|narrowed| product_in(&x, &weight, narrowed));
            let (a, b) = (a?, b?);
            let far = distance(&a, &b);
            assert!(far > 0.0 && far < most, "{far}");
            let (a, b) = (
                a.sqr()?.sum_all()?.backward()?,
                b.sqr()?.sum_all()?.backward()?,
            );
            for var in [&x, &weight] {
                let of = |x: Option<&Tensor>| x.unwrap().to_dtype(DType::F32);
                let far = distance(&of(a.get(var))?, &of(b.get(var))?);
                assert!(far > 0.0 && far < most, "{far}");
            }
        }
        Ok(())
    }

    #[test]
    fn the_gradient_of_what_is_frozen_is_not_computed() -> Result<()> {
        let (x, weight) = (numbers(&[3, 8], 1), numbers(&[5, 8], 2));
        let (frozen, given) = (weight.detach(), x.detach());
        same(
            std::slice::from_ref(&x),
            || product(&x, &frozen),
            || product(&x, &weight),
        );
        same(
            std::slice::from_ref(&weight),
            || product(&given, &weight),
            || product(&x, &weight),
        );
        let gradients = product(&x, &frozen)?.sum_all()?.backward()?;
        assert!(gradients.get(&frozen).is_none());
        assert!(!product(&given, &frozen)?.track_op());
        Ok(())
    }
}
