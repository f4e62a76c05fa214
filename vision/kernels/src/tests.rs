//! Test helpers of this crate.

use candle::{Device, Result, Tensor, Var};

/// Returns a variable with reproducible pseudorandom values between −2 and 2.
pub(crate) fn random_var(shape: &[usize], seed: u64) -> Var {
    Var::from_tensor(&random_tensor(shape, seed)).unwrap()
}

/// Returns a tensor with reproducible pseudorandom values between −2 and 2.
pub(crate) fn random_tensor(shape: &[usize], seed: u64) -> Tensor {
    let mut state = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1;
    let data: Vec<f32> = (0..shape.iter().product::<usize>())
        .map(|_| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            ((state >> 40) as f32 / (1u64 << 23) as f32 - 1.) * 2.
        })
        .collect();
    Tensor::from_vec(data, shape, &Device::Cpu).unwrap()
}

/// Returns the largest absolute difference divided by the largest magnitude of `b`.
pub(crate) fn relative_error(a: &Tensor, b: &Tensor) -> f32 {
    assert_eq!(a.dims(), b.dims());
    let max_abs = |t: Tensor| {
        t.abs().unwrap().flatten_all().unwrap().max(0).unwrap().to_scalar::<f32>().unwrap()
    };
    max_abs((a - b).unwrap()) / max_abs(b.clone()).max(1e-6)
}

/// Asserts that two implementations agree in value and in the gradient of every input.
pub(crate) fn assert_equivalent(
    inputs: &[Var],
    ours: impl Fn() -> Result<Tensor>,
    reference: impl Fn() -> Result<Tensor>,
) {
    let (a, b) = (ours().unwrap(), reference().unwrap());
    assert!(relative_error(&a, &b) < 2e-6, "values differ by {}", relative_error(&a, &b));
    let upstream = random_var(a.dims(), 99);
    let grads =
        |y: &Tensor| (y * upstream.as_tensor()).unwrap().sum_all().unwrap().backward().unwrap();
    let (ga, gb) = (grads(&a), grads(&b));
    for (i, input) in inputs.iter().enumerate() {
        let (ga, gb) = (ga.get(input).unwrap(), gb.get(input).unwrap());
        assert!(
            relative_error(ga, gb) < 1e-5,
            "gradient {i} differs by {}",
            relative_error(ga, gb)
        );
    }
}
