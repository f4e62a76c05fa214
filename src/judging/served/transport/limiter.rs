//! Limit on the requests in progress, adapted to what the server takes.

use std::sync::{Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;

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
/// refuses many for lack of capacity.
#[derive(Debug)]
pub(super) struct Limiter {
    state: Mutex<LimiterState>,
    released: Notify,
    max: usize,
}

#[derive(Debug)]
struct LimiterState {
    limit: usize,
    in_progress: usize,
    /// Attempts since the limit was adapted, and how many of them were overloaded.
    attempts: usize,
    overloaded: usize,
    /// True until the limit falls for the first time: it doubles, and then rises by a quarter.
    doubles: bool,
}

/// Permission for one attempt. Dropping it without an outcome releases it.
pub(super) struct Permit<'a> {
    limiter: &'a Limiter,
    outcome: Option<AttemptOutcome>,
}

impl Limiter {
    /// Creates a limiter of at most `max` requests.
    pub(super) fn new(max: usize) -> Self {
        let max = max.max(1);
        let limit = FIRST_LIMIT.min(max);
        let state =
            LimiterState { limit, in_progress: 0, attempts: 0, overloaded: 0, doubles: true };
        Self { state: Mutex::new(state), released: Notify::new(), max }
    }

    /// Waits until an attempt may start.
    pub(super) async fn acquire(&self) -> Permit<'_> {
        loop {
            let released = self.released.notified();
            if self.try_start() {
                return Permit { limiter: self, outcome: None };
            }
            released.await;
        }
    }

    fn try_start(&self) -> bool {
        let mut state = self.lock();
        let may_start = state.in_progress < state.limit;
        state.in_progress += usize::from(may_start);
        may_start
    }

    fn release(&self, outcome: Option<AttemptOutcome>) {
        let free = {
            let mut state = self.lock();
            state.in_progress = state.in_progress.saturating_sub(1);
            if let Some(outcome) = outcome {
                state.count(outcome, self.max);
            }
            state.limit.saturating_sub(state.in_progress)
        };
        for _ in 0..free {
            self.released.notify_one();
        }
    }

    fn lock(&self) -> MutexGuard<'_, LimiterState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
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

impl Permit<'_> {
    /// Ends the attempt.
    pub(super) fn finish(mut self, outcome: AttemptOutcome) {
        self.outcome = Some(outcome);
    }
}

impl Drop for Permit<'_> {
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
            state.count(outcome, limiter.max);
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
        let first = limiter.acquire().await;
        let second = limiter.acquire().await;
        assert!(!limiter.try_start());
        drop(first);
        let third = limiter.acquire().await;
        second.finish(AttemptOutcome::Succeeded);
        third.finish(AttemptOutcome::Failed);
        assert_eq!(limiter.lock().in_progress, 0);
    }
}
