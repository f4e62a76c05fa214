//! The conclusion model of acem3, which merges three branch evaluations into final scores.
//!
//! This is stage 9 of judging a pair. [`MergePrompts`] builds the prompts of the conclusion model,
//! [`ConclusionModel`] its generation tasks. [`Verdict`] combines both presentation orders.

mod merge;
mod model;
mod verdict;

pub use merge::{MergePrompts, prompt_source};
pub use model::{CONCLUSION_MEMBER, ConclusionModel};
pub use verdict::{OrderVerdict, Verdict, compare_scores};
