//! The operations of a transformer block that candle has either fast or differentiable, here in one
//! form that is both.
//!
//! candle's fused softmax and layer norm drop gradients without a word, its composed ones make half a
//! dozen passes over memory, and its sum over rows (the gradient of every bias) is scalar. On the CPU in
//! f32 each operation here is one parallel pass with a backward pass of its own; on other devices and for
//! other types it is composed of candle's differentiable operations. Rows are cut into blocks of fixed
//! size and sums over blocks are taken in order, so that no result depends on the number of threads.

mod activation;
mod bias;
pub mod by_hand;
mod exp;
mod layer_norm;
mod product;
mod softmax;

pub use activation::activate;
pub use bias::add_bias;
pub use layer_norm::LayerNorm;
pub use product::product;
pub use softmax::softmax;

use candle::{CpuStorage, DType, Layout, Result, Tensor, bail};

/// Rows in one block of work.
const BLOCK: usize = 32;

/// Elements in one block of work of an elementwise operation.
const FLAT_BLOCK: usize = 1 << 14;

/// Whether the one-pass form exists for this tensor.
fn fused(x: &Tensor) -> bool {
    x.device().is_cpu() && x.dtype() == DType::F32
}

/// The numbers of a contiguous f32 tensor.
fn floats<'a>(storage: &'a CpuStorage, layout: &Layout) -> Result<&'a [f32]> {
    let data = storage.as_slice::<f32>()?;
    match layout
        .contiguous_offsets()
        .and_then(|(start, end)| data.get(start..end))
    {
        Some(data) => Ok(data),
        None => bail!("expected a contiguous tensor, got {layout:?}"),
    }
}

/// The sum of `f` over the elements of two rows, in eight interleaved parts: a fixed order that vectorises.
fn sum_by(x: &[f32], y: &[f32], f: impl Fn(f32, f32) -> f32) -> f32 {
    let mut parts = [0f32; 8];
    let (xs, ys) = (x.chunks_exact(8), y.chunks_exact(8));
    let (x_rest, y_rest) = (xs.remainder(), ys.remainder());
    for (x, y) in xs.zip(ys) {
        for ((part, x), y) in parts.iter_mut().zip(x).zip(y) {
            *part += f(*x, *y);
        }
    }
    for ((part, x), y) in parts.iter_mut().zip(x_rest).zip(y_rest) {
        *part += f(*x, *y);
    }
    let [a, b, c, d, e, f, g, h] = parts;
    ((a + e) + (c + g)) + ((b + f) + (d + h))
}

#[cfg(test)]
mod tests {
    use super::*;
    use candle::{Device, Var};

    /// Seeded numbers of about unit size, so that a failure can be repeated.
    pub(super) fn numbers(shape: &[usize], seed: u64) -> Var {
        let mut state = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1;
        let data: Vec<f32> = (0..shape.iter().product::<usize>())
            .map(|_| {
                state = state
                    .wrapping_mul(6_364_136_223_846_793_005)
                    .wrapping_add(1);
                ((state >> 40) as f32 / (1u64 << 23) as f32 - 1.) * 2.
            })
            .collect();
        Var::from_tensor(&Tensor::from_vec(data, shape, &Device::Cpu).unwrap()).unwrap()
    }

    /// The largest difference over the largest magnitude.
    pub(super) fn distance(a: &Tensor, b: &Tensor) -> f32 {
        assert_eq!(a.dims(), b.dims());
        let scalar = |t: Tensor| {
            t.abs()
                .unwrap()
                .flatten_all()
                .unwrap()
                .max(0)
                .unwrap()
                .to_scalar::<f32>()
                .unwrap()
        };
        scalar((a - b).unwrap()) / scalar(b.clone()).max(1e-6)
    }

    /// Holds two forms of one operation equal, in value and in the gradient of every input.
    pub(super) fn same(
        inputs: &[Var],
        ours: impl Fn() -> Result<Tensor>,
        reference: impl Fn() -> Result<Tensor>,
    ) {
        let (a, b) = (ours().unwrap(), reference().unwrap());
        assert!(
            distance(&a, &b) < 2e-6,
            "values differ by {}",
            distance(&a, &b)
        );
        let seed = numbers(a.dims(), 99);
        let grads = |y: &Tensor| {
            (y * seed.as_tensor())
                .unwrap()
                .sum_all()
                .unwrap()
                .backward()
                .unwrap()
        };
        let (ga, gb) = (grads(&a), grads(&b));
        for (i, input) in inputs.iter().enumerate() {
            let (ga, gb) = (ga.get(input).unwrap(), gb.get(input).unwrap());
            assert!(
                distance(ga, gb) < 1e-5,
                "gradient {i} differs by {}",
                distance(ga, gb)
            );
        }
    }

    #[test]
    fn sums_in_parts() {
        let x: Vec<f32> = (0..19).map(|x| x as f32).collect();
        assert!((sum_by(&x, &x, |x, _| x) - 171.).abs() < 1e-6);
        assert!((sum_by(&x, &x, |x, y| x * y) - 2109.).abs() < 1e-6);
    }
}
