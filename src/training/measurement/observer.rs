//! Progress and results of a measurement in progress.

use anyhow::Result;

use super::report::SetResults;

/// Numbers of pairs since the start of a measurement.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MeasuredCounts {
    /// Pairs with a verdict.
    pub judged: u64,
    /// Pairs without a verdict.
    pub unscored: u64,
}

impl MeasuredCounts {
    /// Adds the counts of a batch.
    pub(super) fn add(&mut self, batch: Self) {
        self.judged += batch.judged;
        self.unscored += batch.unscored;
    }

    /// Returns the number of pairs with and without a verdict.
    pub fn pairs(self) -> u64 {
        self.judged + self.unscored
    }
}

/// Receives the progress and the results of a measurement.
pub trait MeasurementObserver {
    /// Called before the first pair. `judge`: name of the judge; `pairs`: number of pairs of all test
    /// sets and image conditions.
    ///
    /// # Errors
    /// If the start cannot be shown. The measurement ends.
    fn start(&mut self, judge: &str, pairs: u64) -> Result<()>;

    /// Called after each batch of pairs.
    fn judged(&mut self, counts: MeasuredCounts);

    /// Called with the results of a test set under an image condition.
    ///
    /// # Errors
    /// If the results cannot be shown. The measurement ends.
    fn finished(&mut self, results: &SetResults) -> Result<()>;

    /// Called with a note for the user.
    fn note(&mut self, text: &str);
}
