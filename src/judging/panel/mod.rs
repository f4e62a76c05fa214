//! The panel judge: four members, loaded from files, that judge responses together.
//!
//! A panel is a folder with a `panel.toml`, or one or four published checkpoints. The library
//! crates do the computation.

mod finding_settings;
pub(crate) mod image_encoder;
mod inspect;
mod load;
mod local_members;
mod local_writer;
mod options;
mod panel_judge;
mod prompts;
mod scheduling;
mod tile_tokens;
mod trunk_group;

pub use crate::judging::panel::panel_judge::PanelJudge;
pub use inspect::{Inspection, inspect};
pub use load::Panel;
pub use local_members::LocalMembers;
pub use local_writer::LocalWriter;
pub use options::{JudgeOptions, PanelOptions};
pub use prompts::{MemberPrompt, PromptedPanel, member_prompts};
pub(crate) use prompts::{PromptMember, PromptMembers};
pub(in crate::judging) use scheduling::JobWindow;
pub use scheduling::LocalTask;
