//! Index range of generated validation examples.

/// Number of validation examples of a stage, and the maximum number of lines of a member in
/// the validation split of a file.
/// Generated validation examples have phantoms that are not trained on. Examples from data sets
/// have the same images as in training, with newly sampled questions, wrong answers and
/// augmentations.
pub(crate) const VALIDATION_EXAMPLES: u64 = 48;

/// Index of the first validation example. Training examples have lower indices.
pub(crate) const VALIDATION_START: u64 = 1 << 31;
