//! Interface between the training loop and its tasks.

use std::ops::Range;

use acem3_experts::Error;
use acem3_experts::train::ShardLoss;
use anyhow::Result;

/// Source of examples, and the loss of a model on them.
pub(crate) trait TrainingTask: Sync {
    /// Training item.
    type Example: Send + Sync;

    /// Returns the examples at these indices. Each example is a pure function of its index. Indices
    /// from [`VALIDATION_START`] on are the validation split.
    ///
    /// [`VALIDATION_START`]: crate::training::config::validation_indices::VALIDATION_START
    fn examples(&self, indices: Range<u64>) -> Result<Vec<Self::Example>>;

    /// Returns the number of distinct training examples, or `None` if they are generated without
    /// limit.
    fn fixed_len(&self) -> Option<usize> {
        None
    }

    /// Returns the number of examples per forward pass.
    fn micro_batch(&self) -> usize;

    /// Returns the summed loss of some examples.
    fn loss(&self, examples: &[Self::Example]) -> Result<ShardLoss, Error>;

    /// Returns text to add to the note of a validation.
    fn validation_note(&self, _: &[Self::Example]) -> Result<String, Error> {
        Ok(String::new())
    }
}
