//! Inference speed of a panel with random weights: images per second of the encoder, tokens per
//! second of prefill and decode, and the memory in use.
//!
//! ```text
//! cargo bench --bench speed                             a small panel on the CPU
//! cargo bench --bench speed -- 7b cpu bf16              7 billion parameters, as in LLaVA 1.5
//! .ci/cuda/build bench --bench speed -- 7b cuda bf16    the same on a GPU
//! ```
//!
//! The panel has four members that differ in their last layer. The trunk prefills a prompt once,
//! and the four members decode together. On a CPU the memory is the peak of the process, on a GPU
//! the value that `nvidia-smi` reports after each step.

#![expect(clippy::print_stdout, reason = "the measurements are the output")]

use std::process::Command;
use std::time::Instant;

use acem3::support::device::Placement;
use acem3::support::device::environment::{self, Workload};
use acem3::support::device::{DeviceChoice, DtypeChoice};
use acem3::training::comparisons::encoders::peak_memory::peak;
use acem3_experts::decoder::{CachedSequence, DecoderConfig, Head, KvCache, Trunk};
use acem3_projector::{Projector, ProjectorConfig, ProjectorKind};
use acem3_vision::published::encoder_by_name;
use acem3_vision::{SelectFeature, Selection, VisionTower};
use anyhow::{Context, Result, bail};
use candle::{D, DType, Device, Shape, Tensor};
use candle_nn::VarBuilder;
use candle_nn::var_builder::SimpleBackend;
use clap::ValueEnum as _;
use serde_json::json;

/// Members of the panel. They decode together.
const MEMBERS: usize = 4;
/// Timed repetitions of each measurement, after one warmup run. The program prints the median.
const REPEATS: usize = 5;
/// Images per batch.
const IMAGES: usize = 8;
/// Text tokens of the prompt.
const PROMPT_TOKENS: usize = 1024;
/// Tokens that each member generates.
const DECODED_TOKENS: usize = 64;

/// Generates weights when a layer loads them: matrices in the dtype of the panel, others in f32.
struct RandomWeights(Placement);

impl SimpleBackend for RandomWeights {
    fn get(
        &self,
        shape: Shape,
        name: &str,
        _: candle_nn::Init,
        _: DType,
        _: &Device,
    ) -> candle::Result<Tensor> {
        let Placement { device, dtype, .. } = &self.0;
        match shape.rank() {
            1 if name.ends_with("weight") => Tensor::ones(shape, DType::F32, device),
            2 if !name.contains("position") => {
                Tensor::randn(0f32, 0.02, shape, device)?.to_dtype(*dtype)
            }
            _ => Tensor::randn(0f32, 0.02, shape, device),
        }
    }

    fn get_unchecked(&self, name: &str, _: DType, _: &Device) -> candle::Result<Tensor> {
        candle::bail!("{name}: cannot generate a weight without a shape")
    }

    fn contains_tensor(&self, name: &str) -> bool {
        // Other names belong to quantised weights, and the panel has no adapters.
        (name.ends_with("weight") || name.ends_with("bias")) && !name.contains(".lora_")
    }
}

/// A panel with random weights.
struct RandomPanel {
    placement: Placement,
    tower: VisionTower,
    projector: Projector,
    trunk: Trunk,
    heads: Vec<Head>,
    hidden: usize,
}

/// Returns the encoder name and the decoder configuration of a panel size.
fn panel_size(name: &str) -> Result<(&'static str, serde_json::Value)> {
    let (encoder, hidden, intermediate, layers, heads) = match name {
        "small" => ("clip-vit-b32", 512, 1408, 8, 8),
        "1b" => ("clip-vit-l14-336", 2048, 5632, 22, 32),
        "7b" => ("clip-vit-l14-336", 4096, 11_008, 32, 32),
        other => bail!("unknown size `{other}`\nhint: pass small, 1b or 7b"),
    };
    let decoder = json!({"vocab_size": 32_000, "hidden_size": hidden,
        "intermediate_size": intermediate, "num_hidden_layers": layers,
        "num_attention_heads": heads, "num_key_value_heads": heads,
        "max_position_embeddings": 4096, "rms_norm_eps": 1e-5});
    Ok((encoder, decoder))
}

impl RandomPanel {
    fn new(size: &str, placement: &Placement) -> Result<Self> {
        let (encoder, decoder) = panel_size(size)?;
        let decoder: DecoderConfig = serde_json::from_value(decoder)?;
        let mut vision =
            encoder_by_name(encoder).context("unknown encoder")?.published_encoder().config;
        vision.variant.post_norm = false;
        let selection =
            Selection { select_layer: -2, select_feature: SelectFeature::Patch, post_norm: false };
        let projector = ProjectorConfig {
            kind: ProjectorKind::Mlp2xGelu,
            vision_hidden_size: vision.hidden_size,
            hidden_size: decoder.hidden_size,
        };
        let weights = Box::new(RandomWeights(placement.clone()));
        let vb = VarBuilder::from_backend(weights, DType::F32, placement.device.clone());
        let depth = decoder.num_hidden_layers - 1;
        let heads = (0..MEMBERS).map(|_| Head::load(&vb, &decoder, depth));
        Ok(Self {
            placement: placement.clone(),
            tower: VisionTower::load(&vb.pp("tower"), &vision, selection)?,
            projector: Projector::load(&vb.pp("projector"), &projector)?,
            trunk: Trunk::load(&vb, &decoder, depth)?,
            heads: heads.collect::<candle::Result<_>>()?,
            hidden: decoder.hidden_size,
        })
    }

