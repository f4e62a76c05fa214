//! The full comparison: for each encoder a projector, trained under the same frozen decoder with the
//! same budget, and a panel that looks through both and judges held-out cases.

use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};

use acem3_conclusion::compare as order_of;
use acem3_experts::train::Parameters;
use acem3_experts::{Aspect, ModelConfig};
use acem3_projector::ProjectorConfig;
use anyhow::{Context, Result};
use candle::{DType, Device, Tensor};

use super::EncoderTestConfig;
use super::candidate::{Candidate, TOWER};
use super::features::features;
use crate::checkpoints::hub::Downloads;
use crate::checkpoints::panel::files::PanelFiles;
use crate::checkpoints::panel::spec::{PANEL_FILE, PanelSpec, TOKENIZER_FILE};
use crate::checkpoints::safetensors::write as write_tensors;
use crate::judging::panel::PanelJudge;
use crate::support::device::Placement;
use crate::training::encoders::encoder_comparison::{
    EncoderComparison, EncoderRow, MeasuredValues,
};
use crate::training::encoders::peak_memory;
use crate::training::measurement::test_pair;
use crate::training::measurement::test_pair::ImageCondition;
use crate::training::measurement::test_sets;
use crate::training::measurement::test_sets::TestSet;
use crate::training::{
    AdaptedModel, Precision, StageConfig, StageKind, TrainConfig, TrainPaths, TrainingProgress,
    adapt,
};

const PROJECTOR: &str = "model.mm_projector.";
/// The file of what a panel looks through.
const EYES: &str = "eyes.safetensors";
/// Images whose encoding is timed.
const TIMED: usize = 64;
/// The member through whose texts the projector learns: the one that must look.
const MEMBER: usize = 1;

/// What each encoder gets.
#[derive(Clone, Debug)]
pub struct ProjectorBudget {
    /// Optimisation steps of the projector.
    pub steps: u64,
    /// Sequences in a step.
    pub batch: usize,
    /// Highest learning rate.
    pub rate: f64,
}

/// Trains a projector for each encoder and judges the held-out part with it. Panels and metrics go
/// to folders under `out`.
pub fn compare(
    encoders: &[Candidate],
    set: &EncoderTestConfig,
    (budget, out): (&ProjectorBudget, &Path),
    live: &TrainingProgress,
    say: &dyn Fn(&str),
) -> Result<EncoderComparison> {
    let held_out = match &set.data {
        Some(data) => test_sets::slake(data, set.test, set.seed)?,
        None => test_sets::phantoms(set.test, set.seed)?,
    };
    let base = BasePanel::embedded()?;
    let mut rows = Vec::new();
    for (i, encoder) in encoders.iter().enumerate() {
        say(&format!("{}: training its projector", encoder.name));
        let paths = TrainPaths {
            out: out.join(format!("encoder-{}", i + 1)),
            data: set.data.clone(),
            device: Device::Cpu,
        };
        let measure = || {
            let panel = base.look_through(encoder, (budget, set.seed), &paths, live)?;
            say(&format!("{}: judging {}", encoder.name, held_out.name));
            row(encoder, &panel, &held_out)
        };
        rows.push(peak_memory::watched(measure)?);
    }
    let words = format!(
        "a projector for each encoder, {} steps of {}, under the embedded panel's frozen decoder",
        budget.steps, budget.batch
    );
    Ok(EncoderComparison::new("judge", words, held_out.name, rows))
}

fn row(encoder: &Candidate, panel: &Path, set: &TestSet) -> Result<EncoderRow> {
    let files = PanelFiles::Folder(panel.to_owned());
    let mut judge = PanelJudge::open(&files, &Placement::cpu(), Downloads::default())?;
    let verdicts = test_pair::judge(&mut judge, &set.trials, ImageCondition::Own, &|_| Ok(()))?;
    let mut overall: MeasuredValues = Vec::new();
    let mut aspects: [MeasuredValues; 3] = Default::default();
    for ((trial, known), verdict) in set.trials.iter().zip(&set.known).zip(&verdicts) {
        let right = |told: std::cmp::Ordering, known| f64::from(u8::from(told == known));
        // A pair without a verdict is no right answer; rows must hold the same pairs.
        let value = verdict.as_ref().map_or(0.0, |v| {
            let order = if set.exact {
                v.order()
            } else {
                order_of(v.expected())
            };
            right(order, known.order)
        });
        overall.push((trial.cluster.clone(), value));
        for ((values, aspect), known) in aspects.iter_mut().zip(Aspect::ALL).zip(known.aspects) {
            if let Some(known) = known {
                let told = verdict.as_ref().ok().map(|v| order_of(v.aspect(aspect)));
                values.push((
                    trial.cluster.clone(),
                    told.map_or(0.0, |told| right(told, known)),
                ));
            }
        }
    }
    let name = if set.exact {
        "final order right"
    } else {
        "reference preferred"
    };
    let mut values = vec![(name.to_owned(), overall)];
    let named = Aspect::ALL.into_iter().zip(aspects);
    values
        .extend(named.map(|(aspect, values)| (format!("  {} order right", aspect.name()), values)));
    let timed: Vec<_> = set.trials.iter().take(TIMED).collect();
    let images: Vec<_> = timed.iter().map(|t| &t.image.decoded).collect();
    let seconds = features(encoder, &images)?.seconds;
    Ok(EncoderRow {
        images_per_second: images.len() as f64 / seconds.max(1e-9),
        parameters: encoder.parameters(),
        hub: encoder.hub.clone(),
        ..EncoderRow::new(&encoder.name, values)
    })
}

