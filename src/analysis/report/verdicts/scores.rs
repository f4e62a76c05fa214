//! Mean scores of models, with confidence intervals.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::analysis::verdicts::PairVerdict;
use crate::data::labels::ScoreTarget;
use crate::statistics::{Bootstrap, Clusters, Defined, Undefined, mean, percentile_interval};

/// Note below tables with [`MeanScore::to_cell`].
pub(crate) const MISSING_INTERVAL_NOTE: &str = "brackets: 95 % CI. No interval: “one image”, or “all equal” scores, which resampling cannot vary; “too few \
     images”: fewer than 95 % of the resamples have a score";

/// Mean scores of one model.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ModelScores {
    /// Name of the model.
    pub model: String,
    /// Number of pairs with this model, scored or not.
    pub pairs: usize,
    /// One mean per score target.
    pub means: Vec<MeanScore>,
}

/// Mean score on one target.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct MeanScore {
    /// Score target.
    pub target: ScoreTarget,
    /// Number of scores; a response counts once per scored pair.
    pub n: usize,
    /// Mean, 0 to 5; `None` without a score.
    pub value: Option<f64>,
    /// 95 % bootstrap interval, clustered by image.
    pub interval: Option<[f64; 2]>,
    /// Reason if the interval is undefined.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub undefined: Option<String>,
    /// The same reason, for table cells.
    #[serde(skip)]
    pub no_interval: Option<Undefined>,
}

/// Computes the mean scores of every model on the given targets, sorted by model name.
pub(crate) fn compute_model_scores<'a>(
    verdicts: impl Iterator<Item = &'a PairVerdict>,
    targets: &[ScoreTarget],
    bootstrap: Bootstrap,
) -> Vec<ModelScores> {
    let mut models: BTreeMap<&str, Vec<(&PairVerdict, usize)>> = BTreeMap::new();
    for verdict in verdicts {
        for (side, model) in verdict.pair.iter().enumerate() {
            models.entry(model).or_default().push((verdict, side));
        }
    }
    let model_scores = |(model, responses): (&str, Vec<(&PairVerdict, usize)>)| ModelScores {
        model: model.to_owned(),
        pairs: responses.len(),
        means: compute_means(&responses, targets, bootstrap),
    };
    models.into_iter().map(model_scores).collect()
}

fn compute_means(
    responses: &[(&PairVerdict, usize)],
    targets: &[ScoreTarget],
    bootstrap: Bootstrap,
) -> Vec<MeanScore> {
    let scored: Vec<_> = responses.iter().filter(|(v, _)| v.scores.is_some()).collect();
    let score = |target: ScoreTarget, (verdict, side): &(&PairVerdict, usize)| {
        let scores = verdict.scores.as_ref()?.get(&target)?;
        scores.get(*side).copied()
    };
    let columns: Vec<Vec<Option<f64>>> =
        targets.iter().map(|target| scored.iter().map(|r| score(*target, r)).collect()).collect();
    let clusters = Clusters::new(scored.iter().map(|(v, _)| v.cluster.as_str()));
    let weighted_means = |weights: &[f64]| -> Vec<Defined<f64>> {
        columns.iter().map(|c| mean(c, weights)).collect()
    };
    let values = weighted_means(&vec![1.0; scored.len()]);
    let mut resamples: Vec<Vec<Defined<f64>>> = vec![Vec::new(); targets.len()];
    for resample in bootstrap.resample(&clusters, weighted_means) {
        for (target_means, value) in resamples.iter_mut().zip(resample) {
            target_means.push(value);
        }
    }
    let by_target = values.into_iter().zip(resamples).zip(targets.iter().zip(&columns));
    by_target
        .map(|((value, resamples), (target, column))| {
            let interval = value.and_then(|_| percentile_interval(resamples, &clusters));
            MeanScore {
                target: *target,
                n: column.iter().flatten().count(),
                value: value.ok(),
                interval: interval.ok(),
                undefined: interval.err().map(|reason| reason.to_string()),
                no_interval: interval.err(),
            }
        })
        .collect()
}

impl MeanScore {
    /// Formats the mean and its interval for a table cell.
    pub(crate) fn to_cell(&self) -> String {
        match (self.value, self.interval) {
            (Some(value), Some([low, high])) => format!("{value:.2} [{low:.2}, {high:.2}]"),
            (Some(value), None) => format!("{value:.2} ({})", self.describe_missing_interval()),
            (None, _) => "no score".to_owned(),
        }
    }

    /// Says in a few words why there is no interval.
    fn describe_missing_interval(&self) -> &'static str {
        match self.no_interval {
            Some(Undefined::NoSpread) => "all equal",
            Some(Undefined::TooFew { .. }) => "one image",
            _ => "too few images",
        }
    }
}

impl ModelScores {
    /// Returns the mean on a target.
    pub(crate) fn mean_on(&self, target: ScoreTarget) -> Option<&MeanScore> {
        self.means.iter().find(|mean| mean.target == target)
    }
}
