//! The training loop of a stage: steps, validation, metrics, and checkpoints of the stage in
//! progress.
//!
//! A checkpoint in progress contains the trained weights and the optimizer state, in f32. Frozen
//! weights come from the previous stage.

use std::fs;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use acem3_experts::train::{
    Hits, Parameters, Trainer, load_checkpoint, map_on_device, save_checkpoint,
};
use anyhow::{Context, Result, bail};
use serde::{Deserialize, Serialize};

use crate::support::files::atomic_file;
use crate::training::config::validation_indices::{VALIDATION_EXAMPLES, VALIDATION_START};
use crate::training::stages::context::StageContext;
use crate::training::stages::files::stage_files::{
    BEST_EXTENSION, BEST_STEP_EXTENSION, RUNNING_EXTENSION, stage_file,
};
use crate::training::stages::metrics::metrics_window::{
    MetricsWindow, describe_rewards, format_accuracy,
};
use crate::training::stages::metrics::metrics_writer::MetricsWriter;
use crate::training::stages::tasks::training_task::TrainingTask;

/// Time between two checkpoints of a stage in progress.
const CHECKPOINT_INTERVAL: Duration = Duration::from_mins(3);

/// Training loop of one learner.
pub(crate) struct TrainingLoop<'a, P> {
    /// Inputs of the stage.
    pub(crate) context: StageContext<'a>,
    /// Examples and loss.
    pub(crate) task: &'a P,
    /// Name of the learner's files.
    pub(crate) name: &'a str,
    /// Output folder.
    pub(crate) out: &'a Path,
}

/// Step and loss of the weights with the lowest validation loss so far.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(crate) struct BestWeights {
    /// Training step.
    pub(crate) step: u64,
    /// Validation loss.
    pub(crate) loss: f64,
}

/// State of a stage in progress.
pub(crate) struct StageState {
    /// Parameters of the model.
    pub(crate) parameters: Parameters,
    /// Optimizer and schedule.
    pub(crate) trainer: Trainer,
    /// Best weights so far; `None` before the first validation.
    pub(crate) best: Option<BestWeights>,
}