/// The panel whose decoder all encoders get.
struct BasePanel {
    spec: PanelSpec,
    tokenizer: Vec<u8>,
    /// Tensors by file, without what the panel looks through.
    files: BTreeMap<String, HashMap<String, Tensor>>,
}

impl BasePanel {
    fn embedded() -> Result<Self> {
        let files = PanelFiles::Embedded;
        let text = files.read(PANEL_FILE)?;
        let spec = PanelSpec::parse(std::str::from_utf8(&text)?)?;
        let mut read = BTreeMap::new();
        for name in spec.members.all().into_iter().flat_map(|(_, files)| files) {
            let bytes = files.read(name)?;
            let mut tensors = candle::safetensors::load_buffer(&bytes, &Device::Cpu)?;
            tensors.retain(|name, _| !name.starts_with(TOWER) && !name.starts_with(PROJECTOR));
            read.insert(name.clone(), tensors);
        }
        Ok(Self {
            tokenizer: files.read(TOKENIZER_FILE)?.into_owned(),
            files: read,
            spec,
        })
    }

    /// Trains a projector for an encoder and writes the panel that looks through both; its folder.
    fn look_through(
        &self,
        encoder: &Candidate,
        (budget, seed): (&ProjectorBudget, u64),
        paths: &TrainPaths,
        live: &TrainingProgress,
    ) -> Result<PathBuf> {
        // A random tower draws its weights when it is loaded.
        encoder.tower()?;
        let mut config = self.config(encoder, budget, seed);
        if paths.data.is_some() {
            config
                .stages
                .iter_mut()
                .for_each(|s| s.data_set_proportion = 1.0);
        }
        let own = self.spec.members.all()[MEMBER].1;
        let decoder = own.iter().filter_map(|name| self.files.get(name)).flatten();
        let decoder = decoder.map(|(name, tensor)| (name.clone(), tensor.clone()));
        let tower = encoder.weights.all().into_iter();
        let tower = tower.map(|(name, var)| (name, var.as_tensor().clone()));
        let start = Parameters::from_tensors(decoder.chain(tower))?;
        let model = AdaptedModel {
            parameters: &start,
            tokenizer: &self.tokenizer,
            member: MEMBER,
            completion_prefixes: &self.spec.leads(),
        };
        let trained = adapt(&config, &model, paths, live)?;
        let eyes = trained.all().into_iter();
        let eyes = eyes.filter(|(name, _)| name.starts_with(TOWER) || name.starts_with(PROJECTOR));
        let eyes: HashMap<String, Tensor> = eyes
            .map(|(name, var)| Ok((name, var.as_tensor().to_dtype(DType::F16)?)))
            .collect::<Result<_>>()?;
        self.write(&config, &eyes, &paths.out.join("panel"))
    }

    fn write(
        &self,
        config: &TrainConfig,
        eyes: &HashMap<String, Tensor>,
        folder: &Path,
    ) -> Result<PathBuf> {
        std::fs::create_dir_all(folder)
            .with_context(|| format!("cannot create {}", folder.display()))?;
        write_tensors(eyes, &folder.join(EYES))?;
        for (name, tensors) in &self.files {
            write_tensors(tensors, &folder.join(name))?;
        }
        std::fs::write(folder.join(TOKENIZER_FILE), &self.tokenizer)?;
        let with_eyes = |files: &[String]| {
            let eyes = std::iter::once(EYES.to_owned());
            eyes.chain(files.iter().cloned()).collect()
        };
        let spec = PanelSpec {
            name: config.name.clone(),
            processor: config.processor(),
            model: config.model.clone(),
            members: self
                .spec
                .members
                .all()
                .map(|(_, files)| with_eyes(files))
                .into(),
            ..self.spec.clone()
        };
        std::fs::write(folder.join(PANEL_FILE), toml::to_string_pretty(&spec)?)?;
        Ok(folder.to_owned())
    }

    fn config(&self, encoder: &Candidate, budget: &ProjectorBudget, seed: u64) -> TrainConfig {
        let decoder = self.spec.model.decoder.clone();
        let frozen = [TOWER, "model.embed_tokens.", "model.layers.", "model.norm."];
        TrainConfig {
            name: format!("{} through {}", self.spec.name, encoder.name),
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
                learning_rate: budget.rate,
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
