//! Examples from phantoms and from data sets.

pub(crate) mod attributes;
pub(crate) mod dataset_examples;
pub(crate) mod dataset_pairs;
pub(crate) mod dataset_responses;
pub(crate) mod foreign_text;
pub(crate) mod image_store;
pub(crate) mod long_answers;
pub(crate) mod phantom_examples;
pub(crate) mod pixels;
pub(crate) mod quoting;
pub(crate) mod statement;
pub(crate) mod unrelated_answers;
mod varied_text;