    /// Encodes random images to image tokens.
    fn encode(&self, images: usize) -> Result<Tensor> {
        let side = self.tower.config().image_size;
        let pixels = Tensor::randn(0f32, 1.0, (images, 3, side, side), &self.placement.device)?;
        Ok(self.projector.forward(&self.tower.forward(&pixels)?)?)
    }

    /// Prefills a prompt. Returns the KV caches of the trunk and of each head.
    fn prefill(&self, prompt: &Tensor) -> Result<(KvCache, Vec<KvCache>)> {
        let tokens = prompt.dim(0)?;
        let mut trunk_cache = KvCache::new(self.trunk.depth());
        let sequence = |cache| CachedSequence::causal(tokens, cache);
        let hidden = self.trunk.forward_cached(prompt, &mut [sequence(&mut trunk_cache)])?;
        let mut head_caches = Vec::new();
        for head in &self.heads {
            let mut cache = KvCache::new(head.depth());
            let states =
                head.forward_cached(&hidden, &mut [CachedSequence::causal(tokens, &mut cache)])?;
            head.logits(&states.narrow(0, tokens - 1, 1)?)?;
            head_caches.push(cache);
        }
        Ok((trunk_cache, head_caches))
    }

    /// Decodes after a prompt, all members together.
    fn decode(&self, (trunk_cache, head_caches): &(KvCache, Vec<KvCache>)) -> Result<()> {
        let mut trunk_caches: Vec<KvCache> = (0..MEMBERS).map(|_| trunk_cache.fork()).collect();
        let mut head_caches: Vec<KvCache> = head_caches.iter().map(KvCache::fork).collect();
        let mut next = vec![1u32; MEMBERS];
        for _ in 0..DECODED_TOKENS {
            let sequence = |cache| CachedSequence::causal(1, cache);
            let mut sequences: Vec<CachedSequence> =
                trunk_caches.iter_mut().map(sequence).collect();
            let hidden = self.trunk.forward_cached(&self.trunk.embed(&next)?, &mut sequences)?;
            let mut logits = Vec::new();
            for (i, (head, cache)) in self.heads.iter().zip(&mut head_caches).enumerate() {
                let last = head.forward_cached(&hidden.narrow(0, i, 1)?, &mut [sequence(cache)])?;
                logits.push(head.logits(&last)?);
            }
            next = Tensor::cat(&logits, 0)?.argmax(D::Minus1)?.to_vec1()?;
        }
        Ok(())
    }
}

/// Returns the median time of `work` in seconds.
fn median_seconds(device: &Device, work: impl Fn() -> Result<()>) -> Result<f64> {
    let mut times = Vec::new();
    for repeat in 0..=REPEATS {
        let start = Instant::now();
        work()?;
        device.synchronize()?;
        if repeat > 0 {
            times.push(start.elapsed().as_secs_f64());
        }
    }
    times.sort_by(f64::total_cmp);
    times.get(REPEATS / 2).copied().context("no measurement")
}

/// Describes the memory in use.
fn describe_memory(device: &Device) -> String {
    if device.is_cuda() {
        let query = ["--query-gpu=memory.used", "--format=csv,noheader"];
        let output = Command::new("nvidia-smi").args(query).output();
        let text = output.map(|output| String::from_utf8_lossy(&output.stdout).trim().to_owned());
        return text.unwrap_or_else(|_| "memory unknown: cannot run nvidia-smi".to_owned());
    }
    let gigabytes = |bytes: u64| format!("peak {:.2} GB", bytes as f64 / 1e9);
    peak().map_or("memory unknown".to_owned(), gigabytes)
}

fn main() -> Result<()> {
    let mut args = std::env::args().skip(1).filter(|arg| arg != "--bench");
    let size = args.next().unwrap_or("small".to_owned());
    let device = args.next().unwrap_or("cpu".to_owned());
    let dtype = args.next().unwrap_or("f32".to_owned());
    let device: DeviceChoice = device.parse().map_err(anyhow::Error::msg)?;
    let dtype = DtypeChoice::from_str(&dtype, true).map_err(anyhow::Error::msg)?;
    environment::set_variables(Workload::Judging);
    let placement = Placement::open(&device, dtype)?;
    let panel = RandomPanel::new(&size, &placement)?;
    let device = &placement.device;
    println!(
        "{size}, {:?}, {:?}; loaded: {}",
        device.location(),
        placement.dtype,
        describe_memory(device)
    );

    let encode_seconds = median_seconds(device, || panel.encode(IMAGES).map(drop))?;
    let rate = IMAGES as f64 / encode_seconds;
    println!("encoder: {rate:.2} images/s, batch of {IMAGES}; {}", describe_memory(device));

    let image = panel.encode(1)?.squeeze(0)?;
    let text = Tensor::randn(0f32, 0.02, (PROMPT_TOKENS, panel.hidden), device)?;
    let prompt = Tensor::cat(&[&image, &text], 0)?;
    let tokens = prompt.dim(0)?;
    let prefill_seconds = median_seconds(device, || panel.prefill(&prompt).map(drop))?;
    let rate = tokens as f64 / prefill_seconds;
    println!("prefill: {rate:.1} tokens/s, prompt of {tokens} tokens; {}", describe_memory(device));

    let caches = panel.prefill(&prompt)?;
    let decode_seconds = median_seconds(device, || panel.decode(&caches))?;
    let rate = (DECODED_TOKENS * MEMBERS) as f64 / decode_seconds;
    println!("decode: {rate:.1} tokens/s, {MEMBERS} members together; {}", describe_memory(device));
    Ok(())
}
