//! Number of jobs in progress of a panel that this process computes.

use std::time::{Duration, Instant};

/// Jobs per device at the start, so that the first verdict arrives soon.
const FIRST_JOBS: usize = 2;
/// Fewest jobs in progress per device once the first ones have finished. A step that continues few texts takes
/// almost as long as one that continues many.
const MIN_JOBS: usize = 4;
/// The number of jobs grows at most by this factor at a time, because the first few jobs give only a
/// rough estimate of the rate.
const MAX_GROWTH: usize = 8;
/// Time in which the jobs in progress finish. A short time loses few results when the program stops.
const WINDOW: Duration = Duration::from_secs(8);

/// Number of jobs in progress: as many as finish in a few seconds. It never affects a verdict.
#[derive(Debug)]
pub(in crate::judging) struct JobWindow {
    jobs: usize,
    /// Fewest jobs in progress once the first ones have finished.
    least: usize,
    max: usize,
    /// Jobs that finished since `start`.
    finished: usize,
    start: Option<Instant>,
}

impl JobWindow {
    /// Creates a window of at most `device_max` jobs on each of some devices.
    pub(in crate::judging) fn new(device_max: usize, devices: usize) -> Self {
        let devices = devices.max(1);
        let max = device_max.max(1).saturating_mul(devices);
        let (first, least) = (FIRST_JOBS * devices, MIN_JOBS * devices);
        Self { jobs: first.min(max), least, max, finished: 0, start: None }
    }

    /// Returns the number of jobs that may be in progress.
    pub(in crate::judging) fn jobs(&self) -> usize {
        self.jobs
    }

    /// Counts a job that starts.
    pub(in crate::judging) fn start_job(&mut self, now: Instant) {
        self.start.get_or_insert(now);
    }

    /// Counts a job that ended with a verdict, and adapts the number of jobs when as many have ended as were in
    /// progress. Jobs that are rejected take no time, so their rate says nothing about the others.
    pub(in crate::judging) fn finish_job(&mut self, now: Instant) {
        self.finished += 1;
        let Some(start) = self.start.filter(|_| self.finished >= self.jobs) else {
            return;
        };
        let seconds = now.saturating_duration_since(start).as_secs_f64().max(1e-3);
        let rate = self.finished as f64 / seconds;
        let jobs = (rate * WINDOW.as_secs_f64()) as usize;
        self.jobs = jobs.max(self.least).min(self.jobs * MAX_GROWTH).min(self.max);
        (self.finished, self.start) = (0, Some(now));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the number of jobs after some that take a time each.
    fn jobs_after(jobs: usize, seconds: f64, max: usize) -> usize {
        let mut window = JobWindow::new(max, 1);
        let start = Instant::now();
        window.start_job(start);
        for i in 1..=jobs {
            window.finish_job(start + Duration::from_secs_f64(seconds * i as f64));
        }
        window.jobs()
    }

    #[test]
    fn as_many_jobs_are_in_progress_as_finish_in_eight_seconds() {
        assert_eq!(jobs_after(0, 1.0, 64), 2);
        assert_eq!(jobs_after(200, 0.01, 64), 64);
        assert_eq!(jobs_after(200, 0.5, 64), 16);
        assert_eq!(jobs_after(1, 60.0, 64), 2);
        assert_eq!(jobs_after(200, 60.0, 64), 4);
        assert_eq!(jobs_after(200, 0.01, 1), 1);
        assert_eq!(JobWindow::new(64, 3).jobs(), 6);
    }
}
