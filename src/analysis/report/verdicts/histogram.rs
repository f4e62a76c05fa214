//! Score histograms.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;

use serde::Serialize;

use crate::analysis::verdicts::PairVerdict;
use crate::data::labels::ScoreTarget;

/// Number of bins: half points from 0 to 5.
const BINS: usize = 11;

/// Histogram of one model's scores, rounded to half points.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Histogram {
    /// Name of the model.
    pub model: String,
    /// Counts at 0, ½, 1, … 5.
    pub counts: [usize; BINS],
}

impl Histogram {
    /// Returns the counts from a lowest to a highest score.
    pub(crate) fn counts_in(&self, score_range: [u8; 2]) -> &[usize] {
        self.counts.get(bins_of(score_range)).unwrap_or(&self.counts)
    }
}

/// Returns the bins from a lowest to a highest score.
pub(crate) fn bins_of([low, high]: [u8; 2]) -> RangeInclusive<usize> {
    2 * usize::from(low)..=2 * usize::from(high)
}

/// Counts every model's scores on a target.
pub(crate) fn compute_histograms(verdicts: &[PairVerdict], target: ScoreTarget) -> Vec<Histogram> {
    let mut models: BTreeMap<&str, [usize; BINS]> = BTreeMap::new();
    for verdict in verdicts {
        let scores = verdict.scores.as_ref().and_then(|s| s.get(&target));
        for (model, score) in verdict.pair.iter().zip(scores.into_iter().flatten()) {
            // Round half up, like scores elsewhere.
            let bin = (2.0 * score + 0.5).floor().max(0.0) as usize;
            let counts = models.entry(model).or_default();
            if let Some(count) = counts.get_mut(bin.min(BINS - 1)) {
                *count += 1;
            }
        }
    }
    let histogram =
        |(model, counts): (&str, [usize; BINS])| Histogram { model: model.to_owned(), counts };
    models.into_iter().map(histogram).collect()
}
