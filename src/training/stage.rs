//! Runs a stage: steps, validation, metrics, checkpoints.

use std::fs::{File, OpenOptions};
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use acem3_experts::Error;
use acem3_experts::train::{
    AdamW, Batch, Loss, Observer, Parameters, Schedule, Sequence, StepReport, Student, Trainer,
    in_parallel, load_checkpoint, save_checkpoint,
};
use anyhow::{Context, Result};
use candle::Device;

use super::config::{StageConfig, StageKind, TrainConfig};
use super::live::Live;
use super::scribe::Scribe;
use super::teacher::Teacher;

/// How often a checkpoint is written.
const SAVE: Duration = Duration::from_mins(3);
/// Examples of the validation: phantoms that are never trained on, and other questions, wrong answers
/// and views of the same real images.
const VALIDATION: u64 = 48;
const VALIDATION_AT: u64 = 1 << 31;

/// One stage with what it works on.
pub(super) struct Stage<'a> {
    /// The training's configuration.
    pub(super) config: &'a TrainConfig,
    /// The stage's own.
    pub(super) settings: &'a StageConfig,
    /// Where examples come from.
    pub(super) teacher: &'a Teacher,
    /// How they are written.
    pub(super) scribe: &'a Scribe,
    /// The one member that learns; all where `None`.
    pub(super) member: Option<usize>,
    /// The name of checkpoints and metrics.
    pub(super) name: String,
    /// The folder of checkpoints.
    pub(super) out: &'a Path,
    /// Where a person looks on.
    pub(super) live: &'a Live,
}

enum Learner {
    Observer(Box<Observer>),
    Student(Box<Student>),
}

enum Examples {
    Images(Vec<acem3_experts::train::Observation>),
    Sequences(Vec<Sequence>),
}

