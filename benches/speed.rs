//! How fast a panel of a given size computes on a device, its weights being random: images per second of the
//! encoder, tokens per second of prompts read and of evaluations written, and the peak of memory.
//!
//! ```text
//! cargo bench --bench speed                                  a small panel on the CPU
//! cargo bench --bench speed -- 7b cpu bf16                   7 billion parameters, as LLaVA 1.5's
//! .ci/cuda/build bench --bench speed -- 7b cuda bf16         the same on a GPU
//! ```
//!
//! A panel of four members that differ in their last layer: one trunk reads a prompt once, and writes four
//! evaluations at a time. On a GPU the memory is what `nvidia-smi` tells of the device after each step.

#![expect(clippy::print_stdout, reason = "figures are said")]

use std::process::Command;
use std::time::Instant;

use acem3::support::device::Placement;
use acem3::support::device::{DeviceChoice, DtypeChoice};
use acem3::support::threads;
use acem3::training::encoders::peak_memory::peak;
use acem3_experts::decoder::{DecoderConfig, Head, KvCache, Row, Trunk};
use acem3_projector::{Projector, ProjectorConfig, ProjectorKind};
use acem3_vision::published::known;
use acem3_vision::{SelectFeature, Selection, VisionTower};
use anyhow::{Context, Result, bail};
use candle::{D, DType, Device, Shape, Tensor};
use candle_nn::VarBuilder;
use candle_nn::var_builder::SimpleBackend;
use clap::ValueEnum as _;
use serde_json::json;

/// Members of a panel, each of which writes at the same time.
const MEMBERS: usize = 4;
/// How often each measurement is repeated after one that is thrown away; the median is told.
const REPEATS: usize = 5;
/// Images that are looked at together.
const IMAGES: usize = 8;
/// Tokens of a prompt beside those of its image, and tokens that are written.
const PROMPT: usize = 1024;
const WRITTEN: usize = 64;

/// Weights drawn where they are asked for: matrices in the panel's type, all else in f32, as a panel's own are.
struct Drawn(Placement);

impl SimpleBackend for Drawn {
    fn get(
        &self,
        shape: Shape,
        name: &str,
        _: candle_nn::Init,
        _: DType,
        _: &Device,
    ) -> candle::Result<Tensor> {
        let Placement { device, dtype } = &self.0;
        match shape.rank() {
            1 if name.ends_with("weight") => Tensor::ones(shape, DType::F32, device),
            2 if !name.contains("position") => {
                Tensor::randn(0f32, 0.02, shape, device)?.to_dtype(*dtype)
            }
            _ => Tensor::randn(0f32, 0.02, shape, device),
        }
    }

    fn get_unchecked(&self, name: &str, _: DType, _: &Device) -> candle::Result<Tensor> {
        candle::bail!("{name}: a shape is needed")
    }

    fn contains_tensor(&self, name: &str) -> bool {
        // Not in blocks.
        name.ends_with("weight") || name.ends_with("bias")
    }
}

/// A panel of random weights.
struct Panel {
    place: Placement,
    tower: VisionTower,
    projector: Projector,
    trunk: Trunk,
    heads: Vec<Head>,
    hidden: usize,
}

fn sizes(name: &str) -> Result<(&'static str, serde_json::Value)> {
    let (encoder, hidden, inner, layers, heads) = match name {
        "small" => ("clip-vit-b32", 512, 1408, 8, 8),
        "1b" => ("clip-vit-l14-336", 2048, 5632, 22, 32),
        "7b" => ("clip-vit-l14-336", 4096, 11_008, 32, 32),
        other => bail!("`{other}` is no size\nhint: small, 1b and 7b are"),
    };
    let decoder = json!({"vocab_size": 32_000, "hidden_size": hidden, "intermediate_size": inner,
        "num_hidden_layers": layers, "num_attention_heads": heads, "num_key_value_heads": heads,
        "max_position_embeddings": 4096, "rms_norm_eps": 1e-5});
    Ok((encoder, decoder))
}

impl Panel {
    fn drawn(size: &str, place: &Placement) -> Result<Self> {
        let (encoder, decoder) = sizes(size)?;
        let decoder: DecoderConfig = serde_json::from_value(decoder)?;
        let mut vision = known(encoder)
            .context("no such encoder")?
            .published()
            .config;
        vision.form.post_norm = false;
        let selection = Selection {
            select_layer: -2,
            select_feature: SelectFeature::Patch,
            post_norm: false,
        };
        let projector = ProjectorConfig {
            kind: ProjectorKind::Mlp2xGelu,
            vision_hidden_size: vision.hidden_size,
            hidden_size: decoder.hidden_size,
        };
        let drawn = Box::new(Drawn(place.clone()));
        let vb = VarBuilder::from_backend(drawn, DType::F32, place.device.clone());
        let depth = decoder.num_hidden_layers - 1;
        let heads = (0..MEMBERS).map(|_| Head::load(&vb, &decoder, depth));
        Ok(Self {
            place: place.clone(),
            tower: VisionTower::load(&vb.pp("tower"), &vision, selection)?,
            projector: Projector::load(&vb.pp("projector"), &projector)?,
            trunk: Trunk::load(&vb, &decoder, depth)?,
            heads: heads.collect::<candle::Result<_>>()?,
            hidden: decoder.hidden_size,
        })
    }

