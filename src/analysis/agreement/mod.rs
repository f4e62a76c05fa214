//! Agreement between a judge and human labels, and among raters.
//!
//! Labels are joined to verdicts ([`LabelledUnits`]). A [`StatisticGroup`] contains the statistics of
//! the same cases: of pair orders, of triples, or of response scores. Each bootstrap resample
//! computes all statistics of a group. The human ceiling ([`HumanCeiling`]) is the same statistic
//! among raters.

mod by_target;
mod judge_comparison;
mod statistic_bound;
mod statistics;
mod tables;
mod units;

pub use crate::analysis::agreement::by_target::{
    Agreement, AgreementConfig, SubgroupAgreement, TargetAgreement, compute_agreement,
};
pub use crate::analysis::agreement::judge_comparison::{
    JudgeComparison, StatisticComparison, compare_judges,
};
pub use crate::analysis::agreement::statistic_bound::{
    BoundSide, MeasuredStatistic, StatisticBound, StatisticValue, parse_bound,
};
pub use crate::analysis::agreement::statistics::agreement_statistic::{
    AgreementStatistic, HumanCeiling, compute_statistics,
};
pub use crate::analysis::agreement::statistics::coverage::Coverage;
pub use crate::analysis::agreement::statistics::statistic::Statistic;
pub use crate::analysis::agreement::statistics::statistic_group::StatisticGroup;
pub use crate::analysis::agreement::units::join::join_labels;
pub use crate::analysis::agreement::units::labelled_units::{
    LabelledUnits, PairRatings, PairUnit, ResponseUnit, TargetUnits, TripleUnit,
};
