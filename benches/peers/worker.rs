//! Measures this program: reads jobs from standard input, writes seconds to standard output, as the
//! Python workers do.

use std::collections::HashMap;
use std::io::{BufRead as _, Write as _};
use std::path::Path;
use std::time::Instant;

use acem3::support::device::environment::{self, Workload};
use acem3_experts::decoder::{CachedSequence, Head, KvCache, Trunk};
use acem3_kernels::{BLOCK_TYPES, ROUNDED_SUFFIX, arrange_blocks};
use anyhow::{Context as _, Result, bail};
use candle::quantized::QTensor;
use candle::{D, DType, Device, Shape, Tensor};
use candle_nn::VarBuilder;
use candle_nn::var_builder::SimpleBackend;

use crate::model_files;

/// Runs jobs until the input ends.
pub(crate) fn run(folder: &Path, dtype: &str) -> Result<()> {
    environment::set_variables(Workload::Judging);
    let model = Model::load(folder, dtype)?;
    let mut output = std::io::stdout().lock();
    writeln!(output, "ready")?;
    output.flush()?;
    for line in std::io::stdin().lock().lines() {
        let line = line?;
        let mut words = line.split_whitespace();
        let name = words.next().unwrap_or_default();
        let sizes = words.map(str::parse).collect::<Result<Vec<usize>, _>>()?;
        match (name, sizes.as_slice()) {
            ("prefill", [tokens]) => {
                let start = Instant::now();
                model.process_prompts(1, *tokens)?;
                writeln!(output, "{}", start.elapsed().as_secs_f64())?;
            }
            ("check", [tokens]) => writeln!(output, "{}", model.process_prompts(1, *tokens)?.0[0])?,
            ("decode", [sequences, tokens, written]) => {
                writeln!(output, "{}", model.decode(*sequences, *tokens, *written)?)?;
            }
            _ => bail!("unknown job `{line}`"),
        }
        output.flush()?;
    }
    Ok(())
}

/// Tensors by name, with quantised matrices as packed rows.
pub(crate) struct Weights(pub(crate) HashMap<String, Tensor>);

impl Weights {
    /// Finds a tensor. Matrices in bf16 round their inputs, as in `acem3 judge --dtype bf16`.
    fn find(&self, name: &str) -> Option<&Tensor> {
        let rounded = || {
            let name = name.strip_suffix(ROUNDED_SUFFIX)?.strip_suffix('.')?;
            self.0.get(name).filter(|tensor| tensor.dtype() == DType::BF16)
        };
        self.0.get(name).or_else(rounded)
    }
}

impl SimpleBackend for Weights {
    fn get(
        &self,
        _: Shape,
        name: &str,
        _: candle_nn::Init,
        dtype: DType,
        device: &Device,
    ) -> candle::Result<Tensor> {
        self.get_unchecked(name, dtype, device)
    }

    fn get_unchecked(&self, name: &str, _: DType, _: &Device) -> candle::Result<Tensor> {
        match self.find(name) {
            Some(tensor) => Ok(tensor.clone()),
            None => candle::bail!("no tensor `{name}`"),
        }
    }

    fn contains_tensor(&self, name: &str) -> bool {
        self.find(name).is_some()
    }
}

struct Model {
    trunk: Trunk,
    head: Head,
}

impl Model {
    fn load(folder: &Path, dtype: &str) -> Result<Self> {
        let config = serde_json::from_value(model_files::decoder_config())?;
        let mut tensors = HashMap::new();
        for (name, values) in
            candle::safetensors::load(folder.join("model.safetensors"), &Device::Cpu)?
        {
            let (name, values) = convert(name, &values, dtype)?;
            tensors.insert(name, values);
        }
        let vb = VarBuilder::from_backend(Box::new(Weights(tensors)), DType::F32, Device::Cpu);
        Ok(Self { trunk: Trunk::load(&vb, &config, 8)?, head: Head::load(&vb, &config, 8)? })
    }

