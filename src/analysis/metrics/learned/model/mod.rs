//! Language models for `BERTScore`, `BARTScore` and embeddings, loaded from published checkpoints.
//!
//! All texts of a batch have the same number of tokens, so there is no padding and no padding mask,
//! and results do not depend on the batch.

mod attention;
mod bart;
mod bert;
mod config;
mod layer;
mod linear;
mod pooler;
mod source;
mod tokens;

pub(crate) use bart::Bart;
pub(crate) use bert::Bert;
pub(crate) use pooler::BertPooler;
pub(crate) use source::ModelSource;
pub(crate) use tokens::EncodedText;
