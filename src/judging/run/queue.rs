//! A run with a judge that has a queue: jobs of many cases are in progress, and finished records are
//! written as soon as all records before them are.

use std::time::{Duration, Instant};

use anyhow::Context as _;

use super::pending::{PendingOutcome, PendingRecord};
use super::queue_state::QueueState;
use super::{BATCH_PIXELS, MAX_PENDING, Run, job_size};
use crate::judging::judge::job_queue::FinishedJob;
use crate::judging::run::record::Record;
use crate::judging::run::summary::tally::Origin;
use crate::support::terminal::exit::RunFailure;

/// Pixels of the images and bytes of the cases of the jobs in the queue, at most.
const QUEUE_PIXELS: u64 = 4 * BATCH_PIXELS;
/// Longest wait for a job before the run looks for an interrupt.
const POLL: Duration = Duration::from_millis(200);
/// Time between two syncs of the journal.
const SYNC_INTERVAL: Duration = Duration::from_secs(2);

impl Run<'_> {
    /// Adds a record. Its job enters the queue when there is room.
    pub(super) fn push_to_queue(&mut self, mut pending: PendingRecord) -> anyhow::Result<()> {
        let size = match &pending.outcome {
            PendingOutcome::AwaitingJudge(job) => Some(job_size(job)),
            PendingOutcome::Known(..) | PendingOutcome::InQueue { .. } => None,
        };
        while !self.has_room(size) {
            if self.interrupt.is_requested() {
                // The run ends after the jobs in progress.
                return Ok(());
            }
            self.collect(POLL)?;
            self.write_finished()?;
        }
        if let (PendingOutcome::AwaitingJudge(job), Some(size)) = (&pending.outcome, size) {
            if let Some(queue) = self.judge.queue()
                && let Err(error) = queue.check_budget()
            {
                self.drain_queue()?;
                return Err(error);
            }
            let number = self.queue.next;
            if let Some(queue) = self.judge.queue() {
                queue.submit(number, job.clone());
            }
            self.queue.next += 1;
            self.queue.in_progress += 1;
            self.queue.size += size;
            pending.outcome = PendingOutcome::InQueue { number, size };
        }
        self.pending.push_back(pending);
        while self.collect(Duration::ZERO)? {}
        self.write_finished()
    }

    /// Returns true if another record fits into memory. `size`: that of its job, if it has one.
    fn has_room(&mut self, size: Option<u64>) -> bool {
        if self.queue.in_progress == 0 {
            return true;
        }
        let capacity = self.judge.queue().map_or(1, |queue| queue.capacity());
        let QueueState { in_progress, size: queued, .. } = self.queue;
        let fits = |size| in_progress < capacity && queued + size <= QUEUE_PIXELS;
        self.pending.len() < MAX_PENDING && size.is_none_or(fits)
    }

    /// Waits for all jobs and saves their records. After an interrupt, waits only for jobs that have cost
    /// something: those that have sent requests.
    pub(super) fn drain_queue(&mut self) -> anyhow::Result<()> {
        while self.queue.in_progress > 0 {
            if self.interrupt.is_requested()
                && let Some(queue) = self.judge.queue()
            {
                let cancelled = queue.cancel_unsent();
                self.queue.cancelled += cancelled;
                self.queue.in_progress -= cancelled;
            }
            self.collect(POLL)?;
            self.write_finished()?;
        }
        self.write_ready()?;
        self.set_aside_finished()?;
        self.journal.sync()?;
        self.progress.update(self.tally.progress());
        Ok(())
    }

    /// Takes a finished job; returns false if none finishes in time.
    fn collect(&mut self, timeout: Duration) -> anyhow::Result<bool> {
        let Some(queue) = self.judge.queue() else {
            return Ok(false);
        };
        let finished = queue.next_finished(timeout).with_context(|| {
            RunFailure(
                "the judge failed\nhint: finished verdicts are safe; run the same command again to \
                 resume"
                    .to_owned(),
            )
        });
        let Some(finished) = finished? else {
            return Ok(false);
        };
        self.store(finished)?;
        Ok(true)
    }

    /// Saves the results of all finished jobs when the run ends with an error.
    pub(super) fn keep_finished(&mut self) -> anyhow::Result<()> {
        while self.queue.in_progress > 0
            && let Some(queue) = self.judge.queue()
        {
            match queue.next_finished(Duration::ZERO) {
                Ok(Some(finished)) => self.store(finished)?,
                Ok(None) => break,
                // Another job that ended with an error.
                Err(_) => self.queue.in_progress -= 1,
            }
        }
        self.write_ready()?;
        self.set_aside_finished()?;
        self.journal.sync()
    }

    /// Saves finished records that cannot be written yet, because earlier ones are not finished.
    fn set_aside_finished(&mut self) -> anyhow::Result<()> {
        for PendingRecord { subject, outcome, .. } in &self.pending {
            if let PendingOutcome::Known(outcome, Origin::Judge) = outcome
                && subject.key.is_some_and(|key| !self.journal.is_set_aside(&key))
            {
                self.journal.set_aside(&Record::new(subject.clone(), outcome.clone()))?;
            }
        }
        Ok(())
    }

    /// Stores the result of a job.
    fn store(&mut self, FinishedJob { number, result }: FinishedJob) -> anyhow::Result<()> {
        let outcome = self.to_outcome(result)?;
        let is_job = |outcome: &PendingOutcome| match outcome {
            PendingOutcome::InQueue { number: n, .. } => *n == number,
            PendingOutcome::Known(..) | PendingOutcome::AwaitingJudge(_) => false,
        };
        if let Some(pending) = self.pending.iter_mut().find(|pending| is_job(&pending.outcome)) {
            if let PendingOutcome::InQueue { size, .. } = pending.outcome {
                self.queue.size = self.queue.size.saturating_sub(size);
            }
            pending.outcome = PendingOutcome::Known(outcome, Origin::Judge);
        }
        self.queue.in_progress -= 1;
        Ok(())
    }

    /// Writes finished records up to the first one that is not. Every few seconds, it sets those after it
    /// aside and syncs the journal.
    fn write_finished(&mut self) -> anyhow::Result<()> {
        let waiting = self.pending.len();
        self.write_ready()?;
        if self.pending.len() < waiting {
            self.progress.update(self.tally.progress());
        }
        if self.queue.last_sync.is_none_or(|last| last.elapsed() >= SYNC_INTERVAL) {
            self.set_aside_finished()?;
            self.journal.sync()?;
            self.queue.last_sync = Some(Instant::now());
        }
        Ok(())
    }
}