impl Stage<'_> {
    /// Where the finished weights are.
    pub(super) fn checkpoint(&self) -> PathBuf {
        self.out.join(format!("{}.safetensors", self.name))
    }

    /// Trains from `start`, or goes on where an interrupted run stood.
    ///
    /// False when the person asked to stop before the end; the stage goes on from there then.
    pub(super) fn run(&self, start: &Parameters) -> Result<bool> {
        let running = self.out.join(format!("{}.running.safetensors", self.name));
        let resumed = running.exists();
        let parameters = if resumed {
            let tensors = load_checkpoint(&running, None)?;
            Parameters::from_tensors(tensors)?
        } else {
            start.drawing(self.config.seed)
        };
        let parameters = parameters.freeze(&self.settings.frozen);
        let learner = self.learner(&parameters)?;
        let optimizer = AdamW::new(self.trained(&parameters), self.config.optimizer);
        let schedule = Schedule {
            peak: self.settings.rate,
            warmup: self.settings.warmup,
            steps: self.settings.steps,
            floor: 0.05,
        };
        let mut trainer = Trainer::new(optimizer, schedule, self.settings.clip);
        if resumed {
            load_checkpoint(&running, Some(&mut trainer.optimizer))?;
            self.live.note(&format!(
                "{}: resumed at step {}",
                self.name,
                trainer.steps()
            ));
        }
        self.steps(&learner, &mut trainer, (&parameters, &running))?;
        if trainer.steps() < self.settings.steps {
            return Ok(false);
        }
        save_checkpoint(&self.checkpoint(), &parameters.all(), None)?;
        if running.exists() {
            std::fs::remove_file(&running)?;
        }
        Ok(true)
    }

    fn steps(
        &self,
        learner: &Learner,
        trainer: &mut Trainer,
        (parameters, running): (&Parameters, &Path),
    ) -> Result<()> {
        let mut journal = Journal::open(self.out, &self.name)?;
        self.live
            .stage(&self.name, trainer.steps(), self.settings.steps);
        let (mut reported, mut saved) = (Instant::now(), Instant::now());
        let mut window = Window::default();
        while trainer.steps() < self.settings.steps {
            let at = trainer.steps() * self.settings.batch as u64;
            let examples = self.examples(at..at + self.settings.batch as u64)?;
            window.add(self.step(learner, trainer, &examples)?);
            let last = trainer.steps() == self.settings.steps;
            if last || reported.elapsed() > self.live.pause() {
                let left = self.settings.steps - trainer.steps();
                let state = window.report(trainer.steps(), left, &mut journal)?;
                self.live.report(&self.name, trainer.steps(), &state);
                window = Window::default();
                reported = Instant::now();
            }
            let stop = !last && self.live.interrupted();
            if stop {
                save_checkpoint(running, &parameters.all(), Some(&trainer.optimizer))?;
                return Ok(());
            }
            if last || saved.elapsed() > SAVE {
                self.validate(learner, trainer.steps(), &mut journal)?;
                save_checkpoint(running, &parameters.all(), Some(&trainer.optimizer))?;
                saved = Instant::now();
                window = Window::default();
            }
        }
        Ok(())
    }

    fn learner(&self, parameters: &Parameters) -> Result<Learner> {
        let vb = parameters.builder(&Device::Cpu);
        let model = &self.config.model;
        Ok(match self.settings.kind {
            StageKind::Encoder => Learner::Observer(Box::new(Observer::load(
                &vb,
                &model.vision,
                model.selection,
                self.teacher.attribute_classes(),
            )?)),
            _ => Learner::Student(Box::new(Student::load(
                &vb,
                model,
                self.config.trunk_layers,
            )?)),
        })
    }

    /// The parameters of this stage: what a layer loaded and is not frozen. Weights of other
    /// stages (the observer's, say) may lie in the same checkpoint; they get no gradient.
    fn trained(&self, parameters: &Parameters) -> Vec<(String, candle::Var)> {
        let encoder = self.settings.kind == StageKind::Encoder;
        let own = |name: &str| {
            let tower = name.starts_with("model.vision_tower.");
            let unused = name.contains("post_layernorm");
            !unused
                && (name.starts_with("observer.") == encoder || tower)
                && (!encoder || tower || name.starts_with("observer."))
        };
        parameters
            .trainable()
            .into_iter()
            .filter(|(name, _)| own(name))
            .collect()
    }

    fn examples(&self, range: std::ops::Range<u64>) -> Result<Examples> {
        let indices: Vec<u64> = range.collect();
        if self.settings.kind == StageKind::Encoder {
            let images = in_parallel(&indices, |i| {
                self.teacher
                    .observation(self.settings, *i)
                    .map_err(|e| Error::Training(format!("{e:#}")))
            });
            return Ok(Examples::Images(
                images.into_iter().collect::<Result<_, Error>>()?,
            ));
        }
        let drawn = in_parallel(&indices, |i| {
            self.teacher
                .sequences(self.scribe, self.settings, *i, self.member)
                .map_err(|e| Error::Training(format!("{e:#}")))
        });
        let mut sequences: Vec<Sequence> = drawn
            .into_iter()
            .collect::<Result<Vec<_>, _>>()?
            .into_iter()
            .flatten()
            .collect();
        // Sequences of like length are computed together, so that little is padding; the longest
        // first, so that no processor waits long for the last.
        sequences.retain(|s| s.len() <= self.config.model.decoder.max_position_embeddings);
        sequences.sort_by_key(|s| std::cmp::Reverse(s.len()));
        Ok(Examples::Sequences(sequences))
    }

    fn step(
        &self,
        learner: &Learner,
        trainer: &mut Trainer,
        examples: &Examples,
    ) -> Result<StepReport, Error> {
        let size = self.config.micro_batch;
        match (learner, examples) {
            (Learner::Observer(observer), Examples::Images(images)) => {
                let shards: Vec<_> = images.chunks(size * 4).collect();
                trainer.step(&shards, |shard| observer.loss(shard))
            }
            (Learner::Student(student), Examples::Sequences(sequences)) => {
                let shards: Vec<_> = sequences.chunks(size).collect();
                trainer.step(&shards, |shard| loss(student, shard))
            }
            _ => Err(Error::Training("examples of another stage".to_owned())),
        }
    }

    /// The loss on examples that are never trained on.
    fn validate(&self, learner: &Learner, step: u64, journal: &mut Journal) -> Result<()> {
        let examples = self.examples(VALIDATION_AT..VALIDATION_AT + VALIDATION)?;
        let (losses, classes) = match (learner, &examples) {
            (Learner::Observer(observer), Examples::Images(images)) => {
                let shards: Vec<_> = images.chunks(16).collect();
                (
                    in_parallel(&shards, |s| observer.loss(s)),
                    observer.accuracy(images)?,
                )
            }
            (Learner::Student(student), Examples::Sequences(sequences)) => {
                let shards: Vec<_> = sequences.chunks(self.config.micro_batch).collect();
                (in_parallel(&shards, |s| loss(student, s)), Vec::new())
            }
            _ => return Ok(()),
        };
        let (mut sum, mut weight, mut hits) = (0.0, 0.0, (0.0, 0.0));
        for loss in losses {
            let loss = loss?;
            sum += loss.value;
            weight += loss.weight;
            hits = (hits.0 + loss.hits.0, hits.1 + loss.hits.1);
        }
        let (loss, accuracy) = (sum / f64::max(weight, 1e-9), hits.0 / f64::max(hits.1, 1.0));
        let shares: Vec<String> = classes.iter().map(|s| format!("{s:.2}")).collect();
        self.live.note(&format!(
            "{}: step {step}, validation loss {loss:.4}, accuracy {accuracy:.4} {}",
            self.name,
            shares.join(" ")
        ));
        journal.line(&serde_json::json!({
            "step": step, "validation_loss": loss, "validation_accuracy": accuracy,
        }))
    }
}

