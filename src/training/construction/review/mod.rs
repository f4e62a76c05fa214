//! Review of evaluations by people: a stratified sample is exported for rating and read back.

mod acceptance;
mod evaluation_rows;
mod sample;
mod sheet;

pub use self::acceptance::{Acceptance, AcceptedProportion};
pub use self::evaluation_rows::{EvaluationRow, EvaluationRows};
pub use self::sample::{SampleRequest, SampledStrata, write_sample};
pub use self::sheet::{ReviewRow, ReviewSheets};
