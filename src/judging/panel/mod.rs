//! The panel judge: four members, loaded from files, that judge pairs together.
//!
//! A panel is a folder with a `panel.toml`, or one or four published checkpoints. The library
//! crates do the computation.

pub(crate) mod image_encoder;
mod inspect;
mod load;
mod pair_pass;
mod panel_judge;
mod trunk_group;

pub use crate::judging::panel::panel_judge::{JudgeOptions, PanelJudge};
pub use inspect::{Inspection, inspect};
pub use load::Panel;
