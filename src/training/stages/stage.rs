//! Runs a stage: steps, validation, metrics, checkpoints.
//!
//! A checkpoint of a stage in progress holds what is trained, with the optimizer's means; the
//! weights that stay as they are come from the stage before. What a stage leaves is whole. Both are in f32, in whatever
//! type and wherever the model computes.

use std::fs;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use acem3_experts::train::{
    AdamW, Hits, Observer, Parameters, Schedule, Student, Trainer, load_checkpoint, on_device,
    save_checkpoint,
};
use anyhow::{Context, Result, bail};
use candle::Var;
use serde::{Deserialize, Serialize};

use crate::support::files::atomic_file;
use crate::training::config::precision::Precision;
use crate::training::config::stage_config::{StageKind, checkpoint};
use crate::training::preferences::dpo_task::DpoTask;
use crate::training::preferences::preference_cache::PreferenceCache;
use crate::training::stages::activation_file::index_path;
use crate::training::stages::evaluation_set::EvaluationSet;
use crate::training::stages::frozen_cache::rows_file;
use crate::training::stages::step_metrics::{MetricsWindow, MetricsWriter, in_words, share};
use crate::training::stages::task::{AttributeTask, SftTask, StageContext, TrainingTask};

/// How often a checkpoint is written.
const SAVE: Duration = Duration::from_mins(3);
/// Examples of the validation: phantoms that are never trained on, and other questions, wrong answers
/// and views of the same real images.
pub(crate) const VALIDATION: u64 = 48;
/// The number of the first of them.
pub(crate) const VALIDATION_AT: u64 = 1 << 31;

/// The endings of the names of files that a stage in progress has: its weights, the best of them, of which step those
/// are, and what the model thought of preferences.
const RUNNING: &str = "running.safetensors";
const BEST: &str = "best.safetensors";
const BEST_OF: &str = "best.json";
const REFERENCES: &str = "reference.safetensors";

/// Reads what a stage begins with, in f32 on the CPU.
pub(crate) type InitFn<'a> = &'a dyn Fn() -> Result<Parameters>;

/// One stage with what it works on.
pub(crate) struct StageRun<'a> {
    /// Where examples come from.
    pub(crate) lectern: StageContext<'a>,
    /// What a stage of preferences computed before.
    pub(crate) stored: Option<&'a PreferenceCache>,
    /// The one member that learns; all where `None`.
    pub(crate) member: Option<usize>,
    /// The name of checkpoints and metrics.
    pub(crate) name: String,
    /// The folder of checkpoints.
    pub(crate) out: &'a Path,
}

/// The best weights so far, by validation.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct BestWeights {
    step: u64,
    loss: f64,
}

/// What changes while a stage runs.
struct StageState {
    parameters: Parameters,
    trainer: Trainer,
    best: Option<BestWeights>,
}

