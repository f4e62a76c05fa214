//! How long all requests of a server have failed.

use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// The time since which every request has failed. Time without requests does not count: a server gets
/// none while this machine computes other members.
#[derive(Debug, Default)]
pub(super) struct Outage(Mutex<Option<FailedRequests>>);

/// Failed requests since the last success.
#[derive(Clone, Copy, Debug)]
struct FailedRequests {
    first: Instant,
    count: u32,
}

impl Outage {
    /// Ends the outage: a request succeeded.
    pub(super) fn end(&self) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }

    /// Counts a failed request. Returns the time since the first one after the last success, and their
    /// number.
    pub(super) fn count_failure(&self, now: Instant) -> (Duration, u32) {
        let mut failed = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let failed = failed.get_or_insert(FailedRequests { first: now, count: 0 });
        failed.count = failed.count.saturating_add(1);
        (now.saturating_duration_since(failed.first), failed.count)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn outage_starts_with_the_first_failure() {
        let outage = Outage::default();
        let start = Instant::now();
        let second = Duration::from_secs(1);
        outage.end();
        assert_eq!(outage.count_failure(start + second * 500), (Duration::ZERO, 1));
        assert_eq!(outage.count_failure(start + second * 530), (second * 30, 2));
        outage.end();
        assert_eq!(outage.count_failure(start + second * 600), (Duration::ZERO, 1));
    }
}
