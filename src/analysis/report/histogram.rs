//! How scores are distributed.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::analysis::verdicts::PairVerdict;
use crate::data::labels::ScoreTarget;

/// Half points from 0 to 5.
pub(super) const BINS: usize = 11;

/// How many scores of one model lie nearest to each half point.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Histogram {
    /// The model.
    pub model: String,
    /// The counts at 0, ½, 1, … 5.
    pub counts: [usize; BINS],
}

/// The distribution of every model's scores on a target.
pub(super) fn histograms(verdicts: &[PairVerdict], target: ScoreTarget) -> Vec<Histogram> {
    let mut models: BTreeMap<&str, [usize; BINS]> = BTreeMap::new();
    for verdict in verdicts {
        let scores = verdict.scores.as_ref().and_then(|s| s.get(&target));
        for (model, score) in verdict.pair.iter().zip(scores.into_iter().flatten()) {
            // Halves up, as scores are rounded elsewhere.
            let bin = (2.0 * score + 0.5).floor().max(0.0) as usize;
            let counts = models.entry(model).or_default();
            if let Some(count) = counts.get_mut(bin.min(BINS - 1)) {
                *count += 1;
            }
        }
    }
    let of = |(model, counts): (&str, [usize; BINS])| Histogram {
        model: model.to_owned(),
        counts,
    };
    models.into_iter().map(of).collect()
}
