//! Results of a comparison of encoders: accuracy with intervals, paired differences, costs, and the
//! baselines.

mod chart;
mod comparison;
mod csv;
mod encoder_input;
mod pair_values;
mod row;
mod tables;

pub(super) use comparison::ComparisonInput;
pub(super) use encoder_input::{EncoderInput, SeedRun};

pub use comparison::{JudgedComparison, MEASURE, MajorityRow};
pub use pair_values::{EncoderComparisonKind, PairedComparison};
pub use row::{JudgedRow, SeedAccuracy};
