//! The conclusion model of acem3: merging three branch evaluations into a verdict.
//!
//! Stage 9 of a judgement. [`MergePrompts`] writes what the conclusion model reads, [`Verdict`] is
//! what both presentation orders come to.

mod merge;
mod verdict;

pub use merge::{MergePrompts, source};
pub use verdict::{OrderVerdict, Verdict, compare};
