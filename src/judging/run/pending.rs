//! Records of a run in input order. Some of them wait for the judge.

use super::record::{RecordOutcome, RecordSubject};
use crate::judging::judge::JudgeJob;
use crate::judging::run::summary::tally::Origin;

/// A record at its position in the output. Its outcome may not be known yet.
pub(super) struct PendingRecord {
    pub(super) subject: RecordSubject,
    pub(super) outcome: PendingOutcome,
    /// Set for the last record of a case or problem.
    pub(super) completes: Option<InputItem>,
}

/// The input item that a record completes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum InputItem {
    /// A case.
    Case,
    /// A case that could not be read.
    Unreadable,
    /// A response or field of a case that was left out, or an unusable answer line.
    LeftOut,
}

/// The outcome of a pending record.
pub(super) enum PendingOutcome {
    /// A known outcome and its origin.
    Known(RecordOutcome, Origin),
    /// Responses that are not judged yet.
    AwaitingJudge(JudgeJob),
    /// Responses that the judge has in its queue.
    InQueue {
        /// The number of the job.
        number: u64,
        /// Pixels and bytes of the case.
        size: u64,
    },
}