    /// Processes prompts one after the other. Returns the likeliest next tokens and the caches.
    fn process_prompts(
        &self,
        sequences: usize,
        tokens: usize,
    ) -> Result<(Vec<u32>, Vec<[KvCache; 2]>)> {
        let (mut next, mut caches) = (Vec::new(), Vec::new());
        for sequence in 0..sequences {
            let token = |i: usize| ((7 * i + 13 * sequence) % 1000 + 3) as u32;
            let ids: Vec<u32> = (0..tokens).map(token).collect();
            let mut cache = [KvCache::new(self.trunk.depth()), KvCache::new(self.head.depth())];
            next.push(self.process_prompt(&ids, &mut cache)?);
            caches.push(cache);
        }
        Ok((next, caches))
    }

    /// Processes a prompt as the program does: in the last layer, it computes only keys and values for all
    /// tokens but the last. Returns the likeliest next token.
    fn process_prompt(
        &self,
        tokens: &[u32],
        [trunk_cache, head_cache]: &mut [KvCache; 2],
    ) -> Result<u32> {
        let x = self.trunk.embed(tokens)?;
        let mut sequence = [CachedSequence::causal(tokens.len(), trunk_cache)];
        let x = self.trunk.forward_cached(&x, &mut sequence)?;
        let last = tokens.len() - 1;
        if last > 0 {
            let mut sequence = [CachedSequence::causal(last, &mut *head_cache)];
            self.head.fill_caches(&x.narrow(0, 0, last)?, &mut sequence)?;
        }
        let mut sequence = [CachedSequence::causal(1, head_cache)];
        let x = self.head.forward_cached(&x.narrow(0, last, 1)?, &mut sequence)?;
        Ok(self.next_tokens(&x)?[0])
    }

    /// Processes one token of each sequence. Returns the likeliest next tokens.
    fn forward(&self, tokens: &[u32], caches: &mut [[KvCache; 2]]) -> Result<Vec<u32>> {
        let mut trunk = Vec::new();
        let mut head = Vec::new();
        for [trunk_cache, head_cache] in caches.iter_mut() {
            trunk.push(CachedSequence::causal(1, trunk_cache));
            head.push(CachedSequence::causal(1, head_cache));
        }
        let x = self.trunk.forward_cached(&self.trunk.embed(tokens)?, &mut trunk)?;
        self.next_tokens(&self.head.forward_cached(&x, &mut head)?)
    }

    /// Returns the likeliest next token of each row.
    fn next_tokens(&self, hidden: &Tensor) -> Result<Vec<u32>> {
        Ok(self.head.logits(hidden)?.argmax(D::Minus1)?.to_vec1()?)
    }

    fn decode(&self, sequences: usize, tokens: usize, written: usize) -> Result<f64> {
        let (mut next, mut caches) = self.process_prompts(sequences, tokens)?;
        let start = Instant::now();
        for _ in 0..written {
            next = self.forward(&next, &mut caches)?;
        }
        Ok(start.elapsed().as_secs_f64())
    }
}

/// Converts a matrix to the type, and a vector to f32.
pub(crate) fn convert(name: String, values: &Tensor, dtype: &str) -> Result<(String, Tensor)> {
    let float = match dtype {
        _ if values.rank() == 1 => Some(DType::F32),
        "f32" => Some(DType::F32),
        "bf16" => Some(DType::BF16),
        "f16" => Some(DType::F16),
        _ => None,
    };
    if let Some(float) = float {
        return Ok((name, values.to_dtype(float)?));
    }
    let mut block_types = BLOCK_TYPES.into_iter();
    let (block_type, suffix) =
        block_types.find(|(_, suffix)| *suffix == dtype).context("unknown type of weights")?;
    let rows = values.dim(0)?;
    let bytes = QTensor::quantize(values, block_type)?.data()?.into_owned();
    let row_bytes = bytes.len() / rows;
    let bytes = Tensor::from_vec(bytes, (rows, row_bytes), &Device::Cpu)?;
    Ok((format!("{name}.{suffix}"), arrange_blocks(&bytes, block_type)?))
}
