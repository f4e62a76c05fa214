//! Numbered requests in progress. They finish in any order.

use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::Duration;

use anyhow::{Context as _, Result, anyhow};
use tokio::runtime::{Builder, Runtime};

use super::budget::Spending;
use super::transport::run_as_job;
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
    in_progress: usize,
    finished: usize,
    /// Requests of earlier commands that the run resumes.
    pub(super) earlier: EarlierUsage,
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
        Ok(Self { runtime, sender, receiver, in_progress: 0, finished: 0, earlier })
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
        self.in_progress += 1;
        self.runtime.spawn(async move {
            // A task of its own, so that a panic is an error and the queue does not wait for ever.
            let result = tokio::spawn(run_as_job(number, request)).await;
            let result = result.unwrap_or_else(|error| {
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
        if self.in_progress == 0 {
            return Ok(None);
        }
        let (number, result) = match self.receiver.recv_timeout(timeout) {
            Ok(result) => result,
            Err(RecvTimeoutError::Timeout) => return Ok(None),
            Err(RecvTimeoutError::Disconnected) => {
                return Err(anyhow!("no request is in progress"));
            }
        };
        self.in_progress -= 1;
        self.finished += 1;
        match result {
            Ok(value) => Ok(Some((number, Ok(value)))),
            Err(MemberError::Unscored(unscored)) => Ok(Some((number, Err(unscored)))),
            Err(MemberError::Unusable(message)) => Err(anyhow!(message)),
        }
    }

    /// Returns the number of requests in progress.
    pub(super) fn in_progress(&self) -> usize {
        self.in_progress
    }

    /// Returns the requests so far and what they used.
    pub(super) fn spending(&self, usage: &UsageCounter) -> Spending {
        let Self { earlier, finished, in_progress, .. } = *self;
        Spending { usage: usage.usage(), earlier, finished, in_progress }
    }
}
