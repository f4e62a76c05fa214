//! Compares encoders by panels: trains a projector for each encoder under the same frozen decoder
//! with the same budget, and judges held-out cases with the resulting panel.

use std::cmp::Ordering;
use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};

use acem3_conclusion::compare_scores;
use acem3_experts::train::Parameters;
use acem3_experts::{Aspect, ModelConfig};
use acem3_projector::ProjectorConfig;
use anyhow::{Context, Result};
use candle::{DType, Device, Tensor};

use super::EncoderTestConfig;
use super::candidate::{Candidate, TOWER};
use super::features::encode_images;
use crate::checkpoints::hub::HubDownloads;
use crate::checkpoints::panel::files::PanelFiles;
use crate::checkpoints::panel::spec::{PANEL_FILE, PanelSpec, TOKENIZER_FILE};
use crate::checkpoints::safetensors::write as write_tensors;
use crate::judging::panel::PanelJudge;
use crate::support::device::Placement;
use crate::support::files::atomic_file;
use crate::training::encoders::encoder_comparison::{
    EncoderComparison, EncoderRow, MeasuredValues,
};
use crate::training::encoders::peak_memory;
use crate::training::measurement::test_pair::{ImageCondition, judge_pairs};
use crate::training::measurement::test_sets::{self, TestSet};
use crate::training::{
    AdaptedModel, Precision, StageConfig, StageKind, TrainConfig, TrainPaths, TrainingProgress,
    adapt,
};

/// Type of this comparison, and the name of its result files.
pub const MEASURE: &str = "judge";
/// Prefix of the projector in the weights of a member and of a training.
const PROJECTOR: &str = "model.mm_projector.";
/// File with the vision tower and the projector of a panel.
const TOWER_FILE: &str = "eyes.safetensors";
/// Number of images whose encoding is timed.
const TIMED_IMAGES: usize = 64;
/// Index of the member that trains the projector: medical knowledge, whose evaluations depend on
/// the image.
const MEMBER: usize = 1;

/// Training budget of a projector.
#[derive(Clone, Debug)]
pub struct ProjectorBudget {
    /// Optimizer steps.
    pub steps: u64,
    /// Sequences per step.
    pub batch: usize,
    /// Peak learning rate.
    pub learning_rate: f64,
}

/// Training of the projectors, equal for all encoders.
pub struct ProjectorTraining<'a> {
    /// Training budget of each projector.
    pub budget: ProjectorBudget,
    /// Output folder, with one folder per encoder.
    pub out: &'a Path,
    /// Progress output and interruption.
    pub progress: &'a TrainingProgress,
}

/// Trains a projector for each encoder and judges the held-out part with it. Writes panels and
/// metrics to folders in the output folder.
pub fn compare(
    encoders: &[Candidate],
    config: &EncoderTestConfig,
    training: &ProjectorTraining,
    log: &dyn Fn(&str),
) -> Result<EncoderComparison> {
    let held_out = match &config.data {
        Some(data) => test_sets::slake(data, config.test_count, config.seed)?,
        None => test_sets::phantoms(config.test_count, config.seed)?,
    };
    let base = BasePanel::embedded()?;
    let mut rows = Vec::new();
    for (i, encoder) in encoders.iter().enumerate() {
        log(&format!("{}: training a projector", encoder.name));
        let paths = TrainPaths {
            out: training.out.join(format!("encoder-{}", i + 1)),
            data: config.data.clone(),
            device: Device::Cpu,
        };
        let measure = || {
            let panel = base.train_projector(encoder, training, config.seed, &paths)?;
            log(&format!("{}: judging {}", encoder.name, held_out.name));
            judge_held_out(encoder, &panel, &held_out)
        };
        rows.push(peak_memory::measure_peak(measure)?);
    }
    let description = format!(
        "one projector per encoder, {} steps with batch size {}, under the embedded panel's frozen decoder",
        training.budget.steps, training.budget.batch
    );
    Ok(EncoderComparison::new(MEASURE, description, held_out.name, rows))
}

