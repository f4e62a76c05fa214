//! The conclusion model of acem3, which merges the branch evaluations into final scores.
//!
//! The conclusion model runs after the branch experts. [`MergePrompts`] builds its prompts and
//! [`ConclusionModel`] its generation tasks. [`Verdict`] combines both presentation orders.

mod merge;
mod model;
mod verdict;

pub use merge::{MergePrompts, prompt_source};
pub use model::ConclusionModel;
pub use verdict::{OrderVerdict, Verdict, compare_scores};
