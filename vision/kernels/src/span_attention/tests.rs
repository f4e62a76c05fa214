//! The kernel agrees with attention composed of candle's operations.

use candle::{D, DType, Device, Result, Tensor, Var};

use super::*;
use crate::tests::{assert_equivalent, random_var};

fn span(prefix: std::ops::Range<usize>, tokens: std::ops::Range<usize>) -> CausalSpan {
    CausalSpan { prefix, tokens }
}

/// Attention over all pairs of tokens, with a mask.
fn composed([q, k, v]: [&Tensor; 3], spans: &[CausalSpan], scale: f32) -> Result<Tensor> {
    let (n, heads, d) = q.dims3()?;
    let groups = heads / k.dim(1)?;
    let mut visible = vec![0f32; n * n];
    for CausalSpan { prefix, tokens } in spans {
        for query in tokens.clone() {
            for key in prefix.clone().chain(tokens.start..=query) {
                visible[query * n + key] = 1.0;
            }
        }
    }
    let visible = Tensor::from_vec(visible, (1, n, n), &Device::Cpu)?;
    let by_head = |x: &Tensor| {
        let (n, heads, d) = x.dims3()?;
        let repeats = if heads == k.dim(1)? { groups } else { 1 };
        let x = x.transpose(0, 1)?.unsqueeze(1)?.broadcast_as((heads, repeats, n, d))?;
        x.contiguous()?.reshape((heads * repeats, n, d))
    };
    let q = q.transpose(0, 1)?.contiguous()?;
    let scores = (q.matmul(&by_head(k)?.transpose(1, 2)?)? * f64::from(scale))?;
    let exp = scores.broadcast_sub(&scores.max_keepdim(D::Minus1)?)?.exp()?;
    let exp = exp.broadcast_mul(&visible)?;
    // Tokens outside of all spans have no visible key.
    let sums = exp.sum_keepdim(D::Minus1)?;
    let weights = exp.broadcast_div(&(&sums + sums.eq(0.0)?.to_dtype(DType::F32)?)?)?;
    weights.matmul(&by_head(v)?)?.transpose(0, 1)?.contiguous()?.reshape((n, heads * d))
}

fn assert_agrees(n: usize, [heads, key_heads]: [usize; 2], spans: &[CausalSpan]) {
    let q = random_var(&[n, heads, 8], 1);
    let [k, v] = [2, 3].map(|seed| random_var(&[n, key_heads, 8], seed));
    let inputs = [q, k, v];
    let [q, k, v] = &inputs;
    let shared: Arc<[CausalSpan]> = spans.into();
    let tensors = || [q, k, v].map(Var::as_tensor);
    assert_equivalent(
        &inputs,
        || Ok(attend_spans(tensors(), &shared, 0.4)?.unwrap()),
        || composed(tensors(), spans, 0.4),
    );
}

#[test]
fn causal_sequence_of_several_tiles_agrees() {
    assert_agrees(150, [2, 2], &[span(0..0, 0..150)]);
}

#[test]
fn branches_padding_and_groups_of_heads_agree() {
    // Two sequences in one row, the first with two branches, then padding.
    let spans = [
        span(0..0, 0..70),
        span(0..70, 70..140),
        span(0..70, 140..145),
        span(145..145, 145..148),
        span(145..148, 148..149),
    ];
    assert_agrees(152, [4, 2], &spans);
}

#[test]
fn wrong_shapes_and_spans_are_errors() -> Result<()> {
    let zeros = |shape: (usize, usize, usize)| Tensor::zeros(shape, DType::F32, &Device::Cpu);
    let (q, k) = (zeros((4, 4, 8))?, zeros((4, 2, 8))?);
    let attend =
        |tensors: [&Tensor; 3], end| attend_spans(tensors, &[span(0..0, 0..end)].into(), 1.0);
    assert!(attend([&q, &k, &k], 4)?.is_some());
    assert!(attend([&q, &k, &k], 5).is_err());
    for other in [zeros((4, 3, 8))?, zeros((3, 2, 8))?, zeros((4, 2, 7))?, zeros((4, 0, 8))?] {
        assert!(attend([&q, &other, &other], 3).is_err());
    }
    let half = k.to_dtype(DType::F16)?;
    assert!(attend([&q, &half, &half], 4)?.is_none());
    Ok(())
}