/// Judges the test set with an encoder's panel.
fn judge_held_out(encoder: &Candidate, panel: &Path, set: &TestSet) -> Result<EncoderRow> {
    let files = PanelFiles::Folder(panel.to_owned());
    let mut judge = PanelJudge::load(&files, &Placement::cpu(), HubDownloads::default())?;
    let verdicts = judge_pairs(&mut judge, &set.pairs, ImageCondition::Original, &|_| Ok(()))?;
    let mut overall: MeasuredValues = Vec::new();
    let mut aspects: [MeasuredValues; 3] = Default::default();
    for ((pair, known), verdict) in set.pairs.iter().zip(&set.known_orders).zip(&verdicts) {
        let accuracy = |judged: Ordering, known| f64::from(u8::from(judged == known));
        // An unscored pair counts as wrong, because rows must contain the same pairs.
        let value = verdict.as_ref().map_or(0.0, |v| {
            let order =
                if set.is_exact { v.preference() } else { compare_scores(v.expected_scores()) };
            accuracy(order, known.order)
        });
        overall.push((pair.cluster.clone(), value));
        for ((values, aspect), known) in aspects.iter_mut().zip(Aspect::ALL).zip(known.aspects) {
            if let Some(known) = known {
                let judged = verdict.as_ref().ok().map(|v| compare_scores(v.aspect_scores(aspect)));
                values.push((
                    pair.cluster.clone(),
                    judged.map_or(0.0, |judged| accuracy(judged, known)),
                ));
            }
        }
    }
    let name = if set.is_exact { "order accuracy" } else { "reference preferred" };
    let mut values = vec![(name.to_owned(), overall)];
    let by_aspect = Aspect::ALL.into_iter().zip(aspects);
    values.extend(
        by_aspect.map(|(aspect, values)| (format!("  order accuracy, {}", aspect.name()), values)),
    );
    let timed: Vec<_> = set.pairs.iter().take(TIMED_IMAGES).collect();
    let images: Vec<_> = timed.iter().map(|pair| &pair.image.decoded).collect();
    let seconds = encode_images(encoder, &images)?.seconds;
    Ok(EncoderRow {
        images_per_second: images.len() as f64 / seconds.max(1e-9),
        parameters: encoder.parameters(),
        hub: encoder.hub.clone(),
        ..EncoderRow::new(&encoder.name, values)
    })
}

/// The panel whose decoder is used with all encoders.
struct BasePanel {
    spec: PanelSpec,
    tokenizer: Vec<u8>,
    /// Tensors by file, without the vision tower and the projector.
    files: BTreeMap<String, HashMap<String, Tensor>>,
}

impl BasePanel {
    /// Reads the embedded panel.
    fn embedded() -> Result<Self> {
        let files = PanelFiles::Embedded;
        let text = files.read(PANEL_FILE)?;
        let spec = PanelSpec::parse(std::str::from_utf8(&text)?)?;
        let mut tensors_by_file = BTreeMap::new();
        for name in spec.members.members().into_iter().flat_map(|(_, files)| files) {
            let bytes = files.read(name)?;
            let mut tensors = candle::safetensors::load_buffer(&bytes, &Device::Cpu)?;
            tensors.retain(|name, _| !name.starts_with(TOWER) && !name.starts_with(PROJECTOR));
            tensors_by_file.insert(name.clone(), tensors);
        }
        Ok(Self {
            tokenizer: files.read(TOKENIZER_FILE)?.into_owned(),
            files: tensors_by_file,
            spec,
        })
    }

