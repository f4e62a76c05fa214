//! Pauses between attempts: what the server demands, else random pauses that grow.

use std::sync::{Mutex, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use chrono::{DateTime, Utc};
use rand::{Rng as _, SeedableRng as _};
use rand_chacha::ChaCha8Rng;

use super::limiter::AttemptOutcome;

/// Largest pause before the second attempt; each later one is twice as long.
const FIRST_PAUSE: Duration = Duration::from_millis(500);
/// Largest pause before the second attempt after a failed connection or a cut response: single ones say
/// nothing about the load.
const FIRST_PAUSE_AFTER_FAILURE: Duration = Duration::from_millis(100);
/// Longest pause.
const MAX_PAUSE: Duration = Duration::from_mins(1);
/// Longest pause that a server may demand.
const MAX_DEMANDED_PAUSE: Duration = Duration::from_mins(10);

/// Source of pauses. They are random, so that the clients of a server that was down do not come back
/// together. They never affect a verdict.
#[derive(Debug)]
pub(super) struct Backoff(Mutex<ChaCha8Rng>);

impl Default for Backoff {
    fn default() -> Self {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Self(Mutex::new(ChaCha8Rng::seed_from_u64(since.as_nanos() as u64)))
    }
}

impl Backoff {
    /// Returns the pause after an attempt, counted from 1: what the server demands, plus a random part.
    pub(super) fn pause(
        &self,
        attempt: u32,
        outcome: AttemptOutcome,
        demanded: Option<Duration>,
    ) -> Duration {
        let doublings = attempt.saturating_sub(1).min(16);
        let longest = match (attempt, outcome, demanded) {
            (1, AttemptOutcome::Failed, None) => FIRST_PAUSE_AFTER_FAILURE,
            // The server knows when it has room; the random part only spreads the requests.
            (1, _, Some(demanded)) => demanded.clamp(FIRST_PAUSE_AFTER_FAILURE, FIRST_PAUSE),
            _ => FIRST_PAUSE.saturating_mul(1 << doublings).min(MAX_PAUSE),
        };
        let mut random = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let jitter = longest.mul_f64(random.random::<f64>());
        demanded.unwrap_or_default().min(MAX_DEMANDED_PAUSE) + jitter
    }
}

/// Parses the value of `Retry-After`: seconds, or a date.
pub(super) fn parse_retry_after(value: &str) -> Option<Duration> {
    let value = value.trim();
    if let Ok(seconds) = value.parse::<f64>() {
        return Duration::try_from_secs_f64(seconds).ok();
    }
    let date = DateTime::parse_from_rfc2822(value).ok()?;
    (date.to_utc() - DateTime::<Utc>::from(SystemTime::now())).to_std().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_grow_and_obey_the_server() {
        let backoff = Backoff::default();
        for attempt in 1..=12 {
            let pause = backoff.pause(attempt, AttemptOutcome::Overloaded, None);
            assert!(pause <= MAX_PAUSE && pause <= FIRST_PAUSE * (1 << (attempt - 1)), "{pause:?}");
        }
        let failed = |attempt| backoff.pause(attempt, AttemptOutcome::Failed, None);
        assert!((0..20).all(|_| failed(1) <= FIRST_PAUSE_AFTER_FAILURE));
        assert!((0..20).any(|_| failed(8) > Duration::from_secs(10)));
        let demanded = |seconds| {
            backoff.pause(1, AttemptOutcome::Overloaded, Some(Duration::from_secs_f64(seconds)))
        };
        assert!((7.0..=7.5).contains(&demanded(7.0).as_secs_f64()));
        assert!((0.2..=0.4).contains(&demanded(0.2).as_secs_f64()));
        let pauses: Vec<_> =
            (0..20).map(|_| backoff.pause(6, AttemptOutcome::Overloaded, None)).collect();
        assert!(pauses.windows(2).any(|pair| pair[0] != pair[1]));
    }

    #[test]
    fn retry_after_is_seconds_or_a_date() {
        assert_eq!(parse_retry_after(" 3 "), Some(Duration::from_secs(3)));
        assert_eq!(parse_retry_after("0.5"), Some(Duration::from_millis(500)));
        assert_eq!(parse_retry_after("-1"), None);
        assert_eq!(parse_retry_after("soon"), None);
        let date = Utc::now() + chrono::TimeDelta::seconds(100);
        let pause = parse_retry_after(&date.to_rfc2822()).unwrap();
        assert!((98..=100).contains(&pause.as_secs()), "{pause:?}");
        assert_eq!(parse_retry_after("Wed, 21 Oct 2015 07:28:00 GMT"), None);
    }
}
