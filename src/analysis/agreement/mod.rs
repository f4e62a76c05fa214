//! Whether a judge can be trusted: its verdicts beside what people said, and people beside each other.
//!
//! Labels are joined to verdicts ([`LabelledUnits`]); what is compared is a [`StatisticGroup`] of statistics over the same
//! cases, of which every draw of the bootstrap computes all. Orders of pairs, triples of responses and
//! scores of single responses are three families; the raters among themselves have the same, which is the
//! ceiling that no judge need pass.

mod against;
mod ceiling;
mod comparison;
mod consensus;
mod coverage;
mod family;
mod figure;
mod join;
mod opinion;
mod section;
mod statistic;
mod text;
mod units;

pub use against::{JudgeComparison, StatisticComparison, compare};
pub use coverage::Coverage;
pub use family::StatisticGroup;
pub use figure::{AgreementStatistic, HumanCeiling, figures};
pub use join::join;
pub use section::{Agreement, AgreementConfig, SubgroupAgreement, TargetAgreement, agreement};
pub use statistic::Statistic;
pub use text::TableSection;
pub(crate) use text::probability;
pub use units::{LabelledUnits, PairRatings, PairUnit, ResponseUnit, TargetUnits, TripleUnit};
