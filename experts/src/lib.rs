//! The three branch experts of acem3: decoder, prompts, format-locked generation and training.
//!
//! Stages 6 to 8 of a judgement: [`prompt`] says what is asked, [`decoder`] computes, [`generate`]
//! writes evaluations that always parse. [`train`] makes the weights.

mod config;
mod criterion;
pub mod decoder;
mod error;
mod evaluation;
pub mod generate;
mod judge;
pub mod ops;
pub mod prompt;
mod score;
mod tokenizer;
pub mod train;

pub use config::ModelConfig;
pub use criterion::{Aspect, Criterion};
pub use error::Error;
pub use evaluation::{BranchEvaluation, Rating};
pub use judge::BranchJudge;
pub use score::{SCORES, Score};
pub use tokenizer::TextTokenizer;
