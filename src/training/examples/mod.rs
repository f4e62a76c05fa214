//! Training examples and their conversion to sequences.

pub(crate) mod example;
pub(crate) mod example_sampler;
pub(crate) mod prompt_completion;
pub(crate) mod proportion;
pub(crate) mod sequence_builder;
pub mod sources;
pub(crate) mod train_tokenizer;
pub(crate) mod validation_split;
