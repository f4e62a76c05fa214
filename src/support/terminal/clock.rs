//! Times for manifests and logs.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use chrono::{DateTime, SecondsFormat};

/// Formats a time as RFC 3339 in UTC, to the second: `2026-02-03T04:05:06Z`.
pub fn format_rfc3339(time: SystemTime) -> String {
    let seconds = i64::try_from(since_epoch(time).as_secs()).ok();
    let time = seconds.and_then(|seconds| DateTime::from_timestamp(seconds, 0));
    time.unwrap_or_default().to_rfc3339_opts(SecondsFormat::Secs, true)
}

/// Returns the seconds since 1970.
pub fn unix_seconds(time: SystemTime) -> f64 {
    since_epoch(time).as_secs_f64()
}

fn since_epoch(time: SystemTime) -> Duration {
    time.duration_since(UNIX_EPOCH).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_formatted_in_utc() {
        for (seconds, text) in [
            (0, "1970-01-01T00:00:00Z"),
            (951_782_400, "2000-02-29T00:00:00Z"),
            (4_107_542_400, "2100-03-01T00:00:00Z"),
        ] {
            assert_eq!(format_rfc3339(UNIX_EPOCH + Duration::from_secs(seconds)), text);
        }
    }
}
