//! Evaluations of a teacher for training: checked, with the prompts of the members that are trained.

mod collected_evaluation;
mod conversion;
pub mod recipe;
mod saved_images;
mod verdict_check;

pub use self::collected_evaluation::{CollectedEvaluation, RejectedEvaluation};
pub use self::conversion::{
    ConversionRequest, ConversionSummary, EVALUATIONS, REJECTED, SUMMARY, check_rubric,
    convert_records,
};
pub use self::verdict_check::{CheckRules, RejectReason, Rejection};
