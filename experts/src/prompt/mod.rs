//! Prompts: rubric, layouts, chat templates, and the format of an evaluation.

mod chat_template;
mod form;
mod format;
mod judge_input;
mod layout;
mod parse;
mod prompt_tokens;
mod rubric;
mod staged_prompt;
mod template;

pub use chat_template::ChatTemplate;
pub use form::Form;
pub(crate) use format::one_line;
pub use format::{EvaluationFormat, FormatStep, STOP, ScoreWords, TokenStep, render_free_text};
pub use judge_input::JudgeInput;
pub use layout::{BranchPrompts, FormFile, PromptForm, PromptLayout};
pub use prompt_tokens::{PromptToken, tokenize_pieces};
pub use rubric::{CriterionScale, Rubric, RubricDetail};
pub use staged_prompt::{PAIR_TEXTS, StagedPrompt};
pub use template::{PromptPiece, Template, TemplateValues};
