//! The verdicts of a run as statistics want them: read back from its records, the analyses left behind.

mod read;
mod slim;
mod subgroup_fields;
mod verdict;

pub use crate::analysis::verdicts::subgroup_fields::{dimensions, length_bin, words};
pub use read::{Verdicts, of_records, read};
pub use verdict::{OrderScores, PairVerdict, ScoreKind, TargetScoreMap};
