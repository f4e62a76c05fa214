//! Prompts: rubric, layouts, chat templates, and the format of an evaluation.

mod chat_template;
mod form;
mod format;
mod formats_by_length;
mod image_sections;
mod judge_input;
mod knowledge_prompt;
mod layout;
mod parse;
mod prompt_tokens;
mod rubric;
mod rubric_content;
mod rubric_toml;
mod score_words;
mod staged_prompt;
mod template;

pub use chat_template::{ChatTemplate, ImageMarkers};
pub use form::Form;
pub(crate) use format::one_line;
pub use format::{EvaluationFormat, FormatStep, NO_TOKEN, STOP, TokenStep, render_free_text};
pub use formats_by_length::FormatsByLength;
pub use judge_input::JudgeInput;
pub use knowledge_prompt::{
    AnsweredQuestion, CompletionPart, KnowledgePrompt, QUESTION, QuestionInText,
};
pub use layout::{BranchPrompts, FormFile, PromptForm, PromptLayout};
pub use prompt_tokens::{PromptToken, tokenize_pieces};
pub use rubric::{Rubric, RubricAspect, RubricCriterion, RubricDetail};
pub use score_words::ScoreWords;
pub use staged_prompt::{PAIR_TEXTS, StagedPrompt};
pub use template::{PromptPiece, Template, TemplateValues};
