//! Mean scores of models, with confidence intervals.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::analysis::verdicts::PairVerdict;
use crate::data::labels::ScoreTarget;
use crate::statistics::{Bootstrap, Clusters, Defined, interval, mean};

/// Mean scores of one model.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ModelScores {
    /// Model.
    pub model: String,
    /// Pairs with this model, scored or not.
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
}

/// Computes the mean scores of every model on the given targets, sorted by model name.
pub(super) fn scores<'a>(
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
    let of = |(model, all): (&str, Vec<(&PairVerdict, usize)>)| ModelScores {
        model: model.to_owned(),
        pairs: all.len(),
        means: means(&all, targets, bootstrap),
    };
    models.into_iter().map(of).collect()
}

fn means(
    all: &[(&PairVerdict, usize)],
    targets: &[ScoreTarget],
    bootstrap: Bootstrap,
) -> Vec<MeanScore> {
    let judged: Vec<_> = all.iter().filter(|(v, _)| v.scores.is_some()).collect();
    let score = |target: ScoreTarget, (verdict, side): &(&PairVerdict, usize)| {
        let scores = verdict.scores.as_ref()?.get(&target)?;
        scores.get(*side).copied()
    };
    let columns: Vec<Vec<Option<f64>>> = targets
        .iter()
        .map(|target| judged.iter().map(|r| score(*target, r)).collect())
        .collect();
    let clusters = Clusters::new(judged.iter().map(|(v, _)| v.cluster.as_str()));
    let of = |weights: &[f64]| -> Vec<Defined<f64>> {
        columns.iter().map(|c| mean(c, weights)).collect()
    };
    let values = of(&vec![1.0; judged.len()]);
    let mut draws: Vec<Vec<Defined<f64>>> = vec![Vec::new(); targets.len()];
    for draw in bootstrap.draw(&clusters, of) {
        for (all, value) in draws.iter_mut().zip(draw) {
            all.push(value);
        }
    }
    let told = values
        .into_iter()
        .zip(draws)
        .zip(targets.iter().zip(&columns));
    told.map(|((value, draws), (target, column))| {
        let ends = value.and_then(|_| interval(draws, &clusters));
        MeanScore {
            target: *target,
            n: column.iter().flatten().count(),
            value: value.ok(),
            interval: ends.ok(),
            undefined: ends.err().map(|reason| reason.to_string()),
        }
    })
    .collect()
}

impl MeanScore {
    /// Formats the mean and its interval for a table cell.
    pub(super) fn shown(&self) -> String {
        match (self.value, self.interval) {
            (Some(value), Some([low, high])) => format!("{value:.2} [{low:.2}, {high:.2}]"),
            (Some(value), None) => format!("{value:.2} [undefined]"),
            (None, _) => "undefined".to_owned(),
        }
    }
}

impl ModelScores {
    /// Returns the mean on a target.
    pub(super) fn on(&self, target: ScoreTarget) -> Option<&MeanScore> {
        self.means.iter().find(|mean| mean.target == target)
    }
}
