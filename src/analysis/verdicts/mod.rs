//! Verdicts of a run for statistics: the scores of its records, without their analyses.

pub(crate) mod caption;
mod pair_verdict;
mod read;
mod response_length;
mod score_kind;
mod scored_response;
mod slim_record;
mod subgroup_fields;
#[expect(clippy::module_inception)]
mod verdicts;

pub use pair_verdict::{OrderScores, PairVerdict, TargetScoreMap};
pub use read::{from_records, read};
pub use response_length::length_bin;
pub use score_kind::ScoreKind;
pub use subgroup_fields::{meta_field, meta_fields_hint, metas_of, subgroup_fields};
pub use verdicts::Verdicts;
