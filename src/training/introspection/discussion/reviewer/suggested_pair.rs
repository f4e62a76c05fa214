//! A pair with a suggestion to review.

use crate::judging::judge::recorded_verdict::RecordedVerdict;
use crate::training::introspection::judged::misjudged_pair::MisjudgedPair;

/// A suggestion that agrees with the labels, for review.
#[derive(Clone, Copy)]
pub(crate) struct SuggestedPair<'a> {
    /// The pair.
    pub(crate) misjudged: &'a MisjudgedPair,
    /// The verdict, restricted to the presentation orders that agree with the labels.
    pub(crate) suggestion: &'a RecordedVerdict,
    /// Number of the suggestion, from 0.
    pub(crate) attempt: u32,
}
