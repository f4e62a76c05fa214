//! Ranking of models: win rates, strengths and pairwise comparisons over all pairs of one or more
//! runs.

mod comparison_data;
mod model_ranking;
mod pairwise;
mod tables;

pub use crate::analysis::ranking::model_ranking::{RankedModel, Ranking, rank_models};
pub use crate::analysis::ranking::pairwise::{DifferenceTest, PairwiseComparison};
