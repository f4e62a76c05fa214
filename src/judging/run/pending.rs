//! What stands in a run's window: records in the order of the input, some of which wait for the judge.

use super::record::{RecordOutcome, RecordSubject};
use super::tally::Origin;
use crate::judging::judge::PairJob;

/// A record to be: its place in the order is fixed, its outcome may have to wait for the judge.
pub(super) struct PendingRecord {
    pub(super) subject: RecordSubject,
    pub(super) step: PendingOutcome,
    /// What the last record of something ends.
    pub(super) ends: Option<RecordBoundary>,
}

/// What a record ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RecordBoundary {
    /// A case.
    Case,
    /// A case that could not be read.
    Unreadable,
    /// What was left out of a case.
    LeftOut,
}

pub(super) enum PendingOutcome {
    Ready(RecordOutcome, Origin),
    Waits(PairJob),
}
