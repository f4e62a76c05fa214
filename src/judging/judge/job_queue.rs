//! Jobs in progress of a judge that takes new jobs before it has finished earlier ones.

use std::time::Duration;

use acem3_conclusion::Verdict;

use super::judge_job::{JudgeJob, Unscored};

/// A job and its result.
#[derive(Debug)]
pub struct FinishedJob {
    /// The number under which the job was submitted.
    pub number: u64,
    /// The result.
    pub result: Result<Verdict, Unscored>,
}

/// Jobs in progress. They finish in any order; a verdict depends only on its job.
pub trait JobQueue {
    /// Returns the maximum number of jobs in progress.
    fn capacity(&self) -> usize;

    /// Checks that another job may start.
    ///
    /// # Errors
    ///
    /// The run has reached its cost limit. Jobs in progress still finish.
    fn check_budget(&self) -> anyhow::Result<()>;

    /// Starts a job under a number.
    fn submit(&mut self, number: u64, job: JudgeJob);

    /// Returns what an interrupt does, for the user.
    fn interrupt_note(&self) -> &'static str;

    /// Ends the jobs that an interrupt does not wait for: all jobs that this process computes, and those that have sent
    /// no request. Returns their number; they never finish.
    fn cancel_unsent(&mut self) -> usize;

    /// Waits for the next finished job; `None` if none finishes in time, or none is in progress.
    ///
    /// # Errors
    ///
    /// An error ends the run.
    fn next_finished(&mut self, timeout: Duration) -> anyhow::Result<Option<FinishedJob>>;
}
