//! The panel: four members loaded from files, judging pairs.
//!
//! Files and hashes are read here; the mathematics is in the crates below. A panel's own form is a
//! folder with a `panel.toml`; published checkpoints are read too, one or four of them.

pub(crate) mod image_encoder;
mod inspect;
mod load;
mod panel_judge;
mod trunk_group;

pub use crate::judging::panel::panel_judge::{JudgeOptions, PanelJudge};
pub use inspect::{Inspection, inspect};
pub use load::Panel;
