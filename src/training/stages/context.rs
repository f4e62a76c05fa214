//! Shared inputs of the tasks of a stage.

use acem3_experts::train::{Parameters, Sequence};
use candle::Device;

use crate::training::config::stage::stage_config::StageConfig;
use crate::training::config::train_config::TrainConfig;
use crate::training::examples::example_sampler::ExampleSampler;
use crate::training::examples::sequence_builder::SequenceBuilder;
use crate::training::stages::metrics::progress::TrainingProgress;

/// Inputs that the tasks of a stage share.
#[derive(Clone, Copy)]
pub(crate) struct StageContext<'a> {
    /// Configuration of the training.
    pub(crate) config: &'a TrainConfig,
    /// Configuration of the stage.
    pub(crate) stage: &'a StageConfig,
    /// Generates examples.
    pub(crate) sampler: &'a ExampleSampler,
    /// Turns examples into sequences.
    pub(crate) builder: &'a SequenceBuilder,
    /// Progress output and interruption.
    pub(crate) progress: &'a TrainingProgress,
    /// Device of the model.
    pub(crate) device: &'a Device,
}

impl StageContext<'_> {
    /// Copies weights to the training's device and element type; missing weights are initialised at
    /// random.
    pub(crate) fn load_parameters(&self, initial: &Parameters) -> candle::Result<Parameters> {
        let complete = initial.with_init_seed(self.config.seed);
        complete.to_device(self.device, self.config.dtype.dtype())
    }

    /// Returns true if a sequence fits into the model's context. Prints a note about the first
    /// sequence that does not fit.
    pub(crate) fn fits_context(&self, sequence: &Sequence) -> bool {
        let max_tokens = self.config.model.decoder.max_position_embeddings;
        let fits = sequence.context_len() <= max_tokens;
        if !fits {
            self.progress.note_once(&format!(
                "skipping examples that are longer than the context of {max_tokens} tokens\n\
                 hint: raise model.decoder.max_position_embeddings"
            ));
        }
        fits
    }
}
