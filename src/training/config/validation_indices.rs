//! Indices of generated validation examples.

/// Validation examples of a stage: phantoms that are never trained on, and other questions, wrong answers and views
/// of the images of the data sets. Also the largest validation split of a file.
pub(crate) const VALIDATION_EXAMPLES: u64 = 48;

/// Index of the first validation example; training examples have lower indices.
pub(crate) const VALIDATION_START: u64 = 1 << 31;
