//! Checks that the kernels agree with the operations on the CPU.

use std::ops::Range;

use candle::{DType, Device, Result, Tensor};

use super::{AttentionPass, CacheShape, DeviceCache, NewHeads, PassSequence};
use crate::attention::{AttendedSequence, AttentionSettings, KeyValueBlock, attend};
use crate::{add_bias, add_to_sum, rms_norm_to, softmax, swiglu};

/// Number of key heads.
const KV_HEADS: usize = 2;

/// A sequence whose tokens come in stages, of which the last is new.
struct TestSequence {
    /// Number of tokens of each stage.
    stages: Vec<usize>,
    /// Queries of the new tokens, (n, h, d).
    q: Tensor,
    /// Keys of all tokens, (t, `h_kv`, d).
    k: Tensor,
    /// Values of all tokens, (t, `h_kv`, d).
    v: Tensor,
}

/// Attention that is computed on the CPU and on the GPU.
struct TestAttention<'a> {
    shape: &'a CacheShape,
    /// Number of query heads.
    heads: usize,
    settings: AttentionSettings,
    bidirectional: &'a [Range<usize>],
}

/// Returns random heads (tokens, heads, d) on the CPU around a mean, which a type represents exactly.
fn random([tokens, heads, d]: [usize; 3], mean: f32, dtype: DType) -> Result<Tensor> {
    let heads = Tensor::randn(mean, 1., (tokens, heads, d), &Device::Cpu)?;
    heads.to_dtype(dtype)?.to_dtype(DType::F32)
}

impl TestSequence {
    /// Creates a sequence whose scores are all far below 0.
    fn new(stages: &[usize], heads: usize, shape: &CacheShape) -> Result<Self> {
        let (d, dtype) = (shape.head_size, shape.dtype);
        let new_tokens = stages.last().copied().unwrap_or(0);
        let tokens = stages.iter().sum();
        Ok(Self {
            stages: stages.to_vec(),
            q: random([new_tokens, heads, d], 2., dtype)?,
            k: random([tokens, KV_HEADS, d], -2., dtype)?,
            v: random([tokens, KV_HEADS, d], 0., dtype)?,
        })
    }

    fn tokens(&self) -> usize {
        self.stages.iter().sum()
    }

    fn new_tokens(&self) -> usize {
        self.stages.last().copied().unwrap_or(0)
    }

    /// Returns the ranges that lie in the sequence.
    fn clip<'a>(&self, ranges: &'a [Range<usize>]) -> &'a [Range<usize>] {
        let count = ranges.iter().take_while(|range| range.end <= self.tokens()).count();
        &ranges[..count]
    }
}

impl TestAttention<'_> {
    /// Copies rows of heads to the GPU.
    fn to_gpu(&self, heads: &Tensor, rows: Range<usize>) -> Result<Tensor> {
        let rows = heads.narrow(0, rows.start, rows.len())?;
        rows.to_device(&self.shape.device)?.to_dtype(self.shape.dtype)
    }

    fn on_cpu(&self, sequence: &TestSequence) -> Result<Tensor> {
        let (tokens, d) = (sequence.tokens(), self.shape.head_size);
        let mut block = KeyValueBlock::with_capacity(tokens, KV_HEADS, d);
        block.append(&sequence.k, &sequence.v, 0..tokens)?;
        let attended = AttendedSequence {
            new_tokens: sequence.new_tokens(),
            blocks: vec![&block],
            bidirectional: sequence.clip(self.bidirectional),
        };
        attend(&sequence.q, &[attended], self.settings)
    }

    /// Computes the last stages of all sequences in one pass.
    fn on_gpu(&self, sequences: &[TestSequence]) -> Result<Tensor> {
        let (gpu, half) = (&self.shape.device, self.shape.head_size / 2);
        // No rotation.
        let ones = Tensor::ones((2000, half), DType::F32, gpu)?;
        let tables = [ones.clone(), ones.zeros_like()?];
        let layer = self.shape.layers - 1;
        let mut caches = Vec::new();
        let (mut qs, mut ks, mut vs) = (Vec::new(), Vec::new(), Vec::new());
        for sequence in sequences {
            // The stages before the last are parts of a shared prompt.
            let mut cache = DeviceCache::default();
            let mut start = 0;
            for count in &sequence.stages[..sequence.stages.len() - 1] {
                let new = PassSequence {
                    cache: &mut cache,
                    new_tokens: *count,
                    first_position: start,
                    bidirectional: sequence.clip(self.bidirectional),
                };
                let pass = AttentionPass::new(&mut [new], self.heads, self.shape.clone())?;
                let k = &self.to_gpu(&sequence.k, start..start + count)?;
                let v = &self.to_gpu(&sequence.v, start..start + count)?;
                pass.fill(layer, &NewHeads { k, v, tables: &tables })?;
                cache.share();
                start += count;
            }
            caches.push((cache, start));
            qs.push(self.to_gpu(&sequence.q, 0..sequence.new_tokens())?);
            ks.push(self.to_gpu(&sequence.k, start..sequence.tokens())?);
            vs.push(self.to_gpu(&sequence.v, start..sequence.tokens())?);
        }
        let mut new: Vec<PassSequence> = caches
            .iter_mut()
            .zip(sequences)
            .map(|((cache, start), sequence)| PassSequence {
                cache,
                new_tokens: sequence.new_tokens(),
                first_position: *start,
                bidirectional: sequence.clip(self.bidirectional),
            })
            .collect();
        let pass = AttentionPass::new(&mut new, self.heads, self.shape.clone())?;
        let (q, k, v) = (Tensor::cat(&qs, 0)?, Tensor::cat(&ks, 0)?, Tensor::cat(&vs, 0)?);
        let q = pass.store(layer, &q, &NewHeads { k: &k, v: &v, tables: &tables })?;
        pass.attend(layer, &q, self.settings)
    }
}

