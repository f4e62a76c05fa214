//! Numbered requests in progress. They finish in any order.

use std::collections::HashMap;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::Duration;

use anyhow::{Context as _, Result, anyhow};
use tokio::runtime::{Builder, Runtime};
use tokio::task::AbortHandle;

use super::budget::Spending;
use super::transport::job_requests::JobRequests;
use super::transport::usage::UsageCounter;
use crate::judging::judge::server_usage::EarlierUsage;
use crate::judging::judge::{MemberError, Unscored};

/// Threads that send requests and read responses.
const THREADS: usize = 2;

/// Requests in progress, with the threads that send them.
pub(super) struct RequestQueue<T> {
    runtime: Runtime,
    sender: Sender<(u64, Result<T, MemberError>)>,
    receiver: Receiver<(u64, Result<T, MemberError>)>,
    running: HashMap<u64, RunningJob>,
    finished: usize,
    /// Requests of earlier commands that the run resumes.
    pub(super) earlier: EarlierUsage,
}

/// A job that has no result yet.
struct RunningJob {
    task: AbortHandle,
    requests: JobRequests,
}

impl<T: Send + 'static> RequestQueue<T> {
    /// Creates an empty queue.
    ///
    /// # Errors
    ///
    /// The threads cannot be started.
    pub(super) fn new() -> Result<Self> {
        let runtime = Builder::new_multi_thread().worker_threads(THREADS).enable_all().build();
        let runtime = runtime.context("cannot set up the HTTP client")?;
        let (sender, receiver) = channel();
        let earlier = EarlierUsage::default();
        Ok(Self { runtime, sender, receiver, running: HashMap::new(), finished: 0, earlier })
    }

    /// Waits for the result of requests outside of the queue.
    pub(super) fn block_on<R>(&self, requests: impl Future<Output = R>) -> R {
        self.runtime.block_on(requests)
    }

    /// Starts a request under a number. Requests with a smaller number are sent first.
    pub(super) fn submit(
        &mut self,
        number: u64,
        request: impl Future<Output = Result<T, MemberError>> + Send + 'static,
    ) {
        let sender = self.sender.clone();
        let requests = JobRequests::new(number);
        let job = requests.clone();
        // A task of its own, so that a panic is an error and the queue does not wait for ever.
        let task = self.runtime.spawn(async move { job.run(request).await });
        self.running.insert(number, RunningJob { task: task.abort_handle(), requests });
        self.runtime.spawn(async move {
            let result = task.await.unwrap_or_else(|error| {
                Err(MemberError::Unusable(format!("a request ended early: {error}")))
            });
            // The receiver is gone if the run ended.
            let _ = sender.send((number, result));
        });
    }

    /// Returns the number and the result of a finished request; `None` if none finishes in time.
    ///
    /// # Errors
    ///
    /// No request can succeed.
    pub(super) fn next_finished(
        &mut self,
        timeout: Duration,
    ) -> Result<Option<(u64, Result<T, Unscored>)>> {
        let (number, result) = loop {
            if self.running.is_empty() {
                return Ok(None);
            }
            match self.receiver.recv_timeout(timeout) {
                // Cancelled jobs have a result too.
                Ok((number, result)) if self.running.remove(&number).is_some() => {
                    break (number, result);
                }
                Ok(_) => {}
                Err(RecvTimeoutError::Timeout) => return Ok(None),
                Err(RecvTimeoutError::Disconnected) => {
                    return Err(anyhow!("no request is in progress"));
                }
            }
        };
        self.finished += 1;
        match result {
            Ok(value) => Ok(Some((number, Ok(value)))),
            Err(MemberError::Unscored(unscored)) => Ok(Some((number, Err(unscored)))),
            Err(MemberError::Unusable(message)) => Err(anyhow!(message)),
        }
    }

    /// Ends all jobs that have sent no request. Returns their number.
    pub(super) fn cancel_unsent(&mut self) -> usize {
        let before = self.running.len();
        self.running.retain(|_, job| {
            let is_cancelled = job.requests.cancel();
            if is_cancelled {
                // It may encode an image, or wait for a member on this machine.
                job.task.abort();
            }
            !is_cancelled
        });
        before - self.running.len()
    }

    /// Returns the number of requests in progress.
    pub(super) fn in_progress(&self) -> usize {
        self.running.len()
    }

    /// Returns the requests so far and what they used.
    pub(super) fn spending(&self, usage: &UsageCounter) -> Spending {
        let Self { earlier, finished, .. } = *self;
        let in_progress = self.running.len();
        Spending { usage: usage.usage(), earlier, finished, in_progress }
    }
}
