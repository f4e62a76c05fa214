//! Which model is better: all models of a run compared over all their pairs.

mod compute;
mod duel;
mod games;
mod text;

pub use compute::{RankedModel, Ranking, ranking};
pub use duel::PairwiseComparison;
