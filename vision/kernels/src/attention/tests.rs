//! Comparison of the attention kernel with candle's operations.

use candle::{D, Device};

use super::*;
use crate::tests::random_tensor;

/// Computes the attention of one sequence with candle's operations. `keys` and `values`: (t, `h_kv`, d).
fn reference(
    q: &Tensor,
    keys: &Tensor,
    values: &Tensor,
    bidirectional: &[Range<usize>],
    settings: AttentionSettings,
) -> Result<Tensor> {
    let (n, heads, d) = q.dims3()?;
    let (t, key_heads, _) = keys.dims3()?;
    let expand = |x: &Tensor| -> Result<Tensor> {
        let x = x.reshape((t, key_heads, 1, d))?;
        let x = x.broadcast_as((t, key_heads, heads / key_heads, d))?;
        x.reshape((t, heads, d))?.transpose(0, 1)?.contiguous()
    };
    let scores = q.transpose(0, 1)?.contiguous()?.matmul(&expand(keys)?.transpose(1, 2)?)?;
    let scores = (scores * f64::from(settings.scale))?;
    let mask: Vec<f32> = (0..n)
        .flat_map(|i| {
            let position = t - n + i;
            let first = settings.window.map_or(0, |window| (position + 1).saturating_sub(window));
            let range = bidirectional.iter().find(|range| range.contains(&position));
            let end = range.map_or(position + 1, |range| range.end);
            (0..t).map(move |j| if j < first || j >= end { f32::NEG_INFINITY } else { 0. })
        })
        .collect();
    let mask = Tensor::from_vec(mask, (1, n, t), &Device::Cpu)?;
    let weights = candle_nn::ops::softmax(&scores.broadcast_add(&mask)?, D::Minus1)?;
    weights.matmul(&expand(values)?)?.transpose(0, 1)?.contiguous()?.reshape((n, heads * d))
}

/// A sequence whose tokens are split into blocks.
struct Sample {
    q: Tensor,
    keys: Tensor,
    values: Tensor,
    blocks: Vec<KeyValueBlock>,
}

impl Sample {
    /// `shape`: number of query heads, key heads, and values per head.
    fn new(new_tokens: usize, blocks: &[usize], shape: [usize; 3]) -> Result<Self> {
        let [heads, key_heads, d] = shape;
        let tokens = blocks.iter().sum::<usize>();
        let random = |n, h, i| random_tensor(&[n, h, d], 3 * tokens as u64 + i);
        let (keys, values) = (random(tokens, key_heads, 0), random(tokens, key_heads, 1));
        let mut first = 0;
        let mut stored = Vec::new();
        for count in blocks {
            let mut block = KeyValueBlock::with_capacity(count + 5, key_heads, d);
            // In two steps, as prefill and decoding do.
            block.append(&keys, &values, first..first + count / 2)?;
            block.append(&keys, &values, first + count / 2..first + count)?;
            first += count;
            stored.push(block);
        }
        Ok(Self { q: random(new_tokens, heads, 2), keys, values, blocks: stored })
    }

    fn sequence(&self) -> AttendedSequence<'_> {
        let new_tokens = self.q.dim(0).unwrap_or(0);
        AttendedSequence { new_tokens, blocks: self.blocks.iter().collect(), bidirectional: &[] }
    }
}

const SETTINGS: AttentionSettings = AttentionSettings { scale: 0.3, window: None };

#[test]
fn results_match_the_composed_attention() -> Result<()> {
    for (n, blocks, shape) in [
        (1, &[1][..], [1, 1, 8]),
        (1, &[70, 3], [4, 4, 64]),
        (5, &[17, 16, 40], [6, 2, 24]),
        (40, &[200], [3, 1, 16]),
        (33, &[1, 2, 90], [8, 2, 100]),
    ] {
        for window in [None, Some(1), Some(20), Some(1000)] {
            let settings = AttentionSettings { window, ..SETTINGS };
            let sample = Sample::new(n, blocks, shape)?;
            let got = attend(&sample.q, &[sample.sequence()], settings)?;
            let want = reference(&sample.q, &sample.keys, &sample.values, &[], settings)?;
            let error = (got - want)?.abs()?.max_all()?.to_scalar::<f32>()?;
            assert!(error < 2e-5, "{n} of {blocks:?}, {shape:?}, {window:?}: {error}");
        }
    }
    Ok(())
}

