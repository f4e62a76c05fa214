//! The panel judge: four members, loaded from files, that judge pairs.
//!
//! A panel is a folder with a `panel.toml`, or one or four published checkpoints. The computation is in the
//! library crates.

pub(crate) mod image_encoder;
mod inspect;
mod load;
mod panel_judge;
mod trunk_group;

pub use crate::judging::panel::panel_judge::{JudgeOptions, PanelJudge};
pub use inspect::{Inspection, inspect};
pub use load::Panel;
