//! Training examples and their conversion to sequences.

pub(crate) mod attributes;
pub(crate) mod dataset_examples;
pub(crate) mod dataset_responses;
pub(crate) mod example;
pub(crate) mod example_sampler;
pub(crate) mod phantom_examples;
pub(crate) mod pixels;
pub(crate) mod prompt_completion;
pub(crate) mod quoting;
pub(crate) mod sequence_builder;
pub(crate) mod train_tokenizer;
pub(crate) mod validation_split;
