//! Records of a run in input order, some of which wait for the judge.

use super::record::{RecordOutcome, RecordSubject};
use super::tally::Origin;
use crate::judging::judge::PairJob;

/// A record whose position is fixed, but whose outcome may have to wait for the judge.
pub(super) struct PendingRecord {
    pub(super) subject: RecordSubject,
    pub(super) outcome: PendingOutcome,
    /// Set on the last record of a case or problem.
    pub(super) completes: Option<RecordBoundary>,
}

/// The input item that a record completes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RecordBoundary {
    /// A case.
    Case,
    /// A case that could not be read.
    Unreadable,
    /// A response or line that was left out.
    LeftOut,
}

/// The outcome of a pending record.
pub(super) enum PendingOutcome {
    /// Known, with its origin.
    Known(RecordOutcome, Origin),
    /// Not judged yet.
    AwaitingJudge(PairJob),
}