#[test]
fn bidirectional_tokens_attend_to_later_ones_of_their_range() -> Result<()> {
    let ranges = [12..50, 60..61, 70..74];
    for window in [None, Some(9), Some(1000)] {
        let settings = AttentionSettings { window, ..SETTINGS };
        let sample = Sample::new(66, &[11, 3, 60], [6, 2, 24])?;
        let sequence = AttendedSequence { bidirectional: &ranges, ..sample.sequence() };
        let got = attend(&sample.q, &[sequence], settings)?;
        let want = reference(&sample.q, &sample.keys, &sample.values, &ranges, settings)?;
        let error = (got - want)?.abs()?.max_all()?.to_scalar::<f32>()?;
        assert!(error < 2e-5, "{window:?}: {error}");
    }
    let sample = Sample::new(2, &[9], [2, 1, 8])?;
    let outside = AttendedSequence { bidirectional: &[1..3, 7..10], ..sample.sequence() };
    assert!(attend(&sample.q, &[outside], SETTINGS).is_err());
    Ok(())
}

#[test]
fn results_do_not_depend_on_the_batch_or_on_threads() -> Result<()> {
    let shape = [6, 2, 32];
    let samples = [
        Sample::new(1, &[300, 7], shape)?,
        Sample::new(37, &[64, 40], shape)?,
        Sample::new(3, &[9], shape)?,
    ];
    let q = Tensor::cat(&samples.each_ref().map(|sample| &sample.q), 0)?;
    let sequences = samples.each_ref().map(Sample::sequence);
    let together = attend(&q, &sequences, SETTINGS)?.to_vec2::<f32>()?;
    let pool =
        rayon::ThreadPoolBuilder::new().num_threads(1).build().map_err(candle::Error::wrap)?;
    let mut first = 0;
    for sample in &samples {
        let alone = pool.install(|| attend(&sample.q, &[sample.sequence()], SETTINGS))?;
        let alone = alone.to_vec2::<f32>()?;
        assert!(alone == together[first..first + alone.len()]);
        first += alone.len();
    }
    Ok(())
}

/// Creates sequences that begin with the blocks of `shared`.
fn continue_blocks<'a>(shared: &'a Sample, own: &'a [Sample]) -> Result<Vec<AttendedSequence<'a>>> {
    own.iter()
        .map(|own| {
            let blocks = shared.blocks.iter().chain(&own.blocks).collect();
            Ok(AttendedSequence { new_tokens: own.q.dim(0)?, blocks, bidirectional: &[] })
        })
        .collect()
}

#[test]
fn sequences_that_share_blocks_give_the_results_of_each_alone() -> Result<()> {
    for (shape, new_tokens) in [
        ([4, 4, 40], vec![1, 2, 1, 3, 1, 30, 0, 4, 4]),
        ([6, 2, 32], vec![1; 20]),
        ([2, 2, 100], vec![3; 6]),
    ] {
        let shared = Sample::new(1, &[50, 21], shape)?;
        let own = new_tokens.into_iter().map(|n| Sample::new(n, &[7 * n, 30], shape));
        let own = own.collect::<Result<Vec<_>>>()?;
        for window in [None, Some(1), Some(45), Some(80)] {
            let settings = AttentionSettings { window, ..SETTINGS };
            let mut sequences = continue_blocks(&shared, &own)?;
            sequences[2].blocks.remove(1);
            // Ranges with new tokens, of two sequences.
            let tokens = sequences[3].tokens();
            let range = tokens - 9..tokens - 1;
            sequences[3].bidirectional = std::slice::from_ref(&range);
            let tokens = sequences[4].tokens();
            let other = tokens - 2..tokens;
            sequences[4].bidirectional = std::slice::from_ref(&other);
            let q = own.iter().map(|own| own.q.clone()).collect::<Vec<_>>();
            let together = attend(&Tensor::cat(&q, 0)?, &sequences, settings)?.to_vec2::<f32>()?;
            let mut alone = Vec::new();
            for (q, sequence) in q.iter().zip(sequences) {
                alone.extend(attend(q, &[sequence], settings)?.to_vec2::<f32>()?);
            }
            assert!(alone == together, "{shape:?}, {window:?}");
        }
    }
    Ok(())
}

