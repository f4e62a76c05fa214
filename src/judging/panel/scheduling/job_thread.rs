//! The thread that computes the jobs of a device.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::{self, JoinHandle};

use anyhow::{Context as _, Result};

use super::job_scheduler::{JobResult, JobScheduler};
use super::messages::receive;
use crate::judging::judge::JudgeJob;
use crate::judging::panel::load::Panel;
use crate::judging::panel::options::JudgeOptions;

/// What a thread is told.
enum JobMessage {
    /// Judge a job with this number.
    Start(u64, JudgeJob),
    /// Forget all jobs.
    Cancel,
}

/// A thread that computes jobs. When the value is dropped, the thread ends after the current step, or the
/// image that it encodes.
pub(super) struct JobThread {
    /// `None` while the value is dropped.
    messages: Option<Sender<JobMessage>>,
    thread: Option<JoinHandle<()>>,
    /// Jobs with smaller numbers are cancelled.
    first_job: Arc<AtomicU64>,
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
        let first_job = Arc::new(AtomicU64::new(0));
        let own = JobComputation {
            scheduler: JobScheduler::new(panel, options),
            messages,
            results,
            first_job: Arc::clone(&first_job),
        };
        let thread = thread::Builder::new()
            .name("panel".to_owned())
            .spawn(move || own.run())
            .context("cannot start the thread of the panel")?;
        Ok(Self { messages: Some(sender), thread: Some(thread), first_job, in_progress: 0 })
    }

    /// Starts a job. If the thread has ended, the job never finishes.
    pub(super) fn submit(&mut self, number: u64, job: JudgeJob) {
        self.in_progress += 1;
        self.send(JobMessage::Start(number, job));
    }

    /// Ends all jobs before a number. Results that are already sent may still arrive.
    pub(super) fn cancel(&mut self, next: u64) {
        self.in_progress = 0;
        self.first_job.store(next, Ordering::SeqCst);
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
        self.first_job.store(u64::MAX, Ordering::SeqCst);
        drop(self.messages.take());
        if let Some(thread) = self.thread.take() {
            // A panic of the thread was reported as an error of its jobs.
            let _ = thread.join();
        }
    }
}

/// What the thread owns.
struct JobComputation {
    scheduler: JobScheduler,
    messages: Receiver<JobMessage>,
    results: Sender<JobResult>,
    /// Jobs with smaller numbers are cancelled.
    first_job: Arc<AtomicU64>,
}

impl JobComputation {
    /// Computes jobs until their sender is gone. Sends an error before it ends with it.
    fn run(mut self) {
        while let Ok(message) = receive(&self.messages, self.scheduler.is_idle()) {
            // On a thread of the pool, small parallel operations start without waking another thread. A
            // scope for each step lets several devices take turns.
            if let Err(error) = rayon::scope(|_| self.process(message)) {
                let _ = self.results.send(Err(error));
                return;
            }
        }
    }

    /// Processes a message, or computes a step if there is none.
    fn process(&mut self, message: Option<JobMessage>) -> Result<()> {
        match message {
            Some(JobMessage::Cancel) => self.scheduler.cancel(),
            Some(JobMessage::Start(number, job)) => {
                if number >= self.first_job.load(Ordering::SeqCst) {
                    let case = Arc::clone(&job.case);
                    let started = self.scheduler.start(number, job);
                    started.with_context(|| format!("case `{}`", case.id))?;
                }
            }
            None => {
                for result in self.scheduler.step() {
                    let finished = result.with_context(|| self.scheduler.describe_jobs())?;
                    // The receiver is gone if the judge is dropped.
                    let _ = self.results.send(Ok(finished));
                }
            }
        }
        Ok(())
    }
}