impl StageRun<'_> {
    /// Where the finished weights are.
    pub(crate) fn checkpoint(&self) -> PathBuf {
        checkpoint(self.out, &self.name)
    }

    /// Trains from what `start` reads, or goes on where an interrupted run stood. It is read once more in the end
    /// where the model holds rounded copies, rather than kept beside them.
    ///
    /// False when the person asked to stop before the end; the stage goes on from there then.
    pub(crate) fn run(&self, start: InitFn) -> Result<bool> {
        let StageContext {
            config, settings, ..
        } = self.lectern;
        let mut parameters = self.lectern.placed(&start()?)?.freeze(&settings.frozen());
        if let Some(lora) = &settings.lora {
            let adapted = parameters.adapt(lora, config.seed);
            parameters = adapted.with_context(|| format!("stage {}", self.name))?;
        }
        let vb = parameters.builder();
        let learner = (parameters, start);
        let model = &config.model;
        let lectern = self.lectern;
        let student = |depth| {
            let student = Student::load(&vb, model, depth);
            student.map(|student| student.recomputing(config.recompute))
        };
        match settings.kind {
            StageKind::Encoder => {
                let classes = lectern.teacher.attribute_classes();
                let observer = Observer::load(&vb, &model.vision, model.selection, classes)?;
                self.practise(&AttributeTask { lectern, observer }, learner)
            }
            StageKind::Align | StageKind::Sft | StageKind::Heads => {
                let mut given = EvaluationSet::open(lectern, self.member)?;
                let mut depth = config.trunk_layers;
                if let Some(given) = &mut given {
                    if !given.keep(&vb, self.out, &self.name)? {
                        return Ok(false);
                    }
                    depth = given.depth().unwrap_or(depth);
                }
                let writing = SftTask {
                    lectern,
                    student: student(depth)?,
                    member: self.member,
                    given,
                };
                self.practise(&writing, learner)
            }
            StageKind::Dpo | StageKind::Rtdpo | StageKind::Adto => {
                let stored = self.stored.context("preferences without their store")?;
                let student = student(stored.depth())?;
                let references = self.file(REFERENCES);
                let preferring = DpoTask::new(lectern, student, stored, self.member, &references)?;
                let Some(preferring) = preferring else {
                    return Ok(false);
                };
                self.practise(&preferring, learner)
            }
        }
    }

    fn practise(
        &self,
        practice: &impl TrainingTask,
        (parameters, start): (Parameters, InitFn),
    ) -> Result<bool> {
        let StageContext {
            config, settings, ..
        } = self.lectern;
        let mut trained = parameters.trainable();
        trained.retain(|(name, _)| settings.owns(name));
        let optimizer = self.optimizer(trained, start)?;
        let schedule = Schedule {
            peak: settings.rate,
            warmup: settings.warmup,
            steps: settings.steps,
            floor: 0.05,
        };
        let mut course = StageState {
            trainer: Trainer::new(optimizer, schedule, settings.clip),
            parameters,
            best: None,
        };
        self.resume(&mut course)?;
        self.steps(practice, &mut course)?;
        if course.trainer.steps() < settings.steps {
            return Ok(false);
        }
        let mut learned = course.trainer.optimizer.values()?;
        if let Some(best) = course.best.filter(|best| best.step < settings.steps) {
            let tensors = load_checkpoint(&self.file(BEST), None)?;
            learned = tensors.into_iter().collect();
            self.lectern.live.note(&format!(
                "{}: the weights of step {} are kept, whose validation loss {:.4} was the lowest",
                self.name, best.step, best.loss
            ));
        }
        let start = match config.dtype {
            Precision::F32 => course.parameters.clone(),
            Precision::Bf16 => start()?.drawing(config.seed),
        };
        let whole = course.parameters.whole(learned, &start)?;
        save_checkpoint(&self.checkpoint(), whole.merged()?, None)?;
        Ok(true)
    }

    /// The optimizer of what is trained, with masters that begin as the exact values of the start.
    fn optimizer(&self, trained: Vec<(String, Var)>, start: InitFn) -> Result<AdamW> {
        let config = self.lectern.config;
        let optimizer = AdamW::new(trained, config.optimizer);
        if config.dtype == Precision::F32 {
            return Ok(optimizer);
        }
        let start = start()?.drawing(config.seed);
        Ok(optimizer.with_masters(|name, var| start.exact(name, var.shape()))?)
    }

    /// Goes on where an interrupted run stood.
    fn resume(&self, course: &mut StageState) -> Result<()> {
        let running = self.file(RUNNING);
        if !running.exists() {
            return Ok(());
        }
        let tensors = load_checkpoint(&running, Some(&mut course.trainer.optimizer))?;
        course.parameters.restore(tensors)?;
        let best = self.file(BEST_OF);
        if best.exists() {
            let text = fs::read_to_string(&best)
                .with_context(|| format!("cannot read {}", best.display()))?;
            let best: BestWeights =
                serde_json::from_str(&text).with_context(|| best.display().to_string())?;
            course.best = Some(best);
        }
        let note = format!("{}: resumed at step {}", self.name, course.trainer.steps());
        self.lectern.live.note(&note);
        Ok(())
    }

    fn steps(&self, practice: &impl TrainingTask, course: &mut StageState) -> Result<()> {
        let StageContext { settings, live, .. } = self.lectern;
        let (begun, prefers) = (course.trainer.steps(), settings.kind.prefers());
        let mut journal = MetricsWriter::open(self.out, &self.name, begun, prefers)?;
        let running = self.file(RUNNING);
        live.stage(&self.name, course.trainer.steps(), settings.steps);
        if settings.warmup > settings.steps {
            live.note(&format!(
                "{}: the rate is warmed up in {} steps, of which there are {}, so that it is never reached\n\
                 hint: `warmup = N` in the stage",
                self.name, settings.warmup, settings.steps
            ));
        }
        if let Some(n) = practice.fixed().filter(|n| *n < settings.batch) {
            live.note(&format!(
                "{}: a step has {} examples, of which there are {n}, so that each comes more than once in it\n\
                 hint: a smaller `batch` in the stage, or more data",
                self.name, settings.batch
            ));
        }
        let (mut reported, mut saved) = (Instant::now(), Instant::now());
        let mut window = MetricsWindow::new(prefers);
        while course.trainer.steps() < settings.steps {
            let at = course.trainer.steps() * settings.batch as u64;
            let examples = self.examples(practice, at..at + settings.batch as u64)?;
            let shards: Vec<_> = examples.chunks(practice.at_once()).collect();
            let begin = Instant::now();
            let report = course.trainer.step(&shards, |shard| practice.loss(shard))?;
            let step = course.trainer.steps();
            journal.step(step, &report, begin.elapsed())?;
            window.add(&report);
            let last = step == settings.steps;
            let validating = last || step.is_multiple_of(settings.validation());
            if validating || reported.elapsed() > live.pause() {
                live.report(&self.name, step, &window.in_words(settings.steps - step));
                window = MetricsWindow::new(prefers);
                reported = Instant::now();
            }
            if validating {
                self.validate(practice, course, &mut journal)?;
                // Its time is none of the steps'.
                window = MetricsWindow::new(prefers);
            }
            let stop = !last && live.interrupted();
            // Where a later step fails, the run goes on from the last one that was validated.
            if stop || validating || saved.elapsed() > SAVE {
                save_checkpoint(&running, [], Some(&course.trainer.optimizer))?;
                saved = Instant::now();
            }
            if stop {
                return Ok(());
            }
        }
        Ok(())
    }

    fn examples<P: TrainingTask>(
        &self,
        practice: &P,
        numbers: Range<u64>,
    ) -> Result<Vec<P::Example>> {
        let examples = practice.examples(numbers)?;
        if examples.is_empty() {
            bail!(
                "stage {}: no example fits into the context\n\
                 hint: raise model.decoder.max_position_embeddings",
                self.name
            );
        }
        Ok(examples)
    }

    /// The loss on examples that are never trained on; the weights are kept where it is the lowest.
    fn validate<P: TrainingTask>(
        &self,
        practice: &P,
        course: &mut StageState,
        journal: &mut MetricsWriter,
    ) -> Result<()> {
        let step = course.trainer.steps();
        let examples = self.examples(practice, VALIDATION_AT..VALIDATION_AT + VALIDATION)?;
        let shards: Vec<_> = examples.chunks(practice.at_once()).collect();
        let (mut sum, mut weight, mut rewards) = (0.0, 0.0, [0.0; 2]);
        let mut hits = Hits::default();
        for loss in on_device(self.lectern.device, &shards, |shard| {
            Ok(practice.loss(shard)?.measured())
        }) {
            let loss = loss?;
            sum += loss.value;
            weight += loss.weight;
            rewards = [0, 1].map(|side| rewards[side] + loss.rewards[side]);
            hits += loss.hits;
        }
        let weight = f64::max(weight, 1e-9);
        let loss = sum / weight;
        let accuracy = hits.accuracy();
        if !loss.is_finite() {
            bail!(
                "{}: the validation loss is {loss} at step {step}\nhint: a lower `rate` may help",
                self.name
            );
        }
        let mut figures = vec![("validation_loss", loss)];
        figures.extend(accuracy.map(|accuracy| ("validation_accuracy", accuracy)));
        let mut remark = practice.remark(&examples)?;
        if self.lectern.settings.kind.prefers() {
            let rewards = rewards.map(|reward| reward / weight);
            figures.push(("validation_margin", rewards[0] - rewards[1]));
            figures.push(("validation_reward_preferred", rewards[0]));
            remark = in_words(rewards);
        }
        self.lectern.live.note(&format!(
            "{}: step {step}, validation loss {loss:.4}{} {remark}",
            self.name,
            share(accuracy)
        ));
        journal.figures(step, &figures)?;
        if course.best.is_none_or(|best| loss < best.loss) {
            let best = BestWeights { step, loss };
            course.best = Some(best);
            let values = course.trainer.optimizer.values()?;
            save_checkpoint(&self.file(BEST), values, None)?;
            atomic_file::write(&self.file(BEST_OF), &serde_json::to_vec(&best)?)?;
        }
        Ok(())
    }

    fn file(&self, ending: &str) -> PathBuf {
        self.out.join(format!("{}.{ending}", self.name))
    }
}

/// Removes what is of no use once the weights of a stage or of one of its members are there. A run that was killed may
/// have left it.
pub(crate) fn clear(out: &Path, name: &str) -> Result<()> {
    for ending in [RUNNING, BEST, BEST_OF, REFERENCES] {
        remove(&out.join(format!("{name}.{ending}")))?;
    }
    let rows = rows_file(out, name);
    remove(&index_path(&rows))?;
    remove(&rows)
}

/// Removes a file that may not be there.
fn remove(path: &Path) -> Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            Err(error).with_context(|| format!("cannot remove {}", path.display()))
        }
        _ => Ok(()),
    }
}
