//! Limit on the requests in progress, adapted to what the server takes, and their order.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::oneshot;

/// Limit at the start.
const FIRST_LIMIT: usize = 8;
/// Attempts after which the limit is adapted, at least.
const MIN_WINDOW: usize = 8;
/// Proportion of overloaded attempts from which the limit falls. Single errors do not lower it.
const TOLERATED: f64 = 0.1;

/// The end of an attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum AttemptOutcome {
    /// The server answered.
    Succeeded,
    /// The connection or the response failed.
    Failed,
    /// The server has too many requests, or took too long.
    Overloaded,
}

/// Limit on the requests in progress. It rises while the server takes all requests, and falls if it
/// refuses many for lack of capacity. Among the requests that wait, those of the first job come first, so
/// that jobs finish in their order and few are unfinished when a run stops.
#[derive(Clone, Debug)]
pub(super) struct Limiter(Arc<LimiterShared>);

#[derive(Debug)]
struct LimiterShared {
    state: Mutex<LimiterState>,
    max: usize,
}

#[derive(Debug)]
struct LimiterState {
    limit: usize,
    in_progress: usize,
    /// Requests that wait, by the number of their job and their own.
    waiting: BTreeMap<(u64, u64), oneshot::Sender<Permit>>,
    /// Number of the next request that waits.
    next: u64,
    /// Attempts since the limit was adapted, and how many of them were overloaded.
    attempts: usize,
    overloaded: usize,
    /// True until the limit falls for the first time: it doubles, and then rises by a quarter.
    doubles: bool,
}

/// Permission for one attempt. Dropping it without an outcome releases it.
#[derive(Debug)]
pub(super) struct Permit {
    limiter: Limiter,
    outcome: Option<AttemptOutcome>,
}

impl Limiter {
    /// Creates a limiter of at most `max` requests.
    pub(super) fn new(max: usize) -> Self {
        let max = max.max(1);
        let limit = FIRST_LIMIT.min(max);
        let state = LimiterState {
            limit,
            in_progress: 0,
            waiting: BTreeMap::new(),
            next: 0,
            attempts: 0,
            overloaded: 0,
            doubles: true,
        };
        Self(Arc::new(LimiterShared { state: Mutex::new(state), max }))
    }

    /// Waits until an attempt for a job may start. Jobs have numbers in their order.
    pub(super) async fn acquire(&self, job: u64) -> Permit {
        loop {
            let granted = {
                let mut state = self.lock();
                if state.in_progress < state.limit {
                    state.in_progress += 1;
                    return self.permit();
                }
                let (sender, granted) = oneshot::channel();
                let key = (job, state.next);
                state.next += 1;
                state.waiting.insert(key, sender);
                granted
            };
            if let Ok(permit) = granted.await {
                return permit;
            }
        }
    }

    fn permit(&self) -> Permit {
        Permit { limiter: self.clone(), outcome: None }
    }

    /// Ends an attempt, and starts those that wait and may start now.
    fn release(&self, outcome: Option<AttemptOutcome>) {
        let mut granted = Vec::new();
        {
            let mut state = self.lock();
            state.in_progress = state.in_progress.saturating_sub(1);
            if let Some(outcome) = outcome {
                state.count(outcome, self.0.max);
            }
            while state.in_progress < state.limit
                && let Some((_, sender)) = state.waiting.pop_first()
            {
                state.in_progress += 1;
                granted.push(sender);
            }
        }
        for sender in granted {
            // A request that no longer waits gives its permit back when it is dropped here.
            drop(sender.send(self.permit()));
        }
    }

