//! Negatives: rejected evaluations that are derived from correct ones (ACE-M³ §3.4: scores;
//! `HDCEval` §3.3: rationales and references).

mod derive;
mod evaluation_content;
mod evaluation_format;
mod not_applicable;
mod prompt_sections;
mod reference_statements;

pub(crate) use derive::{
    DerivedNegative, derive_any_negative, derive_every_negative, find_obstacle,
};
pub(crate) use evaluation_content::{EvaluationContent, EvaluationRatings};
pub(crate) use evaluation_format::{
    DetectedFormat, ParsedEvaluation, member_format, parse_evaluation,
};
pub use not_applicable::{NegativeCounts, NotApplicable};
pub(crate) use prompt_sections::PromptSections;
