//! How long all requests of a server have failed.

use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// The time since which every request has failed. Time without requests does not count: members that are
/// computed on this machine may keep a server waiting.
#[derive(Debug, Default)]
pub(super) struct Outage(Mutex<Option<Instant>>);

impl Outage {
    /// Ends the outage: a request succeeded.
    pub(super) fn end(&self) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }

    /// Counts a failed request, and returns the time since the first one after the last success.
    pub(super) fn count_failure(&self, now: Instant) -> Duration {
        let mut start = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        now.saturating_duration_since(*start.get_or_insert(now))
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
        assert_eq!(outage.count_failure(start + second * 500), Duration::ZERO);
        assert_eq!(outage.count_failure(start + second * 530), second * 30);
        outage.end();
        assert_eq!(outage.count_failure(start + second * 600), Duration::ZERO);
    }
}
