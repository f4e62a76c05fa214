//! Whether a judge can be trusted: its verdicts beside what people said, and people beside each other.
//!
//! Labels are joined to verdicts ([`Units`]); what is compared is a [`Family`] of statistics over the same
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

pub use against::{Against, Compared, compare};
pub use coverage::Coverage;
pub use family::Family;
pub use figure::{Ceiling, Figure, figures};
pub use join::join;
pub use section::{Agreement, Group, Plan, Section, agreement};
pub use statistic::Statistic;
pub use text::Part;
pub(crate) use text::probability;
pub use units::{PairUnit, Rated, ResponseUnit, TargetUnits, TripleUnit, Units};
