//! Judges the cases with the engine of this program: reads jobs from standard input, writes seconds
//! to standard output. Jobs: see `cases_worker.py`.

use std::collections::HashMap;
use std::fs;
use std::io::{BufRead as _, Write as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

use acem3::support::device::environment::{self, Workload};
use acem3_experts::Rating;
use acem3_experts::decoder::{Head, Trunk};
use acem3_experts::generate::{Engine, GenerationSettings, ImageTokens, PrefixCache};
use acem3_projector::{Projector, ProjectorConfig, ProjectorKind};
use acem3_vision::{ImageLimits, ImageProcessor, SelectFeature, Selection, VisionTower, decode};
use anyhow::{Context as _, Result};
use candle::{DType, Device, Tensor};
use candle_nn::VarBuilder;

use super::files::{MEMBERS, encoder};
use super::prompts::{BenchCase, Prompts};
use super::{TRUNK_LAYERS, WRITTEN_TOKENS, texts_file};
use crate::model_files::{HIDDEN, decoder_config};
use crate::worker::{Weights, convert};

/// Runs jobs until the input ends.
pub(crate) fn run(folder: &Path, dtype: &str) -> Result<()> {
    environment::set_variables(Workload::Judging);
    let panel = BenchPanel::load(folder, dtype)?;
    let texts_file = texts_file(folder, "acem3", dtype);
    let mut output = std::io::stdout().lock();
    writeln!(output, "ready")?;
    output.flush()?;
    for line in std::io::stdin().lock().lines() {
        let line = line?;
        let cases = line.split_whitespace().nth(1).context("no number of cases")?.parse()?;
        let start = Instant::now();
        let texts = rayon::scope(|_| panel.judge(cases))?;
        let seconds = start.elapsed().as_secs_f64();
        fs::write(&texts_file, texts.join("\n"))?;
        writeln!(output, "{seconds}")?;
        output.flush()?;
    }
    Ok(())
}

/// Loads tensors from a safetensors file, with the matrices in a type.
fn load_weights(path: &Path, dtype: &str) -> Result<VarBuilder<'static>> {
    let mut tensors = HashMap::new();
    for (name, values) in candle::safetensors::load(path, &Device::Cpu)? {
        let is_matrix = values.rank() == 2 && !name.contains("position");
        let (name, values) = convert(name, &values, if is_matrix { dtype } else { "f32" })?;
        tensors.insert(name, values);
    }
    Ok(VarBuilder::from_backend(Box::new(Weights(tensors)), DType::F32, Device::Cpu))
}

/// Vision tower and projector.
pub(crate) struct ImageEncoder {
    processor: ImageProcessor,
    tower: VisionTower,
    projector: Projector,
}

impl ImageEncoder {
    /// Loads both from the folder of the weights. The projector is never quantised.
    pub(crate) fn load(folder: &Path, dtype: &str) -> Result<Self> {
        let encoder = encoder()?;
        let selection =
            Selection { select_layer: -2, select_feature: SelectFeature::Patch, post_norm: false };
        let projector = ProjectorConfig {
            kind: ProjectorKind::Mlp2xGelu,
            vision_hidden_size: encoder.config.hidden_size,
            hidden_size: HIDDEN,
        };
        let tower = load_weights(&folder.join("tower/model.safetensors"), dtype)?;
        let projector_dtype = if dtype == "bf16" { dtype } else { "f32" };
        let weights = load_weights(&folder.join("projector.safetensors"), projector_dtype)?;
        Ok(Self {
            processor: encoder.processor,
            tower: VisionTower::load(&tower, &encoder.config, selection)?,
            projector: Projector::load(&weights, &projector)?,
        })
    }

    /// Reads, decodes and preprocesses an image file.
    pub(crate) fn prepare(&self, path: &Path) -> Result<Tensor> {
        let image = decode(&fs::read(path)?, &ImageLimits::default())?;
        Ok(self.processor.preprocess(&image)?)
    }

