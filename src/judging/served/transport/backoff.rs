//! Pauses between attempts: what the server demands, else random pauses that grow.

use std::sync::{Mutex, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use chrono::{DateTime, Utc};
use rand::{Rng as _, SeedableRng as _};
use rand_chacha::ChaCha8Rng;

/// Largest pause before the second attempt; each later one is twice as long.
const FIRST_PAUSE: Duration = Duration::from_millis(500);
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
    /// Returns the pause after an attempt, counted from 1: at least what the server demands, plus a
    /// random part.
    pub(super) fn pause(&self, attempt: u32, demanded: Option<Duration>) -> Duration {
        let doublings = attempt.saturating_sub(1).min(16);
        let longest = FIRST_PAUSE.saturating_mul(1 << doublings).min(MAX_PAUSE);
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
            let pause = backoff.pause(attempt, None);
            assert!(pause <= MAX_PAUSE && pause <= FIRST_PAUSE * (1 << (attempt - 1)), "{pause:?}");
        }
        assert!(backoff.pause(1, Some(Duration::from_secs(7))) >= Duration::from_secs(7));
        let pauses: Vec<_> = (0..20).map(|_| backoff.pause(6, None)).collect();
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
