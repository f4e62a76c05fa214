//! The tables of the papers: a training, changed in one thing after another, with several seeds
//! (ACE-M³ §4.4, `HDCEval` §4.4).

mod table;
mod trial;
mod variant;

pub use table::{Cell, Row, Table};
pub use trial::{Budget, run};
pub use variant::{Rows, Variant};
