//! The branch experts of acem3: decoder, prompts, constrained decoding and training.
//!
//! [`prompt`] builds the prompts, [`decoder`] computes the logits, and [`generate`] writes
//! evaluations that always parse. [`train`] trains the weights.

mod branch_experts;
pub mod charsmap;
mod config;
mod criterion;
pub mod decoder;
mod error;
mod evaluation;
pub mod generate;
mod image_packing;
pub mod ops;
pub mod prompt;
mod rubric_key;
mod score;
mod text_growth;
mod tokenizer;
pub mod train;

pub use branch_experts::BranchExperts;
pub use config::ModelConfig;
pub use criterion::{Aspect, Criterion};
pub use error::Error;
pub use evaluation::{BranchEvaluation, Lookup, Rating, RatingAlternative};
pub use image_packing::{ImagePacking, ImagePackingConfig};
pub use score::{SCORES, Score};
pub use tokenizer::{TextTokenizer, catch_tokenizer_panic, largest_token_id, parse_tokenizer};