impl<P: TrainingTask> TrainingLoop<'_, P> {
    /// Loads the checkpoint of an interrupted run, if any.
    pub(crate) fn resume(&self, state: &mut StageState) -> Result<()> {
        let running = self.file(RUNNING_EXTENSION);
        if !running.exists() {
            return Ok(());
        }
        let tensors = load_checkpoint(&running, Some(&mut state.trainer.optimizer))?;
        state.parameters.restore(tensors)?;
        let best = self.file(BEST_STEP_EXTENSION);
        if best.exists() {
            let text = fs::read_to_string(&best)
                .with_context(|| format!("cannot read {}", best.display()))?;
            let best: BestWeights =
                serde_json::from_str(&text).with_context(|| best.display().to_string())?;
            state.best = Some(best);
        }
        let note = format!("{}: resumed at step {}", self.name, state.trainer.steps());
        self.context.progress.note(&note);
        Ok(())
    }

    /// Runs the remaining steps. Stops early, with a checkpoint, if the user interrupts the
    /// training.
    pub(crate) fn run(&self, state: &mut StageState) -> Result<()> {
        let StageContext { stage, progress, .. } = self.context;
        let (first_step, learns_preferences) =
            (state.trainer.steps(), stage.kind.learns_preferences());
        let mut metrics = MetricsWriter::open(self.out, self.name, first_step, learns_preferences)?;
        let running = self.file(RUNNING_EXTENSION);
        progress.start_stage(self.name, first_step, stage.steps);
        self.warn_settings();
        let (mut last_report, mut last_save) = (Instant::now(), Instant::now());
        let mut window = MetricsWindow::new(learns_preferences);
        while state.trainer.steps() < stage.steps {
            let first_index = state.trainer.steps() * stage.batch as u64;
            let examples = self.examples(first_index..first_index + stage.batch as u64)?;
            let micro_batches: Vec<_> = examples.chunks(self.task.micro_batch()).collect();
            let start = Instant::now();
            let report = state.trainer.step(&micro_batches, |examples| self.task.loss(examples))?;
            let step = state.trainer.steps();
            metrics.write_step(step, &report, start.elapsed())?;
            window.add(&report);
            let is_last = step == stage.steps;
            let validates = is_last || step.is_multiple_of(stage.validation_interval());
            if validates || last_report.elapsed() > progress.report_interval() {
                progress.report(self.name, step, &window.describe(stage.steps - step));
                window = MetricsWindow::new(learns_preferences);
                last_report = Instant::now();
            }
            if validates {
                self.validate(state, &mut metrics)?;
                // A new window excludes the time of the validation from the speed of the next
                // steps.
                window = MetricsWindow::new(learns_preferences);
            }
            let stops = !is_last && progress.is_interrupted();
            // Saving at every validation lets the next run resume there if a later step fails.
            if stops || validates || last_save.elapsed() > CHECKPOINT_INTERVAL {
                save_checkpoint(&running, [], Some(&state.trainer.optimizer))?;
                last_save = Instant::now();
            }
            if stops {
                return Ok(());
            }
        }
        Ok(())
    }

    /// Prints notes about settings that are probably not intended.
    fn warn_settings(&self) {
        let StageContext { stage, progress, .. } = self.context;
        if stage.warmup > stage.steps {
            progress.note(&format!(
                "{}: the warmup has {} steps and the stage {}, so the learning rate never reaches its peak\n\
                 hint: lower `warmup` in the stage",
                self.name, stage.warmup, stage.steps
            ));
        }
        if let Some(n) = self.task.fixed_len().filter(|n| *n < stage.batch) {
            progress.note(&format!(
                "{}: a batch has {} examples and the data only {n}, so examples repeat within a batch\n\
                 hint: lower `batch` in the stage, or provide more data",
                self.name, stage.batch
            ));
        }
    }

    /// Returns the examples at these indices, at least one.
    fn examples(&self, indices: Range<u64>) -> Result<Vec<P::Example>> {
        let examples = self.task.examples(indices)?;
        if examples.is_empty() {
            bail!(
                "stage {}: all examples are longer than the context or the sliding window\n{}",
                self.name,
                self.context.length_hint()
            );
        }
        Ok(examples)
    }

    /// Computes the loss on the validation split and saves the weights if the loss is the lowest so
    /// far.
    fn validate(&self, state: &mut StageState, metrics: &mut MetricsWriter) -> Result<()> {
        let step = state.trainer.steps();
        let indices = VALIDATION_START..VALIDATION_START + VALIDATION_EXAMPLES;
        let examples = self.examples(indices)?;
        let means = self.validation_means(&examples)?;
        let loss = means.loss;
        if !loss.is_finite() {
            bail!(
                "{}: the validation loss is {loss} at step {step}\nhint: lower the learning rate (`rate`)",
                self.name
            );
        }
        let mut values = vec![("validation_loss", loss)];
        values.extend(means.accuracy.map(|a| ("validation_accuracy", a)));
        let mut note = self.task.validation_note(&examples)?;
        if self.context.stage.kind.learns_preferences() {
            let [chosen, rejected] = means.rewards;
            values.push(("validation_margin", chosen - rejected));
            values.push(("validation_reward_preferred", chosen));
            note = format!(", {}", describe_rewards(means.rewards));
        }
        self.context.progress.note(&format!(
            "{}: step {step}, validation loss {loss:.4}{}{note}",
            self.name,
            format_accuracy(means.accuracy)
        ));
        metrics.write_values(step, &values)?;
        if state.best.is_none_or(|best| loss < best.loss) {
            let best = BestWeights { step, loss };
            state.best = Some(best);
            let values = state.trainer.optimizer.f32_values()?;
            save_checkpoint(&self.file(BEST_EXTENSION), values, None)?;
            atomic_file::write_atomic(
                &self.file(BEST_STEP_EXTENSION),
                &serde_json::to_vec(&best)?,
            )?;
        }
        Ok(())
    }

    /// Computes the means of loss, accuracy and rewards over examples.
    fn validation_means(&self, examples: &[P::Example]) -> Result<ValidationMeans> {
        let micro_batches: Vec<_> = examples.chunks(self.task.micro_batch()).collect();
        let (mut loss_sum, mut weight_sum, mut reward_sums) = (0.0, 0.0, [0.0; 2]);
        let mut hits = Hits::default();
        for loss in map_on_device(self.context.device, &micro_batches, |examples| {
            Ok(self.task.loss(examples)?.detach())
        }) {
            let loss = loss?;
            loss_sum += loss.loss_sum;
            weight_sum += loss.weight_sum;
            reward_sums = [0, 1].map(|i| reward_sums[i] + loss.rewards[i]);
            hits += loss.hits;
        }
        let weight_sum = f64::max(weight_sum, 1e-9);
        Ok(ValidationMeans {
            loss: loss_sum / weight_sum,
            accuracy: hits.accuracy(),
            rewards: reward_sums.map(|sum| sum / weight_sum),
        })
    }

    /// Returns the path of a file of the learner.
    fn file(&self, extension: &str) -> PathBuf {
        stage_file(self.out, self.name, extension)
    }
}

/// Means over the validation split.
struct ValidationMeans {
    /// Loss per target weight.
    loss: f64,
    /// `None` if no target counts for the accuracy.
    accuracy: Option<f64>,
    /// Rewards of chosen and rejected evaluations.
    rewards: [f64; 2],
}
