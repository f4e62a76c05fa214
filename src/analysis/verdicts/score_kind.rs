//! The two kinds of scores of a judge.

use serde::{Deserialize, Serialize};

/// Kind of a judge's scores that is analysed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, clap::ValueEnum)]
#[serde(rename_all = "snake_case")]
pub enum ScoreKind {
    /// Chosen scores: the most probable ones
    #[default]
    Chosen,
    /// Expected scores: the means under the judge's probabilities
    Expected,
}
