//! Which model is better: all models of a run compared over all their pairs.

mod comparison_data;
mod model_ranking;
mod pairwise;
mod tables;

pub use crate::analysis::ranking::model_ranking::{RankedModel, Ranking, ranking};
pub use crate::analysis::ranking::pairwise::PairwiseComparison;
