//! What stands in a run's window: records in the order of the input, some of which wait for the judge.

use super::record::{Outcome, Subject};
use super::tally::Origin;
use crate::judging::judge::PairJob;

/// A record to be: its place in the order is fixed, its outcome may have to wait for the judge.
pub(super) struct Slot {
    pub(super) subject: Subject,
    pub(super) step: Step,
    /// What the last record of something ends.
    pub(super) ends: Option<End>,
}

/// What a record ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum End {
    /// A case.
    Case,
    /// A case that could not be read.
    Unreadable,
    /// What was left out of a case.
    LeftOut,
}

pub(super) enum Step {
    Ready(Outcome, Origin),
    Waits(PairJob),
}
