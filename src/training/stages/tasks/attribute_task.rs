//! Training of the vision tower on attributes of images.

use std::ops::Range;

use acem3_experts::Error;
use acem3_experts::train::{AttributeClassifier, AttributeExample, ShardLoss};
use anyhow::Result;

use crate::training::stages::context::StageContext;
use crate::training::stages::parallel::sample_parallel;
use crate::training::stages::tasks::training_task::TrainingTask;

/// Images per forward pass, as a multiple of the configured sequences per forward pass.
const IMAGES_PER_SEQUENCE: usize = 4;

/// Classification of image attributes.
pub(crate) struct AttributeTask<'a> {
    /// Inputs of the stage.
    pub(crate) context: StageContext<'a>,
    /// Model to train.
    pub(crate) classifier: AttributeClassifier,
}

impl TrainingTask for AttributeTask<'_> {
    type Example = AttributeExample;

    fn examples(&self, indices: Range<u64>) -> Result<Vec<AttributeExample>> {
        let StageContext { sampler, stage, .. } = self.context;
        sample_parallel(indices, |index| sampler.attribute_example(stage, index))
    }

    fn micro_batch(&self) -> usize {
        self.context.config.micro_batch * IMAGES_PER_SEQUENCE
    }

    fn loss(&self, images: &[AttributeExample]) -> Result<ShardLoss, Error> {
        self.classifier.loss(images)
    }

    /// Returns the accuracy of each attribute; a dash if no image has a known class.
    fn validation_note(&self, images: &[AttributeExample]) -> Result<String, Error> {
        let accuracies = self.classifier.accuracy(images)?.into_iter();
        let format =
            |accuracy: Option<f64>| accuracy.map_or("–".to_owned(), |a| format!("{a:.2}"));
        let accuracies: Vec<String> = accuracies.map(format).collect();
        Ok(format!(" (by attribute {})", accuracies.join(" ")))
    }
}