    /// Tokens of one image.
    fn look(&self, images: usize) -> Result<Tensor> {
        let side = self.tower.config().image_size;
        let pixels = Tensor::randn(0f32, 1.0, (images, 3, side, side), &self.place.device)?;
        Ok(self.projector.forward(&self.tower.forward(&pixels)?)?)
    }

    /// Reads a prompt: the caches of the trunk and of each head, and the last hidden states.
    fn read(&self, prompt: &Tensor) -> Result<(KvCache, Vec<KvCache>)> {
        let tokens = prompt.dim(0)?;
        let mut below = KvCache::new(self.trunk.depth());
        let row = |cache| Row { tokens, cache };
        let middle = self.trunk.forward_cached(prompt, &mut [row(&mut below)])?;
        let mut above = Vec::new();
        for head in &self.heads {
            let mut cache = KvCache::new(head.depth());
            let last = head.forward_cached(
                &middle,
                &mut [Row {
                    tokens,
                    cache: &mut cache,
                }],
            )?;
            head.logits(&last.narrow(0, tokens - 1, 1)?)?;
            above.push(cache);
        }
        Ok((below, above))
    }

    /// Writes after a prompt, all members at once.
    fn write(&self, (below, above): &(KvCache, Vec<KvCache>)) -> Result<()> {
        let mut below = vec![below.clone(); MEMBERS];
        let mut above = above.clone();
        let mut next = vec![1u32; MEMBERS];
        for _ in 0..WRITTEN {
            let row = |cache| Row { tokens: 1, cache };
            let mut rows: Vec<Row> = below.iter_mut().map(row).collect();
            let middle = self
                .trunk
                .forward_cached(&self.trunk.embed(&next)?, &mut rows)?;
            let mut logits = Vec::new();
            for (i, (head, cache)) in self.heads.iter().zip(&mut above).enumerate() {
                let last = head.forward_cached(&middle.narrow(0, i, 1)?, &mut [row(cache)])?;
                logits.push(head.logits(&last)?);
            }
            next = Tensor::cat(&logits, 0)?.argmax(D::Minus1)?.to_vec1()?;
        }
        Ok(())
    }
}

/// The median of the seconds that a piece of work takes.
fn seconds(device: &Device, work: impl Fn() -> Result<()>) -> Result<f64> {
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

/// Memory in use, in words.
fn memory(device: &Device) -> String {
    if device.is_cuda() {
        let ask = ["--query-gpu=memory.used", "--format=csv,noheader"];
        let told = Command::new("nvidia-smi").args(ask).output();
        let text = told.map(|told| String::from_utf8_lossy(&told.stdout).trim().to_owned());
        return text.unwrap_or_else(|_| "unknown: there is no nvidia-smi".to_owned());
    }
    let gigabytes = |bytes: u64| format!("{:.2} GB at most", bytes as f64 / 1e9);
    peak().map_or("unknown".to_owned(), gigabytes)
}

fn main() -> Result<()> {
    let mut args = std::env::args().skip(1).filter(|arg| arg != "--bench");
    let size = args.next().unwrap_or("small".to_owned());
    let device = args.next().unwrap_or("cpu".to_owned());
    let dtype = args.next().unwrap_or("f32".to_owned());
    let device: DeviceChoice = device.parse().map_err(anyhow::Error::msg)?;
    let dtype = DtypeChoice::from_str(&dtype, true).map_err(anyhow::Error::msg)?;
    threads::settle();
    let place = Placement::open(device, dtype)?;
    let panel = Panel::drawn(&size, &place)?;
    let at = &place.device;
    println!(
        "{size}, {:?}, {:?}; loaded: {}",
        at.location(),
        place.dtype,
        memory(at)
    );

    let looked = seconds(at, || panel.look(IMAGES).map(drop))?;
    let rate = IMAGES as f64 / looked;
    println!(
        "encoder: {rate:.2} images/s, {IMAGES} at a time; {}",
        memory(at)
    );

    let image = panel.look(1)?.squeeze(0)?;
    let text = Tensor::randn(0f32, 0.02, (PROMPT, panel.hidden), at)?;
    let prompt = Tensor::cat(&[&image, &text], 0)?;
    let tokens = prompt.dim(0)?;
    let read = seconds(at, || panel.read(&prompt).map(drop))?;
    let rate = tokens as f64 / read;
    println!(
        "prefill: {rate:.1} tokens/s, a prompt of {tokens}; {}",
        memory(at)
    );

    let caches = panel.read(&prompt)?;
    let wrote = seconds(at, || panel.write(&caches))?;
    let rate = (WRITTEN * MEMBERS) as f64 / wrote;
    println!(
        "decode: {rate:.1} tokens/s, {MEMBERS} members at a time; {}",
        memory(at)
    );
    Ok(())
}
