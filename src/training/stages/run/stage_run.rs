//! Runs a stage for one learner: chooses the task, trains, and writes the checkpoint.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use acem3_experts::train::{
    AttributeClassifier, Optimizer, Parameters, Schedule, TrainableModel, Trainer, load_checkpoint,
    save_checkpoint,
};
use anyhow::{Context, Result};
use candle::Var;

use crate::training::config::precision::Precision;
use crate::training::config::stage::stage_kind::StageKind;
use crate::training::stages::context::StageContext;
use crate::training::stages::files::stage_files::{
    ADAPTERS_EXTENSION, BEST_EXTENSION, REFERENCES_EXTENSION, checkpoint_path, stage_file,
};
use crate::training::stages::run::training_loop::{StageState, TrainingLoop};
use crate::training::stages::tasks::attribute_task::AttributeTask;
use crate::training::stages::tasks::dpo_task::{DpoInputs, DpoTask};
use crate::training::stages::tasks::evaluation_set::EvaluationSet;
use crate::training::stages::tasks::preference_cache::PreferenceCache;
use crate::training::stages::tasks::sft_task::SftTask;
use crate::training::stages::tasks::training_task::TrainingTask;

/// Minimum learning rate of the schedule, as a fraction of the peak.
const LEARNING_RATE_FLOOR: f64 = 0.05;

/// Function that reads the initial weights of a stage, on the CPU.
pub(crate) type InitFn<'a> = &'a dyn Fn() -> Result<Parameters>;

/// A stage for one learner.
pub(crate) struct StageRun<'a> {
    /// Inputs of the stage.
    pub(crate) context: StageContext<'a>,
    /// Preference pairs, in a preference stage.
    pub(crate) preferences: Option<&'a PreferenceCache>,
    /// Index of the member to train; `None` trains all members as one model.
    pub(crate) member: Option<usize>,
    /// Name of the learner's files.
    pub(crate) name: String,
    /// Output folder.
    pub(crate) out: &'a Path,
}

/// A model that a stage trains.
struct Learner<'a> {
    /// Parameters in the training's element type.
    parameters: Parameters,
    /// Reads the initial weights again. A training in bf16 needs the f32 values twice; reading them
    /// again saves memory.
    init: InitFn<'a>,
}

