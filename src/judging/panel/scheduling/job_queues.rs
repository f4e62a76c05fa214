//! Jobs in progress on all devices of a panel.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant};

use acem3_conclusion::Verdict;
use anyhow::{Context as _, Result, bail};

use super::job_scheduler::JobResult;
use super::job_thread::JobThread;
use super::job_window::JobWindow;
use crate::data::cases::Case;
use crate::judging::judge::job_queue::{FinishedJob, JobQueue};
use crate::judging::judge::{JudgeJob, Unscored};
use crate::judging::panel::load::Panel;
use crate::judging::panel::options::JudgeOptions;

/// Longest wait for a result before the threads are checked.
const CHECK_INTERVAL: Duration = Duration::from_secs(1);

/// A thread for each device, and the jobs that they compute.
pub(in crate::judging::panel) struct JobQueues {
    devices: Vec<JobThread>,
    results: Receiver<JobResult>,
    /// Jobs in progress, by the number that their thread knows.
    jobs: HashMap<u64, SubmittedJob>,
    /// Number of the next job for its thread.
    next: u64,
    /// Case and device of the last job.
    last: Option<(Arc<Case>, usize)>,
    window: JobWindow,
    /// Results that arrived before the other jobs were cancelled.
    ready: VecDeque<JobResult>,
}

/// A job in progress.
struct SubmittedJob {
    /// The number under which it was submitted.
    number: u64,
    device: usize,
}

impl JobQueues {
    /// Starts a thread for each copy of a panel. `batch_size`: the most jobs in progress per device.
    ///
    /// # Errors
    ///
    /// The system starts no thread.
    pub(in crate::judging::panel) fn start(
        copies: Vec<Arc<Panel>>,
        options: JudgeOptions,
        batch_size: usize,
    ) -> Result<Self> {
        let (sender, results) = channel();
        let window = JobWindow::new(batch_size, copies.len());
        let start = |copy| JobThread::start(copy, options, sender.clone());
        let devices = copies.into_iter().map(start).collect::<Result<_>>()?;
        Ok(Self {
            devices,
            results,
            jobs: HashMap::new(),
            next: 0,
            last: None,
            window,
            ready: VecDeque::new(),
        })
    }

    /// Judges jobs and returns their results in order. No other job may be in progress.
    ///
    /// # Errors
    ///
    /// A thread fails.
    pub(in crate::judging::panel) fn judge_all(
        &mut self,
        jobs: &[JudgeJob],
    ) -> Result<Vec<Result<Verdict, Unscored>>> {
        let mut results: Vec<Option<Result<Verdict, Unscored>>> =
            jobs.iter().map(|_| None).collect();
        for (number, job) in (0..).zip(jobs) {
            self.submit(number, job.clone());
        }
        while !self.jobs.is_empty() {
            if let Some(finished) = self.next_finished(CHECK_INTERVAL)?
                && let Some(result) = results.get_mut(finished.number as usize)
            {
                *result = Some(finished.result);
            }
        }
        results.into_iter().map(|result| result.context("a job has no result")).collect()
    }

    /// Returns the device for a job: that of the last job if both belong to one case, because it has
    /// the image and the common start of the prompts. If it has its share of the jobs, or for another
    /// case, returns the one with the fewest jobs.
    fn device_for(&self, job: &JudgeJob) -> usize {
        let share = self.window.jobs().div_ceil(self.devices.len().max(1));
        let has_room = |device: &usize| {
            self.devices.get(*device).is_some_and(|device| device.in_progress < share)
        };
        let last = self.last.as_ref().filter(|(case, _)| Arc::ptr_eq(case, &job.case));
        let last = last.map(|(_, device)| *device).filter(has_room);
        last.unwrap_or_else(|| {
            let loads = self.devices.iter().map(|device| device.in_progress).enumerate();
            loads.min_by_key(|(_, jobs)| *jobs).map_or(0, |(device, _)| device)
        })
    }

    /// Removes a finished job from those in progress. Returns `None` if the job was cancelled.
    fn finish(&mut self, finished: FinishedJob) -> Option<FinishedJob> {
        let SubmittedJob { number, device } = self.jobs.remove(&finished.number)?;
        if let Some(device) = self.devices.get_mut(device) {
            device.in_progress = device.in_progress.saturating_sub(1);
        }
        if finished.result.is_ok() {
            self.window.finish_job(Instant::now());
        }
        Some(FinishedJob { number, result: finished.result })
    }
}

impl JobQueue for JobQueues {
    fn capacity(&self) -> usize {
        self.window.jobs()
    }

    fn check_budget(&self) -> Result<()> {
        Ok(())
    }

    fn submit(&mut self, number: u64, job: JudgeJob) {
        let index = self.device_for(&job);
        let thread_number = self.next;
        self.next += 1;
        self.last = Some((Arc::clone(&job.case), index));
        self.jobs.insert(thread_number, SubmittedJob { number, device: index });
        self.window.start_job(Instant::now());
        if let Some(device) = self.devices.get_mut(index) {
            device.submit(thread_number, job);
        }
    }

    fn interrupt_note(&self) -> &'static str {
        "stopping; the next run judges the cases in progress"
    }

    fn cancel_unsent(&mut self) -> usize {
        self.devices.iter_mut().for_each(|device| device.cancel(self.next));
        while let Ok(result) = self.results.try_recv() {
            let result = result.map(|finished| self.finish(finished)).transpose();
            self.ready.extend(result);
        }
        let cancelled = self.jobs.len();
        self.jobs.clear();
        cancelled
    }

    fn next_finished(&mut self, timeout: Duration) -> Result<Option<FinishedJob>> {
        let end = Instant::now() + timeout;
        if let Some(ready) = self.ready.pop_front() {
            return ready.map(Some);
        }
        while !self.jobs.is_empty() {
            let left = end.saturating_duration_since(Instant::now());
            let received = match self.results.recv_timeout(left.min(CHECK_INTERVAL)) {
                Err(RecvTimeoutError::Timeout) => {
                    if self.devices.iter().any(JobThread::has_failed) {
                        // The thread sends its results and its error before it ends.
                        self.results.try_recv().map_err(|_| RecvTimeoutError::Disconnected)
                    } else if left.is_zero() {
                        return Ok(None);
                    } else {
                        continue;
                    }
                }
                received => received,
            };
            let Ok(result) = received else {
                bail!("a thread of the panel failed");
            };
            if let Some(finished) = self.finish(result?) {
                return Ok(Some(finished));
            }
        }
        Ok(None)
    }
}
