//! Attention of complete sequences without a mask, as in a vision transformer.

use std::slice;

use candle::{Result, Tensor, bail};

use super::{AttendedSequence, AttentionSettings, KeyValueBlock, attend};

/// Computes the attention of several sequences. Each token attends to all tokens of its sequence. Not
/// differentiable. The result for a sequence does not depend on the others.
///
/// # Shapes
/// `q`, `k`, `v`: (b, t, h, d) in f32 on the CPU → (b · t, h · d).
///
/// # Errors
///
/// The shapes differ, or a dimension is 0.
pub fn attend_unmasked([q, k, v]: [&Tensor; 3], scale: f32) -> Result<Tensor> {
    let (b, t, heads, d) = q.dims4()?;
    if k.dims() != q.dims() || v.dims() != q.dims() {
        bail!("attention: queries {:?}, keys {:?}, values {:?}", q.dims(), k.dims(), v.dims());
    }
    let [q, k, v] = [q, k, v].map(|x| x.reshape((b * t, heads, d)));
    let (q, k, v) = (q?, k?, v?);
    let to_block = |sequence: usize| {
        let mut block = KeyValueBlock::with_capacity(t, heads, d);
        block.append(&k, &v, sequence * t..(sequence + 1) * t)?;
        Ok(block)
    };
    let blocks: Vec<KeyValueBlock> = (0..b).map(to_block).collect::<Result<_>>()?;
    let all_tokens = 0..t;
    let sequences = blocks.iter().map(|block| AttendedSequence {
        new_tokens: t,
        blocks: vec![block],
        bidirectional: slice::from_ref(&all_tokens),
    });
    let sequences: Vec<AttendedSequence> = sequences.collect();
    attend(&q, &sequences, AttentionSettings { scale, window: None })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::softmax;
    use crate::tests::random_tensor;
    use candle::{Device, IndexOp as _};

    /// Returns queries, keys and values.
    fn random_heads(shape: [usize; 4]) -> [Tensor; 3] {
        [1, 2, 3].map(|seed| random_tensor(&shape, seed))
    }

    #[test]
    fn attention_equals_softmax_of_all_scores() -> Result<()> {
        // 33 tokens fill two panels and one token of a third.
        for (b, t, heads, d) in [(2, 33, 3, 20), (1, 1, 2, 8), (3, 16, 1, 32)] {
            let [q, k, v] = random_heads([b, t, heads, d]);
            let actual = attend_unmasked([&q, &k, &v], 0.3)?;
            let by_head = |x: &Tensor| x.transpose(1, 2)?.contiguous();
            let scores = (by_head(&q)?.matmul(&by_head(&k)?.t()?)? * 0.3)?;
            let expected = softmax(&scores)?.matmul(&by_head(&v)?)?;
            let expected = expected.transpose(1, 2)?.reshape((b * t, heads * d))?;
            let difference = (actual - expected)?.abs()?.max_all()?.to_scalar::<f32>()?;
            assert!(difference < 1e-5, "{b} sequences of {t} tokens: {difference}");
        }
        Ok(())
    }

    #[test]
    fn sequences_do_not_depend_on_each_other() -> Result<()> {
        let (b, t, heads, d) = (3, 21, 2, 16);
        let [q, k, v] = random_heads([b, t, heads, d]);
        let together = attend_unmasked([&q, &k, &v], 0.25)?.to_vec2::<f32>()?;
        for i in 0..b {
            let [q, k, v] = [&q, &k, &v].map(|x| x.i(i..=i));
            let alone = attend_unmasked([&q?, &k?, &v?], 0.25)?.to_vec2::<f32>()?;
            assert!(alone == together[i * t..(i + 1) * t], "sequence {i}");
        }
        Ok(())
    }

    #[test]
    fn different_shapes_are_an_error() -> Result<()> {
        let [q, k] = [4, 5].map(|t| Tensor::zeros((1, t, 2, 8), candle::DType::F32, &Device::Cpu));
        let (q, k) = (q?, k?);
        assert!(attend_unmasked([&q, &k, &q], 1.).is_err());
        Ok(())
    }
}
