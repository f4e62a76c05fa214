//! Agreement between a judge and human labels, and among raters.
//!
//! Labels are joined to verdicts ([`LabelledUnits`]). A [`StatisticGroup`] holds statistics of the same cases,
//! which each bootstrap resample computes together: those of pair orders, of triples and of response scores.
//! The human ceiling ([`HumanCeiling`]) is the same statistic among raters.

mod agreement_statistic;
mod by_target;
mod case_ratings;
mod comparison_table;
mod consensus;
mod coverage;
mod csv_table;
mod human_ceiling;
mod join;
mod judge_comparison;
mod statistic;
mod statistic_group;
mod subgroups;
mod tables;
mod triples;
mod units;
mod verdict_index;

pub use crate::analysis::agreement::agreement_statistic::{
    AgreementStatistic, HumanCeiling, compute_statistics,
};
pub use crate::analysis::agreement::by_target::{
    Agreement, AgreementConfig, SubgroupAgreement, TargetAgreement, agreement,
};
pub use crate::analysis::agreement::judge_comparison::{
    JudgeComparison, StatisticComparison, compare_judges,
};
pub use crate::analysis::agreement::statistic_group::StatisticGroup;
pub use coverage::Coverage;
pub use join::join_labels;
pub use statistic::Statistic;
pub use units::{LabelledUnits, PairRatings, PairUnit, ResponseUnit, TargetUnits, TripleUnit};
