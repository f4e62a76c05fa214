//! What a stage practises: the examples it draws, and what errors at them cost.

use std::ops::Range;

use acem3_experts::Error;
use acem3_experts::train::{
    Batch, Loss, Observation, Observer, Parameters, Sequence, Student, in_parallel,
};
use anyhow::Result;
use candle::Device;

use crate::training::config::stage_config::StageConfig;
use crate::training::config::train_config::TrainConfig;
use crate::training::examples::example_sampler::ExampleSampler;
use crate::training::examples::sequence_builder::SequenceBuilder;
use crate::training::stages::evaluation_set::EvaluationSet;
use crate::training::stages::progress::TrainingProgress;

/// Examples of a kind, and the loss of a model at them.
pub(crate) trait TrainingTask: Sync {
    /// What a loss is computed of.
    type Example: Send + Sync;

    /// The examples of these numbers, each a pure function of its number.
    fn examples(&self, numbers: Range<u64>) -> Result<Vec<Self::Example>>;

    /// How many examples there are where they are not drawn without end.
    fn fixed(&self) -> Option<usize> {
        None
    }

    /// How many examples are computed at once.
    fn at_once(&self) -> usize;

    /// The summed loss.
    fn loss(&self, examples: &[Self::Example]) -> Result<Loss, Error>;

    /// What else is to be said of a validation.
    fn remark(&self, _: &[Self::Example]) -> Result<String, Error> {
        Ok(String::new())
    }
}

/// Where the examples of a stage come from.
#[derive(Clone, Copy)]
pub(crate) struct StageContext<'a> {
    /// The training's configuration.
    pub(crate) config: &'a TrainConfig,
    /// The stage's own.
    pub(crate) settings: &'a StageConfig,
    /// Who draws examples.
    pub(crate) teacher: &'a ExampleSampler,
    /// Who writes them.
    pub(crate) scribe: &'a SequenceBuilder,
    /// Where a person looks on.
    pub(crate) live: &'a TrainingProgress,
    /// Where models compute.
    pub(crate) device: &'a Device,
}

impl StageContext<'_> {
    /// Weights as the model computes with them, what is missing being drawn.
    pub(crate) fn placed(&self, start: &Parameters) -> candle::Result<Parameters> {
        let drawing = start.drawing(self.config.seed);
        drawing.placed(self.device, self.config.dtype.dtype())
    }
}

/// The vision tower, told from attributes.
pub(crate) struct AttributeTask<'a> {
    pub(crate) lectern: StageContext<'a>,
    pub(crate) observer: Observer,
}

impl TrainingTask for AttributeTask<'_> {
    type Example = Observation;

    fn examples(&self, numbers: Range<u64>) -> Result<Vec<Observation>> {
        let StageContext {
            teacher, settings, ..
        } = self.lectern;
        drawn(numbers, |number| teacher.observation(settings, number))
    }

    fn at_once(&self) -> usize {
        self.lectern.config.micro_batch * 4
    }

    fn loss(&self, images: &[Observation]) -> Result<Loss, Error> {
        self.observer.loss(images)
    }

    fn remark(&self, images: &[Observation]) -> Result<String, Error> {
        let shares = self.observer.accuracy(images)?;
        let shares: Vec<String> = shares.iter().map(|share| format!("{share:.2}")).collect();
        Ok(shares.join(" "))
    }
}

/// Answers, evaluations and conclusions, to be written.
pub(crate) struct SftTask<'a> {
    pub(crate) lectern: StageContext<'a>,
    pub(crate) student: Student,
    /// The one member that learns; all where `None`.
    pub(crate) member: Option<usize>,
    /// What is learned from in place of drawn examples.
    pub(crate) given: Option<EvaluationSet<'a>>,
}

impl TrainingTask for SftTask<'_> {
    type Example = Sequence;

    fn examples(&self, numbers: Range<u64>) -> Result<Vec<Sequence>> {
        let StageContext {
            config,
            settings,
            teacher,
            scribe,
            live,
            ..
        } = self.lectern;
        let mut sequences: Vec<Sequence> = if let Some(given) = &self.given {
            given.sequences(numbers)?
        } else {
            let drawn = drawn(numbers, |number| {
                teacher.sequences(scribe, settings, number, self.member)
            })?;
            drawn.into_iter().flatten().collect()
        };
        let context = config.model.decoder.max_position_embeddings;
        sequences.retain(|s| fits(s, context, live));
        // Sequences of like length are computed together, so that little is padding; the longest
        // first, so that no processor waits long for the last.
        sequences.sort_by_key(|s| std::cmp::Reverse(s.len()));
        Ok(sequences)
    }

    fn fixed(&self) -> Option<usize> {
        self.given.as_ref().map(EvaluationSet::len)
    }

    fn at_once(&self) -> usize {
        self.lectern.config.micro_batch
    }

    fn loss(&self, sequences: &[Sequence]) -> Result<Loss, Error> {
        let counted = |weight| SequenceBuilder::is_counted(weight);
        self.student
            .loss(&Batch(sequences), |target| counted(target.weight))
    }
}

/// Whether a sequence fits into the context. A person is told once where one does not.
pub(crate) fn fits(sequence: &Sequence, context: usize, live: &TrainingProgress) -> bool {
    let fits = sequence.context() <= context;
    if !fits {
        live.once(&format!(
            "examples that do not fit into the context of {context} tokens are passed over\n\
             hint: model.decoder.max_position_embeddings is that context"
        ));
    }
    fits
}

/// Examples drawn by all processors, in the order of their numbers.
pub(crate) fn drawn<T: Send>(
    numbers: Range<u64>,
    draw: impl Fn(u64) -> Result<T> + Sync,
) -> Result<Vec<T>> {
    each(&numbers.collect::<Vec<_>>(), |number| draw(*number))
}

/// What all processors make of some things, in their order.
pub(crate) fn each<S: Sync, T: Send>(
    items: &[S],
    work: impl Fn(&S) -> Result<T> + Sync,
) -> Result<Vec<T>> {
    let made = in_parallel(items, |item| {
        work(item).map_err(|e| Error::Training(format!("{e:#}")))
    });
    Ok(made.into_iter().collect::<Result<_, Error>>()?)
}
