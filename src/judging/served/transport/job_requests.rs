//! The job whose requests a task sends.

use std::sync::{Arc, OnceLock};

tokio::task_local! {
    static JOB: JobRequests;
}

/// The requests of a job.
#[derive(Clone, Debug)]
pub(in crate::judging::served) struct JobRequests {
    number: u64,
    fate: Arc<OnceLock<JobFate>>,
}

/// What happened to a job first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum JobFate {
    /// The job sent a request.
    Sent,
    /// The job was cancelled before its first request.
    Cancelled,
}

impl JobRequests {
    /// Creates the requests of the job with a number, before the first one.
    pub(in crate::judging::served) fn new(number: u64) -> Self {
        Self { number, fate: Arc::default() }
    }

    /// Runs the requests. Those of earlier jobs are sent first.
    pub(in crate::judging::served) async fn run<T>(&self, requests: impl Future<Output = T>) -> T {
        JOB.scope(self.clone(), requests).await
    }

    /// Forbids the first request. Returns false if it was sent before.
    pub(in crate::judging::served) fn cancel(&self) -> bool {
        *self.fate.get_or_init(|| JobFate::Cancelled) == JobFate::Cancelled
    }
}

/// Returns the number of the job of the current task; 0 for requests outside of jobs, such as a handshake.
pub(super) fn current_job() -> u64 {
    JOB.try_with(|job| job.number).unwrap_or_default()
}

/// Marks the job of the current task as one that sends requests. Returns false if it was cancelled before.
pub(super) fn mark_sent() -> bool {
    JOB.try_with(|job| *job.fate.get_or_init(|| JobFate::Sent) == JobFate::Sent).unwrap_or(true)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn job_is_cancelled_only_before_its_first_request() {
        let (cancelled, sent) = (JobRequests::new(3), JobRequests::new(4));
        assert!(cancelled.cancel());
        assert!(!cancelled.run(async { mark_sent() }).await);
        assert_eq!(sent.run(async { (current_job(), mark_sent()) }).await, (4, true));
        assert!(!sent.cancel());
        assert!(sent.run(async { mark_sent() }).await);
        assert_eq!((current_job(), mark_sent()), (0, true));
    }
}
