//! The conclusion model of acem3: merging three branch evaluations into a verdict.
//!
//! Stage 9 of a judgement. [`MergePrompts`] writes what the conclusion model reads,
//! [`ConclusionModel`] asks for it, [`Verdict`] is what both presentation orders come to.

mod merge;
mod model;
mod verdict;

pub use merge::{MergePrompts, source};
pub use model::{ConclusionModel, MEMBER};
pub use verdict::{OrderVerdict, Verdict, compare};
