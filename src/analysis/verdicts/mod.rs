//! The verdicts of a run as statistics want them: read back from its records, the analyses left behind.

mod field;
mod read;
mod slim;
mod verdict;

pub use field::{dimensions, length_bin, words};
pub use read::{Verdicts, of_records, read};
pub use verdict::{OrderScores, PairVerdict, ScoreKind, TargetScoreMap};