    fn lock(&self) -> MutexGuard<'_, LimiterState> {
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl LimiterState {
    /// Counts an attempt, and adapts the limit at the end of a window.
    fn count(&mut self, outcome: AttemptOutcome, max: usize) {
        self.attempts += 1;
        self.overloaded += usize::from(outcome == AttemptOutcome::Overloaded);
        if self.attempts < self.limit.max(MIN_WINDOW) {
            return;
        }
        let overloaded = self.overloaded as f64 / self.attempts as f64;
        self.limit = if overloaded > TOLERATED && self.overloaded > 1 {
            self.doubles = false;
            // All attempts overloaded: half of the limit.
            ((self.limit as f64 * (1.0 - overloaded / 2.0)) as usize).max(1)
        } else {
            let step = if self.doubles { self.limit } else { (self.limit / 4).max(1) };
            (self.limit + step).min(max)
        };
        (self.attempts, self.overloaded) = (0, 0);
    }
}

impl Permit {
    /// Ends the attempt.
    pub(super) fn finish(mut self, outcome: AttemptOutcome) {
        self.outcome = Some(outcome);
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        self.limiter.release(self.outcome);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn limit_after(limiter: &Limiter, attempts: usize, overloaded_of_100: usize) -> usize {
        for i in 0..attempts {
            let is_overloaded = i * 37 % 100 < overloaded_of_100;
            let outcome =
                if is_overloaded { AttemptOutcome::Overloaded } else { AttemptOutcome::Succeeded };
            let mut state = limiter.lock();
            state.count(outcome, limiter.0.max);
        }
        limiter.lock().limit
    }

    #[test]
    fn limit_rises_to_the_maximum_in_spite_of_single_errors() {
        assert_eq!(limit_after(&Limiter::new(32), 400, 5), 32);
        assert_eq!(limit_after(&Limiter::new(1), 400, 0), 1);
    }

    #[test]
    fn limit_doubles_until_the_server_is_overloaded() {
        let limiter = Limiter::new(64);
        // Windows of 8, 16 and 32 attempts.
        assert_eq!(limit_after(&limiter, 56, 0), 64);
        assert!(limit_after(&limiter, 64, 50) < 64);
        let fallen = limiter.lock().limit;
        assert_eq!(limit_after(&limiter, fallen, 0), (fallen + fallen / 4).min(64));
    }

    #[test]
    fn limit_falls_if_the_server_is_overloaded() {
        let limiter = Limiter::new(64);
        assert_eq!(limit_after(&limiter, 400, 0), 64);
        assert!(limit_after(&limiter, 200, 90) <= 16);
        assert!(limit_after(&limiter, 400, 100) == 1);
    }

    #[tokio::test]
    async fn permits_are_limited_and_released() {
        let limiter = Limiter::new(2);
        let first = limiter.acquire(0).await;
        let second = limiter.acquire(1).await;
        let waiting = {
            let limiter = limiter.clone();
            tokio::spawn(async move { limiter.acquire(2).await })
        };
        tokio::task::yield_now().await;
        let counts = {
            let state = limiter.lock();
            (state.in_progress, state.waiting.len())
        };
        assert_eq!(counts, (2, 1));
        drop(first);
        let third = waiting.await.unwrap();
        second.finish(AttemptOutcome::Succeeded);
        third.finish(AttemptOutcome::Failed);
        assert_eq!(limiter.lock().in_progress, 0);
    }

    #[tokio::test]
    async fn first_job_comes_first_and_dropped_requests_keep_no_permit() {
        let limiter = Limiter::new(1);
        let permit = limiter.acquire(0).await;
        let order = Arc::new(Mutex::new(Vec::new()));
        let wait = |job| {
            let (limiter, order) = (limiter.clone(), Arc::clone(&order));
            tokio::spawn(async move {
                let permit = limiter.acquire(job).await;
                order.lock().unwrap().push(job);
                drop(permit);
            })
        };
        let dropped = wait(2);
        let tasks = [9, 3, 7, 3].map(wait);
        tokio::task::yield_now().await;
        dropped.abort();
        tokio::task::yield_now().await;
        drop(permit);
        for task in tasks {
            task.await.unwrap();
        }
        assert_eq!(*order.lock().unwrap(), [3, 3, 7, 9]);
        assert_eq!(limiter.lock().in_progress, 0);
    }
}
