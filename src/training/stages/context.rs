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
        let decoder = &self.config.model.decoder;
        let max_tokens = decoder.max_position_embeddings;
        if sequence.context_len() > max_tokens {
            self.progress.note_once(&format!(
                "skipping examples that are longer than the context of {max_tokens} tokens\n{}",
                self.length_hint()
            ));
            return false;
        }
        let windows = (0..decoder.num_hidden_layers).filter_map(|layer| decoder.window(layer));
        let Some(window) = windows.min().filter(|window| sequence.len() > *window) else {
            return true;
        };
        self.progress.note_once(&format!(
            "skipping examples with more than {window} tokens, the sliding window of the decoder: a training \
             computes prompt and completions of an example in one row, which must fit into the window\n\
             hint: shorten the texts, or start from a model without a sliding window"
        ));
        false
    }

    /// Returns what to do about examples that are longer than the context.
    pub(crate) fn length_hint(&self) -> &'static str {
        match self.config.start {
            Some(_) => "hint: shorten the texts, or start from a model with a longer context",
            None => "hint: raise model.decoder.max_position_embeddings",
        }
    }
}
