//! Verification of a run: checks every record, and judges a sample of them again.

mod checked_run;
mod compared_values;
mod judged_again;
mod sampled_images;

pub use self::checked_run::{CheckRequest, CheckedRun, KeyProblem};
pub use self::compared_values::{ValueDifference, compare_values};
pub use self::judged_again::{JudgedAgain, RecordDifference, Tolerance, judge_again};
pub use self::sampled_images::SampledImages;
