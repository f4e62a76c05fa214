//! State of the jobs that a judge has in its queue.

use std::time::Instant;

/// Jobs in the queue of the judge.
#[derive(Debug, Default)]
pub(super) struct QueueState {
    /// Number of the next job.
    pub(super) next: u64,
    /// Number of jobs in progress.
    pub(super) in_progress: usize,
    /// Number of jobs that an interrupt ended before their first request.
    pub(super) cancelled: usize,
    /// Sum of the sizes of the jobs.
    pub(super) size: u64,
    /// Time of the last sync of the journal.
    pub(super) last_sync: Option<Instant>,
}
