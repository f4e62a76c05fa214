//! Prompts: rubric, layouts, chat templates, and the format of an evaluation.

mod chat_template;
mod format;
mod layout;
mod parse;
mod prompt_tokens;
mod rubric;
mod staged_prompt;
mod template;

pub use chat_template::ChatTemplate;
pub(crate) use format::one_line;
pub use format::{EvaluationFormat, FormatStep, STOP, TokenStep, render_free_text};
pub use layout::{BranchPrompts, JudgeInput, PromptLayout};
pub use prompt_tokens::{PromptToken, tokenize_pieces};
pub use rubric::{CriterionScale, Rubric, RubricDetail};
pub use staged_prompt::StagedPrompt;
pub use template::{PromptPiece, Template};
