//! The caption of confidence intervals.

use crate::support::terminal::number::format_thousands;

/// Returns how confidence intervals were computed, for the paragraph above tables.
pub(crate) fn interval_caption(resamples: usize, seed: u64) -> String {
    format!(
        "95 % CI: {} bootstrap resamples, clustered by image (seed {seed})",
        format_thousands(resamples)
    )
}