impl StageRun<'_> {
    /// Returns the file of the finished weights.
    pub(crate) fn checkpoint(&self) -> PathBuf {
        checkpoint_path(self.out, &self.name)
    }

    /// Returns true if the checkpoint has the adapters alone.
    pub(crate) fn keeps_adapters(&self) -> bool {
        self.context.config.keeps_adapters && self.context.stage.lora.is_some()
    }

    /// Returns the file of the adapters of a stage that trains them and merges them into its checkpoint.
    pub(crate) fn adapters(&self) -> PathBuf {
        stage_file(self.out, &self.name, ADAPTERS_EXTENSION)
    }

    /// Trains from the weights that `init` reads, or resumes an interrupted run. Returns false if
    /// the user interrupts the training.
    pub(crate) fn run(&self, init: InitFn) -> Result<bool> {
        let context = self.context;
        let StageContext { config, stage, .. } = context;
        let parameters = context.load_parameters(&init()?)?;
        let mut parameters = parameters.freeze(&stage.frozen_prefixes());
        if let Some(lora) = &stage.lora {
            let with_adapters = parameters.with_adapters(lora, config.seed);
            parameters = with_adapters.with_context(|| format!("stage {}", self.name))?;
        }
        // Only trained weights are copied; the others stay in memory once.
        let parameters = parameters.with_variables()?;
        let vb = parameters.builder();
        let learner = Learner { parameters, init };
        let model = &config.model;
        let load_model = |trunk_layers| {
            let trainable = TrainableModel::load(&vb, model, trunk_layers);
            trainable.map(|trainable| trainable.with_recomputation(config.recomputes_activations))
        };
        match stage.kind {
            StageKind::Encoder => {
                let classes = context.sampler.attribute_classes();
                let classifier =
                    AttributeClassifier::load(&vb, &model.vision, model.selection, classes)?;
                self.train(&AttributeTask { context, classifier }, learner)
            }
            StageKind::Align | StageKind::Sft | StageKind::Heads => {
                let mut evaluations = EvaluationSet::open(context, self.member)?;
                let mut trunk_layers = config.trunk_layers;
                if let Some(evaluations) = &mut evaluations {
                    if !evaluations.cache_activations(&vb, self.out, &self.name)? {
                        return Ok(false);
                    }
                    trunk_layers = evaluations.cached_layers().unwrap_or(trunk_layers);
                }
                let task = SftTask {
                    context,
                    model: load_model(trunk_layers)?,
                    member: self.member,
                    evaluations,
                };
                self.train(&task, learner)
            }
            // Such a stage has no learner.
            StageKind::Mean => Ok(true),
            StageKind::Dpo | StageKind::Rtdpo | StageKind::Adto => {
                let cache = self.preferences.context("no preference cache")?;
                let inputs = DpoInputs {
                    model: load_model(cache.decoder_layers())?,
                    cache,
                    member: self.member,
                    references_path: &stage_file(self.out, &self.name, REFERENCES_EXTENSION),
                };
                match DpoTask::new(context, inputs)? {
                    Some(task) => self.train(&task, learner),
                    None => Ok(false),
                }
            }
        }
    }

    /// Trains a model on a task and writes its checkpoint: trained weights in f32, the others as they
    /// were. Returns false if the user interrupts the training.
    fn train(&self, task: &impl TrainingTask, learner: Learner) -> Result<bool> {
        let StageContext { config, stage, .. } = self.context;
        let Learner { parameters, init } = learner;
        let mut trained = parameters.trainable();
        trained.retain(|(name, _)| stage.trains_weight(name, &config.model));
        let optimizer = self.create_optimizer(trained, init)?;
        let schedule = Schedule {
            peak: stage.learning_rate,
            warmup: stage.warmup,
            steps: stage.steps,
            floor: LEARNING_RATE_FLOOR,
        };
        let training_loop =
            TrainingLoop { context: self.context, task, name: &self.name, out: self.out };
        let mut state = StageState {
            trainer: Trainer::new(optimizer, schedule, stage.clip_norm),
            parameters,
            best: None,
        };
        training_loop.resume(&mut state)?;
        training_loop.run(&mut state)?;
        if state.trainer.steps() < stage.steps {
            return Ok(false);
        }
        let mut values = state.trainer.optimizer.f32_values()?;
        if let Some(best) = state.best.filter(|best| best.step < stage.steps) {
            let tensors = load_checkpoint(&stage_file(self.out, &self.name, BEST_EXTENSION), None)?;
            values = tensors.into_iter().collect();
            self.context.progress.note(&format!(
                "{}: keeping the weights of step {}, which has the lowest validation loss ({:.4})",
                self.name, best.step, best.loss
            ));
        }
        if self.keeps_adapters() {
            // `alpha` is not trained, so the optimizer has no value of it.
            let mut adapters: HashMap<_, _> = state.parameters.adapters().into_iter().collect();
            adapters.extend(values);
            save_checkpoint(&self.checkpoint(), adapters, None)?;
            return Ok(true);
        }
        let initial = match config.dtype {
            Precision::F32 => state.parameters.clone(),
            Precision::Bf16 => init()?.with_init_seed(config.seed),
        };
        let complete = state.parameters.to_trained(values, &initial)?;
        if stage.lora.is_some() && self.member.is_some() {
            // Before the checkpoint, which marks the stage as finished.
            save_checkpoint(&self.adapters(), complete.adapters(), None)?;
        }
        save_checkpoint(&self.checkpoint(), complete.merge_adapters()?, None)?;
        Ok(true)
    }

    /// Creates the optimizer. A training in bf16 gets master weights with the f32 initial values.
    fn create_optimizer(&self, trained: Vec<(String, Var)>, init: InitFn) -> Result<Optimizer> {
        let config = self.context.config;
        let optimizer = Optimizer::new(trained, config.optimizer);
        if config.dtype == Precision::F32 {
            return Ok(optimizer);
        }
        let initial = init()?.with_init_seed(config.seed);
        Ok(optimizer.with_master_weights(|name, var| initial.master_value(name, var.shape()))?)
    }
}