fn loss(student: &Student, sequences: &[Sequence]) -> Result<Loss, Error> {
    student.loss(&Batch(sequences), |target| {
        Scribe::is_counted(target.weight)
    })
}

/// Metrics as JSON lines.
struct Journal(File);

impl Journal {
    fn open(out: &Path, name: &str) -> Result<Self> {
        let path = out.join(format!("{name}.metrics.jsonl"));
        let file = OpenOptions::new().create(true).append(true).open(&path);
        Ok(Self(file.with_context(|| {
            format!("cannot write {}", path.display())
        })?))
    }

    fn line(&mut self, value: &serde_json::Value) -> Result<()> {
        Ok(writeln!(self.0, "{value}")?)
    }
}

/// What happened since the last report.
struct Window {
    since: Instant,
    steps: u64,
    loss: f64,
    accuracy: f64,
    norm: f64,
    rate: f64,
    tokens: u64,
}

impl Default for Window {
    fn default() -> Self {
        Self {
            since: Instant::now(),
            steps: 0,
            loss: 0.0,
            accuracy: 0.0,
            norm: 0.0,
            rate: 0.0,
            tokens: 0,
        }
    }
}

impl Window {
    fn add(&mut self, report: StepReport) {
        self.steps += 1;
        self.loss += report.loss;
        self.accuracy += report.accuracy;
        self.norm += report.norm;
        self.rate = report.rate;
        self.tokens += report.tokens;
    }

    fn report(&self, step: u64, left: u64, journal: &mut Journal) -> Result<String> {
        let n = self.steps.max(1) as f64;
        let seconds = self.since.elapsed().as_secs_f64().max(1e-9);
        let (loss, accuracy, norm) = (self.loss / n, self.accuracy / n, self.norm / n);
        let speed = self.tokens as f64 / seconds;
        let minutes = left as f64 * seconds / n / 60.0;
        journal.line(&serde_json::json!({
            "step": step, "loss": loss, "accuracy": accuracy, "gradient_norm": norm,
            "rate": self.rate, "tokens_per_second": speed,
        }))?;
        Ok(format!(
            "loss {loss:.4}, accuracy {accuracy:.4}, gradient {norm:.2}, rate {:.2e}, {speed:.0} tokens/s, {minutes:.0} min left",
            self.rate
        ))
    }
}
