//! The panel: four members loaded from files, judging pairs.
//!
//! Files and hashes are read here; the mathematics is in the crates below. A panel's own form is a
//! folder with a `panel.toml`; published checkpoints are read too, one or four of them.

mod bench;
pub(crate) mod eyes;
mod group;
mod inspect;
mod load;

pub use bench::{JudgeOptions, PanelJudge};
pub use inspect::{Inspection, inspect};
pub use load::Panel;
