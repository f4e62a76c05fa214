//! What the training loop needs from a task.

use std::ops::Range;

use acem3_experts::Error;
use acem3_experts::train::Loss;
use anyhow::Result;

/// Examples of one type, and a model's loss on them.
pub(crate) trait TrainingTask: Sync {
    /// One training item.
    type Example: Send + Sync;

    /// Returns the examples at these indices. Each is a pure function of its index; those from
    /// [`VALIDATION_START`](crate::training::config::validation_indices::VALIDATION_START) on are the validation split.
    fn examples(&self, indices: Range<u64>) -> Result<Vec<Self::Example>>;

    /// Returns the number of distinct training examples, or `None` if they are generated without limit.
    fn fixed_len(&self) -> Option<usize> {
        None
    }

    /// Returns the number of examples per forward pass.
    fn micro_batch(&self) -> usize;

    /// Returns the summed loss of some examples.
    fn loss(&self, examples: &[Self::Example]) -> Result<Loss, Error>;

    /// Returns text to add to the note of a validation.
    fn validation_note(&self, _: &[Self::Example]) -> Result<String, Error> {
        Ok(String::new())
    }
}