    /// Returns the side of the prepared images in pixels.
    pub(crate) fn side(&self) -> usize {
        self.tower.config().image_size
    }

    /// Returns the patch features of prepared images, `(b, p, c_v)`.
    pub(crate) fn features(&self, pixel_values: &Tensor) -> Result<Tensor> {
        Ok(self.tower.forward(pixel_values)?)
    }

    /// Returns the image tokens of prepared images, `(b, p, c)`.
    fn encode(&self, pixel_values: &Tensor) -> Result<Tensor> {
        Ok(self.projector.forward(&self.features(pixel_values)?)?)
    }
}

/// The four members, as a panel has them.
struct BenchPanel {
    folder: PathBuf,
    cases: Vec<BenchCase>,
    prompts: Prompts,
    images: ImageEncoder,
    engine: Engine,
}

impl BenchPanel {
    fn load(folder: &Path, dtype: &str) -> Result<Self> {
        let config = serde_json::from_value(decoder_config())?;
        let trunk = load_weights(&folder.join("trunk.safetensors"), dtype)?;
        let trunk = Trunk::load(&trunk, &config, TRUNK_LAYERS)?;
        let heads = (0..MEMBERS).map(|member| {
            let file = folder.join(format!("member-{member}/head.safetensors"));
            Ok(Head::load(&load_weights(&file, dtype)?, &config, TRUNK_LAYERS)?)
        });
        let heads = heads.collect::<Result<Vec<_>>>()?;
        let prompts = Prompts::new(&fs::read(folder.join("tokenizer.json"))?)?;
        let settings = GenerationSettings { analysis_tokens: WRITTEN_TOKENS, scores_only: false };
        let engine = Engine::new(trunk, heads, prompts.tokenizer.clone(), &config, settings)?;
        Ok(Self {
            folder: folder.to_owned(),
            cases: serde_json::from_slice(&fs::read(folder.join("cases.json"))?)?,
            prompts,
            images: ImageEncoder::load(folder, dtype)?,
            engine,
        })
    }

    /// Judges the first cases in both orders. Returns the texts of the three experts and of the
    /// conclusion model for each case and order.
    fn judge(&self, cases: usize) -> Result<Vec<String>> {
        let mut prefix_cache = PrefixCache::default();
        let mut passes = Vec::new();
        let mut tasks = Vec::new();
        for case in self.cases.iter().take(cases) {
            let pixel_values = self.images.prepare(&self.folder.join(&case.image))?;
            let tokens = self.images.encode(&pixel_values.unsqueeze(0)?)?.squeeze(0)?;
            let image = Arc::new(ImageTokens { key: case.image.clone(), tokens });
            for swapped in [false, true] {
                tasks.extend(self.prompts.expert_tasks(case, swapped, Some(&image))?);
                passes.push((case, swapped, image.clone()));
            }
        }
        let texts = self.engine.generate(&tasks, &mut prefix_cache)?;
        let texts = texts.into_iter().map(|ratings| Ok(first_text(ratings?)));
        let texts = texts.collect::<Result<Vec<_>>>()?;
        let experts: Vec<&[String]> = texts.chunks(MEMBERS - 1).collect();
        let tasks = passes.iter().zip(&experts).map(|((case, swapped, image), texts)| {
            self.prompts.conclusion_task(case, *swapped, Some(image), texts)
        });
        let tasks = tasks.collect::<Result<Vec<_>>>()?;
        let conclusions = self.engine.generate(&tasks, &mut prefix_cache)?;
        let mut all = Vec::new();
        for (experts, conclusion) in experts.into_iter().zip(conclusions) {
            all.extend_from_slice(experts);
            all.push(first_text(conclusion?));
        }
        Ok(all)
    }
}

/// Returns the text before the first score.
fn first_text(ratings: Vec<Rating>) -> String {
    ratings.into_iter().next().map(|rating| rating.analysis).unwrap_or_default()
}
