//! Supervised training on answers, evaluations and conclusions.

use std::ops::Range;

use acem3_experts::Error;
use acem3_experts::train::{Batch, Sequence, ShardLoss, TrainableModel};
use anyhow::Result;

use crate::training::examples::sequence_builder::SequenceBuilder;
use crate::training::stages::context::StageContext;
use crate::training::stages::parallel::sample_parallel;
use crate::training::stages::tasks::evaluation_set::EvaluationSet;
use crate::training::stages::tasks::training_task::TrainingTask;

/// Next-token prediction of completions.
pub(crate) struct SftTask<'a> {
    /// Inputs of the stage.
    pub(crate) context: StageContext<'a>,
    /// Model to train.
    pub(crate) model: TrainableModel,
    /// Index of the member to train; `None` trains all members as one model.
    pub(crate) member: Option<usize>,
    /// Evaluations of a file, which replace generated examples.
    pub(crate) evaluations: Option<EvaluationSet<'a>>,
}

impl TrainingTask for SftTask<'_> {
    type Example = Sequence;

    fn examples(&self, indices: Range<u64>) -> Result<Vec<Sequence>> {
        let StageContext { stage, sampler, builder, .. } = self.context;
        let mut sequences: Vec<Sequence> = if let Some(evaluations) = &self.evaluations {
            evaluations.sequences(indices)?
        } else {
            let sampled = sample_parallel(indices, |index| {
                sampler.sequences(builder, stage, index, self.member)
            })?;
            sampled.into_iter().flatten().collect()
        };
        sequences.retain(|sequence| self.context.fits_context(sequence));
        // Sequences of similar length share a forward pass, which limits padding. The longest come
        // first, so that no core waits long for the last pass.
        sequences.sort_by_key(|s| std::cmp::Reverse(s.len()));
        Ok(sequences)
    }

    fn fixed_len(&self) -> Option<usize> {
        self.evaluations.as_ref().map(EvaluationSet::len)
    }

    fn micro_batch(&self) -> usize {
        self.context.config.micro_batch
    }

    fn loss(&self, sequences: &[Sequence]) -> Result<ShardLoss, Error> {
        self.model
            .loss(&Batch(sequences), |target| SequenceBuilder::counts_for_accuracy(target.weight))
    }
}
