//! How long all requests of a server have failed, and how long the run still waits.

use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use crate::support::terminal::progress::{format_duration, print_lines};
use crate::support::text::format_count;

/// Time without a successful request after which a note is printed.
pub(super) const NOTED_AFTER: Duration = Duration::from_secs(10);

/// The time since which every request has failed. Time without requests does not count: a server gets
/// none while this machine computes other members.
#[derive(Debug, Default)]
pub(super) struct Outage(Mutex<OutageState>);

#[derive(Debug, Default)]
struct OutageState {
    last_success: Option<Instant>,
    failed: Option<FailedRequests>,
}

/// Failed requests since the last success.
#[derive(Clone, Copy, Debug)]
struct FailedRequests {
    /// When the first of them was sent.
    since: Instant,
    count: u32,
    /// True if the note was printed.
    is_noted: bool,
}

/// A failed attempt, and the pause before the next one.
#[derive(Clone, Copy, Debug)]
pub(super) struct FailedAttempt<'a> {
    /// Why it failed.
    pub(super) reason: &'a str,
    /// What the server demands.
    pub(super) demanded: Option<Duration>,
    /// The pause before the next attempt.
    pub(super) pause: Duration,
    /// When it was sent.
    pub(super) sent: Instant,
    /// When it failed.
    pub(super) now: Instant,
}

/// When an outage ends the run.
#[derive(Clone, Copy, Debug)]
pub(super) struct OutageLimit {
    /// The longest outage.
    pub(super) longest: Duration,
    /// Failed requests that an outage has at least.
    pub(super) min_failures: u32,
}

impl Outage {
    /// Ends the outage: a request succeeded.
    pub(super) fn end(&self) {
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        *state = OutageState { last_success: Some(Instant::now()), failed: None };
    }

    /// Returns true if no request has succeeded or failed yet.
    pub(super) fn is_untried(&self) -> bool {
        let state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        state.last_success.is_none() && state.failed.is_none()
    }

    /// Counts a failed attempt, and returns the pause before the next one. Without a demand of the server,
    /// the pause ends before the outage exceeds the limit. Prints one note if the outage lasts.
    ///
    /// # Errors
    ///
    /// No request succeeded for longer than the limit, or the server asks to wait for longer. The text says
    /// which.
    pub(super) fn pause_after(
        &self,
        failed: FailedAttempt<'_>,
        limit: OutageLimit,
    ) -> Result<Duration, String> {
        let FailedAttempt { reason, demanded, pause, sent, now } = failed;
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let since = state.last_success.map_or(sent, |success| success.max(sent));
        let state = state.failed.get_or_insert(FailedRequests { since, count: 0, is_noted: false });
        state.count = state.count.saturating_add(1);
        let outage = now.saturating_duration_since(state.since);
        let rest = limit.longest.saturating_sub(outage);
        let is_outage = state.count >= limit.min_failures;
        if is_outage {
            if let Some(demanded) = demanded.filter(|demanded| *demanded > rest) {
                let seconds = format_count(demanded.as_secs(), "second");
                return Err(format!(
                    "{reason}; the server asks to wait {seconds}, longer than --max-outage allows"
                ));
            }
            if rest.is_zero() {
                let seconds = format_count(outage.as_secs(), "second");
                return Err(format!("{reason}; no request succeeded for {seconds}"));
            }
        }
        if is_outage && !state.is_noted && outage + pause >= NOTED_AFTER.min(limit.longest / 2) {
            state.is_noted = true;
            let longest = format_duration(limit.longest.as_secs_f64());
            print_lines(&format!(
                "waiting for the server, at most {longest} (--max-outage): {reason}"
            ));
        }
        // Without a demand of the server, the last attempt is at the end of the longest outage.
        Ok(if demanded.is_some() || rest.is_zero() { pause } else { pause.min(rest) })
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
        let limit = OutageLimit { longest: second * 20, min_failures: 2 };
        let fail = |at: u32, demanded: Option<u32>| {
            let demanded = demanded.map(|n| second * n);
            let now = start + second * at;
            let sent = start + second * (at - 1);
            outage.pause_after(
                FailedAttempt { reason: "busy", demanded, pause: second * 9, sent, now },
                limit,
            )
        };
        assert!(outage.is_untried());
        // One failure is no outage.
        assert_eq!(fail(500, Some(100)), Ok(second * 9));
        assert_eq!(fail(514, None), Ok(second * 5), "the rest of the outage");
        assert_eq!(
            fail(514, Some(6)).unwrap_err(),
            "busy; the server asks to wait 6 seconds, longer than --max-outage allows"
        );
        assert_eq!(fail(519, None).unwrap_err(), "busy; no request succeeded for 20 seconds");
        outage.end();
        assert!(!outage.is_untried());
        assert_eq!(fail(600, None), Ok(second * 9));
    }
}
