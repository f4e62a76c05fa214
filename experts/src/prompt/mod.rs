//! Prompts as data: rubric, layouts, and the locked form of an evaluation.

mod dialogue;
mod format;
mod layout;
mod reading;
mod rubric;
mod slots;
mod stages;
mod template;

pub use dialogue::Dialogue;
pub(crate) use format::one_line;
pub use format::{Format, STOP, Step, TokenStep, free_text};
pub use layout::{BranchPrompts, JudgeInput, Layout};
pub use rubric::{Detail, Rubric, Scale};
pub use slots::{Slot, slots};
pub use stages::StagedPrompt;
pub use template::{Piece, Template};
