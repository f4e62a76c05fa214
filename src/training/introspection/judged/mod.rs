//! What a panel of a round judges, and the pairs that it misjudges.

pub(super) mod misjudged_pair;
pub(super) mod review;
pub(super) mod round_judging;