    /// Trains a projector for an encoder and writes a panel with both. Returns its folder.
    fn train_projector(
        &self,
        encoder: &Candidate,
        training: &ProjectorTraining,
        seed: u64,
        paths: &TrainPaths,
    ) -> Result<PathBuf> {
        // Loading a random tower initialises its weights.
        encoder.tower()?;
        let mut config = self.config(encoder, &training.budget, seed);
        if paths.data.is_some() {
            config.stages.iter_mut().for_each(|s| s.data_set_proportion = 1.0);
        }
        let member_files = self.spec.members.members()[MEMBER].1;
        let decoder = member_files.iter().filter_map(|name| self.files.get(name)).flatten();
        let decoder = decoder.map(|(name, tensor)| (name.clone(), tensor.clone()));
        let tower = encoder.weights.all().into_iter();
        let tower = tower.map(|(name, var)| (name, var.as_tensor().clone()));
        let initial = Parameters::from_tensors(decoder.chain(tower))?;
        let model = AdaptedModel {
            parameters: &initial,
            tokenizer: &self.tokenizer,
            member: MEMBER,
            completion_prefixes: &self.spec.completion_prefixes(),
        };
        let trained = adapt(&config, &model, paths, training.progress)?;
        let weights = trained.all().into_iter();
        let vision_weights =
            weights.filter(|(name, _)| name.starts_with(TOWER) || name.starts_with(PROJECTOR));
        let vision_weights: HashMap<String, Tensor> = vision_weights
            .map(|(name, var)| Ok((name, var.as_tensor().to_dtype(DType::F16)?)))
            .collect::<Result<_>>()?;
        self.write(&config, &vision_weights, &paths.out.join("panel"))
    }

    /// Writes a panel with these weights of the vision tower and the projector. Returns its folder.
    fn write(
        &self,
        config: &TrainConfig,
        vision_weights: &HashMap<String, Tensor>,
        folder: &Path,
    ) -> Result<PathBuf> {
        std::fs::create_dir_all(folder)
            .with_context(|| format!("cannot create {}", folder.display()))?;
        write_tensors(vision_weights, &folder.join(TOWER_FILE))?;
        for (name, tensors) in &self.files {
            write_tensors(tensors, &folder.join(name))?;
        }
        atomic_file::write_atomic(&folder.join(TOKENIZER_FILE), &self.tokenizer)?;
        let with_tower = |files: &[String]| {
            let tower = std::iter::once(TOWER_FILE.to_owned());
            tower.chain(files.iter().cloned()).collect()
        };
        let spec = PanelSpec {
            name: config.name.clone(),
            processor: config.processor(),
            model: config.model.clone(),
            members: self.spec.members.members().map(|(_, files)| with_tower(files)).into(),
            ..self.spec.clone()
        };
        let text = toml::to_string_pretty(&spec)?;
        atomic_file::write_atomic(&folder.join(PANEL_FILE), text.as_bytes())?;
        Ok(folder.to_owned())
    }

    /// Returns the training configuration of a projector.
    fn config(&self, encoder: &Candidate, budget: &ProjectorBudget, seed: u64) -> TrainConfig {
        let decoder = self.spec.model.decoder.clone();
        let frozen = [TOWER, "model.embed_tokens.", "model.layers.", "model.norm."];
        TrainConfig {
            name: format!("{} with encoder {}", self.spec.name, encoder.name),
            start: None,
            start_sha256: None,
            dialogue: self.spec.dialogue.clone(),
            seed,
            micro_batch: 4,
            dtype: Precision::F32,
            recomputes_activations: false,
            layout: self.spec.layout,
            rubric: self.spec.rubric,
            vocabulary: decoder.vocab_size,
            trunk_layers: decoder.num_hidden_layers.saturating_sub(1),
            processor: Some(encoder.processor.clone()),
            model: ModelConfig {
                vision: encoder.config.clone(),
                selection: encoder.selection,
                projector: ProjectorConfig {
                    vision_hidden_size: encoder.config.hidden_size,
                    ..self.spec.model.projector.clone()
                },
                decoder,
            },
            data_shares: BTreeMap::new(),
            optimizer: acem3_experts::train::AdamWConfig::default(),
            stages: vec![StageConfig {
                evaluations: None,
                name: "projector".to_owned(),
                kind: StageKind::Sft,
                steps: budget.steps,
                batch: budget.batch,
                learning_rate: budget.learning_rate,
                warmup: (budget.steps / 10).max(1),
                clip_norm: 1.0,
                validate_every: None,
                frozen: frozen.map(str::to_owned).to_vec(),
                frozen_layers: None,
                lora: None,
                data_set_proportion: 0.0,
                answer_proportion: 0.5,
                comparison_proportion: 0.0,
                quoting_proportion: 0.0,
                wrong_finding_proportion: 0.0,
                easy_proportion: 0.0,
                has_reward_token: false,
                members: Vec::new(),
                preferences: None,
            }],
        }
    }
}
