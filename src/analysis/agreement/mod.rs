//! Whether a judge can be trusted: its verdicts beside what people said, and people beside each other.
//!
//! Labels are joined to verdicts ([`LabelledUnits`]); what is compared is a [`StatisticGroup`] of statistics over the same
//! cases, of which every draw of the bootstrap computes all. Orders of pairs, triples of responses and
//! scores of single responses are three families; the raters among themselves have the same, which is the
//! ceiling that no judge need pass.

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
mod tables;
mod units;

pub use crate::analysis::agreement::agreement_statistic::{
    AgreementStatistic, HumanCeiling, figures,
};
pub use crate::analysis::agreement::by_target::{
    Agreement, AgreementConfig, SubgroupAgreement, TargetAgreement, agreement,
};
pub use crate::analysis::agreement::judge_comparison::{
    JudgeComparison, StatisticComparison, compare,
};
pub use crate::analysis::agreement::statistic_group::StatisticGroup;
pub use coverage::Coverage;
pub use join::join;
pub use statistic::Statistic;
pub use units::{LabelledUnits, PairRatings, PairUnit, ResponseUnit, TargetUnits, TripleUnit};
