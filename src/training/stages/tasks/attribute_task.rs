//! Training of the vision tower on attributes of images.

use std::ops::Range;

use acem3_experts::Error;
use acem3_experts::train::{Loss, Observation, Observer};
use anyhow::Result;

use crate::training::stages::context::StageContext;
use crate::training::stages::parallel::sample_parallel;
use crate::training::stages::tasks::training_task::TrainingTask;

/// Images per forward pass, as a multiple of the configured sequences per pass.
const IMAGES_PER_SEQUENCE: usize = 4;

/// Classification of image attributes.
pub(crate) struct AttributeTask<'a> {
    pub(crate) context: StageContext<'a>,
    pub(crate) observer: Observer,
}

impl TrainingTask for AttributeTask<'_> {
    type Example = Observation;

    fn examples(&self, indices: Range<u64>) -> Result<Vec<Observation>> {
        let StageContext { sampler, stage, .. } = self.context;
        sample_parallel(indices, |index| sampler.observation(stage, index))
    }

    fn micro_batch(&self) -> usize {
        self.context.config.micro_batch * IMAGES_PER_SEQUENCE
    }

    fn loss(&self, images: &[Observation]) -> Result<Loss, Error> {
        self.observer.loss(images)
    }

    /// The accuracy of each attribute.
    fn validation_note(&self, images: &[Observation]) -> Result<String, Error> {
        let accuracies = self.observer.accuracy(images)?.into_iter();
        let accuracies: Vec<String> = accuracies.map(|a| format!("{a:.2}")).collect();
        Ok(accuracies.join(" "))
    }
}