#[test]
fn groups_read_as_few_tokens_as_possible() -> Result<()> {
    let shape = [1, 1, 8];
    let [prompt, case, other] =
        [20, 700, 650].map(|tokens| Sample::new(1, &[tokens], shape)).map(Result::ok);
    let (Some(prompt), Some(case), Some(other)) = (prompt, case, other) else {
        candle::bail!("no samples");
    };
    let [prompt, case, other] = [&prompt, &case, &other].map(|sample| &sample.blocks[0]);
    let group = |sequences: &[(&[&KeyValueBlock], usize)], max_new_tokens| {
        let sequences: Vec<_> = sequences
            .iter()
            .map(|(blocks, new_tokens)| SequenceQueries {
                queries: &[],
                new_tokens: *new_tokens,
                tokens: 0,
                blocks,
                bidirectional: &[],
            })
            .collect();
        let groups = group_sequences(&sequences, max_new_tokens).into_iter();
        groups.map(|group| (group.sequences, group.shared_blocks)).collect::<Vec<_>>()
    };
    let (a, b) = (&[prompt, case][..], &[prompt, other][..]);
    // One text of the first case and three of the second: the second reads 670 tokens once.
    assert_eq!(group(&[(a, 1), (b, 1), (b, 1), (b, 1)], 9), [(0..1, 2), (1..4, 2)]);
    assert_eq!(group(&[(a, 1), (a, 1), (b, 1), (b, 1)], 9), [(0..2, 2), (2..4, 2)]);
    assert_eq!(group(&[(a, 1), (b, 1)], 9), [(0..2, 1)]);
    assert_eq!(group(&[(a, 1), (&a[..1], 1)], 9), [(0..2, 1)]);
    // A group has a limited number of new tokens. One sequence may have more.
    assert_eq!(group(&[(a, 9), (a, 7), (a, 7), (a, 9)], 16), [(0..2, 2), (2..4, 2)]);
    assert_eq!(group(&[(a, 2), (a, 2)], 3), [(0..1, 2), (1..2, 2)]);
    assert_eq!(group(&[(&[case], 1), (&[other], 1)], 9).len(), 2);
    assert!(group(&[], 1).is_empty());
    Ok(())
}

#[test]
#[cfg(target_arch = "x86_64")]
fn all_instructions_give_equal_results() -> Result<()> {
    use pulp::Scalar;
    use pulp::x86::{V3, V4};

    for (n, window, shape) in [
        (1, None, [1, 1, 24]),
        (3, Some(50), [2, 1, 40]),
        (21, Some(70), [4, 1, 112]),
        (7, None, [1, 1, 64]),
    ] {
        let sample = Sample::new(n, &[70, 33], shape)?;
        let [query_heads, _, head_size] = shape;
        let queries = sample.q.flatten_all()?.to_vec1()?;
        let blocks: Vec<_> = sample.blocks.iter().collect();
        let range = 99..103;
        let sequences = [SequenceQueries {
            queries: &queries,
            new_tokens: n,
            tokens: 103,
            blocks: &blocks,
            bidirectional: std::slice::from_ref(&range),
        }];
        let task = HeadAttention {
            sequences: &sequences,
            shared_blocks: 2,
            key_head: 0,
            sizes: HeadSizes { query_heads, heads_per_key: query_heads, head_size },
            settings: AttentionSettings { window, ..SETTINGS },
        };
        let want = task.compute_with(Scalar::new());
        for got in [
            V3::try_new().map(|lanes| task.compute_with(lanes)),
            V4::try_new().map(|lanes| task.compute_with(lanes)),
        ] {
            assert!(got.is_none_or(|got| got == want), "{n}, {shape:?}");
        }
    }
    Ok(())
}

#[test]
fn wrong_shapes_are_errors() -> Result<()> {
    let sample = Sample::new(2, &[3], [4, 2, 8])?;
    let other = Sample::new(2, &[3], [4, 3, 8])?;
    let narrow = Sample::new(2, &[3], [4, 2, 4])?;
    for sequences in [vec![], vec![other.sequence()], vec![narrow.sequence()]] {
        assert!(attend(&sample.q, &sequences, SETTINGS).is_err());
    }
    let too_few = AttendedSequence { new_tokens: 2, blocks: Vec::new(), bidirectional: &[] };
    assert!(attend(&sample.q, &[too_few], SETTINGS).is_err());
    let mut block = KeyValueBlock::with_capacity(16, 2, 8);
    assert!(block.append(&other.keys, &other.values, 0..3).is_err());
    assert!(block.append(&sample.keys, &sample.values, 0..4).is_err());
    block.append(&sample.keys, &sample.values, 0..3)?;
    assert_eq!((block.len(), block.room()), (3, 13));
    Ok(())
}
