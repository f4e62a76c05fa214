//! Index range of generated validation examples.

/// Number of validation examples of a stage, and the maximum size of a file's validation split.
/// Generated validation examples are phantoms that are not trained on, and questions, wrong answers
/// and views of the data sets' images that differ from those in training.
pub(crate) const VALIDATION_EXAMPLES: u64 = 48;

/// Index of the first validation example. Training examples have lower indices.
pub(crate) const VALIDATION_START: u64 = 1 << 31;
