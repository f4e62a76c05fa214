//! The thread that computes the jobs of a device.

use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::{self, JoinHandle};

use anyhow::{Context as _, Result};

use super::job_scheduler::JobScheduler;
use super::messages::receive;
use crate::judging::judge::JudgeJob;
use crate::judging::judge::job_queue::FinishedJob;
use crate::judging::panel::load::Panel;
use crate::judging::panel::options::JudgeOptions;

/// A finished job, or the error that ends the thread.
pub(super) type JobResult = Result<FinishedJob>;

/// What a thread is told.
enum JobMessage {
    /// Judge a job with this number.
    Start(u64, JudgeJob),
    /// Forget all jobs.
    Cancel,
}

/// A thread that computes jobs. When the value is dropped, the thread ends after its current step.
pub(super) struct JobThread {
    /// `None` while the value is dropped.
    messages: Option<Sender<JobMessage>>,
    thread: Option<JoinHandle<()>>,
    /// Number of jobs in progress.
    pub(super) in_progress: usize,
}

impl JobThread {
    /// Starts the thread of a panel. It sends its results to `results`.
    ///
    /// # Errors
    ///
    /// The system starts no thread.
    pub(super) fn start(
        panel: Arc<Panel>,
        options: JudgeOptions,
        results: Sender<JobResult>,
    ) -> Result<Self> {
        let (sender, messages) = channel();
        let scheduler = JobScheduler::new(panel, options);
        let thread = thread::Builder::new()
            .name("panel".to_owned())
            .spawn(move || compute_jobs(scheduler, &messages, &results))
            .context("cannot start the thread of the panel")?;
        Ok(Self { messages: Some(sender), thread: Some(thread), in_progress: 0 })
    }

    /// Starts a job. If the thread has ended, the job never finishes.
    pub(super) fn submit(&mut self, number: u64, job: JudgeJob) {
        self.in_progress += 1;
        self.send(JobMessage::Start(number, job));
    }

    /// Ends all jobs. Results that are already sent may still arrive.
    pub(super) fn cancel(&mut self) {
        self.in_progress = 0;
        self.send(JobMessage::Cancel);
    }

    /// Returns true if the thread has ended although it has jobs.
    pub(super) fn has_failed(&self) -> bool {
        self.in_progress > 0 && self.thread.as_ref().is_none_or(JoinHandle::is_finished)
    }

    fn send(&self, message: JobMessage) {
        if let Some(messages) = &self.messages {
            // The receiver is gone if the thread has ended: see `has_failed`.
            let _ = messages.send(message);
        }
    }
}

impl Drop for JobThread {
    fn drop(&mut self) {
        drop(self.messages.take());
        if let Some(thread) = self.thread.take() {
            // A panic of the thread was reported as an error of its jobs.
            let _ = thread.join();
        }
    }
}

/// Computes jobs until their sender is gone, or until an error.
fn compute_jobs(
    mut scheduler: JobScheduler,
    messages: &Receiver<JobMessage>,
    results: &Sender<JobResult>,
) {
    loop {
        match receive(messages, scheduler.is_idle()) {
            Ok(Some(JobMessage::Cancel)) => {
                scheduler.cancel();
                continue;
            }
            Ok(Some(JobMessage::Start(number, job))) => {
                if let Err(error) = rayon::scope(|_| scheduler.start(number, job)) {
                    let _ = results.send(Err(error));
                    return;
                }
                continue;
            }
            Ok(None) => {}
            Err(_) => return,
        }
        // On a thread of the pool, small parallel operations start without waking another thread. A
        // scope for each step lets several devices take turns.
        match rayon::scope(|_| scheduler.step()) {
            Ok(finished) => {
                // The receiver is gone if the judge is dropped.
                finished.into_iter().for_each(|job| drop(results.send(Ok(job))));
            }
            Err(error) => {
                let _ = results.send(Err(error));
                return;
            }
        }
    }
}