/// Returns the norm of the difference, relative to that of the values on the CPU.
fn relative_error(gpu: &Tensor, cpu: &Tensor) -> Result<f32> {
    let gpu = gpu.to_device(&Device::Cpu)?.to_dtype(DType::F32)?;
    let norm = |x: &Tensor| x.sqr()?.sum_all()?.sqrt()?.to_scalar::<f32>();
    Ok(norm(&(gpu - cpu)?)? / norm(cpu)?)
}

/// Run with `cargo test --features cuda -- --ignored on_a_gpu`.
#[test]
#[ignore = "needs a GPU and a build with CUDA"]
fn on_a_gpu_layers_match_cpu() {
    let device = Device::new_cuda_with_stream(0).unwrap();
    for (dtype, tolerance) in [(DType::F32, 1e-6), (DType::F16, 1e-3), (DType::BF16, 1e-2)] {
        let random = |rows, columns| random([rows, 1, columns], 0.5, dtype)?.squeeze(1);
        let (x, y, weight) =
            (random(70, 516).unwrap(), random(70, 516).unwrap(), random(1, 516).unwrap());
        let weight = weight.squeeze(0).unwrap();
        let gpu = |x: &Tensor| x.to_device(&device).unwrap();
        let half = |x: &Tensor| gpu(x).to_dtype(dtype).unwrap();
        let normed = |x: &Tensor, w: &Tensor| rms_norm_to(x, w, 1e-5, dtype).unwrap();
        let pairs = [
            (
                "rms_norm",
                normed(&gpu(&x), &gpu(&weight)),
                rms_norm_to(&x, &weight, 1e-5, DType::F32),
            ),
            ("swiglu", swiglu(&half(&x), &half(&y)).unwrap(), swiglu(&x, &y)),
            ("add", add_to_sum(&gpu(&x), &half(&y)).unwrap(), add_to_sum(&x, &y)),
            ("add_bias", add_bias(&gpu(&x), &gpu(&weight)).unwrap(), add_bias(&x, &weight)),
            ("softmax", softmax(&gpu(&x)).unwrap(), softmax(&x)),
        ];
        for (name, on_gpu, on_cpu) in pairs {
            let error = relative_error(&on_gpu, &on_cpu.unwrap()).unwrap();
            assert!(error < tolerance, "{name}, {dtype:?}: {error}");
        }
    }
}

/// Run with `cargo test --features cuda -- --ignored on_a_gpu`.
#[test]
#[ignore = "needs a GPU and a build with CUDA"]
fn on_a_gpu_attention_matches_cpu() {
    let device = Device::new_cuda_with_stream(0).unwrap();
    let cases = [
        (DType::F32, 40, 6, 1e-5),
        (DType::F16, 80, 2, 2e-3),
        // Scores of -200 have an error of 1e-5 in f32.
        (DType::F32, 256, 20, 1e-4),
        (DType::BF16, 64, 6, 1e-2),
        (DType::BF16, 128, 2, 1e-2),
    ];
    for (dtype, head_size, heads, tolerance) in cases {
        let device = device.clone();
        let shape = CacheShape { layers: 2, kv_heads: KV_HEADS, head_size, dtype, device };
        let stages: [&[usize]; 6] =
            [&[3], &[70, 5, 1], &[40, 30, 90], &[200, 1], &[1200, 1], &[640, 3]];
        let sequences = stages.map(|stages| TestSequence::new(stages, heads, &shape).unwrap());
        for window in [None, Some(50)] {
            for bidirectional in [vec![], vec![0..2, 75..120]] {
                let test = TestAttention {
                    shape: &shape,
                    heads,
                    settings: AttentionSettings { scale: 0.2, window },
                    bidirectional: &bidirectional,
                };
                let cpu = sequences.iter().map(|sequence| test.on_cpu(sequence).unwrap());
                let cpu = Tensor::cat(&cpu.collect::<Vec<_>>(), 0).unwrap();
                let error = relative_error(&test.on_gpu(&sequences).unwrap(), &cpu).unwrap();
                assert!(error < tolerance, "{dtype:?}, {head_size}, {window:?}: {error}");
            }
        }
    }
}
