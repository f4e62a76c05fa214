//! The tables of the papers: a training, changed in one thing after another, with several seeds
//! (ACE-M³ §4.4, `HDCEval` §4.4).

mod table;
mod trial;
mod variant;

pub use table::{AblationRow, AblationTable, SeedStatistic};
pub use trial::{AblationConfig, run};
pub use variant::{AblationStudy, Variant};
