//! Applies calibrations to records and computes mean calibrated scores of models.

use std::collections::BTreeMap;

use serde::Serialize;
use serde_json::{Map, Value};

use super::file::{Calibration, FittedMap};
use super::fit::{grid, rounded};
use crate::analysis::verdicts::{PairVerdict, Verdicts};
use crate::data::labels::ScoreTarget;
use crate::statistics::{Bootstrap, Clusters, Defined, Isotonic, interval, mean};

/// Mean raw and calibrated score of one model on one target.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct CalibratedMean {
    /// Model.
    pub model: String,
    /// Score target.
    pub target: ScoreTarget,
    /// Number of scores; a response counts once per scored pair.
    pub n: usize,
    /// Proportion of the model's pairs that have a verdict.
    pub coverage: f64,
    /// Mean of the judge's scores.
    pub score: f64,
    /// Mean of the calibrated scores.
    pub calibrated: f64,
    /// 95 % interval of the calibrated mean; includes the uncertainty of the map.
    pub interval: Option<[f64; 2]>,
}

/// Scores of one model on one target.
#[derive(Default)]
struct TargetScores<'a> {
    scores: Vec<f64>,
    clusters: Vec<&'a str>,
    pairs: usize,
}

/// Computes the raw and calibrated mean scores of every model.
pub fn means(
    calibration: &Calibration,
    verdicts: &Verdicts,
    bootstrap: Bootstrap,
) -> Vec<CalibratedMean> {
    let mut all: BTreeMap<(ScoreTarget, &str), TargetScores<'_>> = BTreeMap::new();
    for verdict in &verdicts.pairs {
        for (side, model) in verdict.pair.iter().enumerate() {
            for target in calibration.targets.keys() {
                let of = all.entry((*target, model)).or_default();
                of.pairs += 1;
                let scores = verdict.scores.as_ref().and_then(|s| s.get(target));
                if let Some(scores) = scores {
                    of.scores.push(scores[side]);
                    of.clusters.push(&verdict.cluster);
                }
            }
        }
    }
    let mean = |((target, model), scores): ((ScoreTarget, &str), TargetScores<'_>)| {
        let fitted = calibration.targets.get(&target)?;
        scores.mean(model, target, (fitted, bootstrap))
    };
    all.into_iter().filter_map(mean).collect()
}

impl TargetScores<'_> {
    fn mean(
        &self,
        model: &str,
        target: ScoreTarget,
        (fitted, bootstrap): (&FittedMap, Bootstrap),
    ) -> Option<CalibratedMean> {
        let once = vec![1.0; self.scores.len()];
        let present: Vec<Option<f64>> = self.scores.iter().copied().map(Some).collect();
        let map = |s: &f64| Some(fitted.curve.at(*s));
        let mapped: Vec<Option<f64>> = self.scores.iter().map(map).collect();
        let clusters = Clusters::new(self.clusters.iter().copied());
        // Each resample of the responses uses one bootstrap curve.
        let curves: Vec<Isotonic> = fitted.draws.iter().map(|values| on_grid(values)).collect();
        let drawn: Vec<Vec<Option<f64>>> = curves
            .iter()
            .map(|curve| self.scores.iter().map(|s| Some(curve.at(*s))).collect())
            .collect();
        let draws: Vec<Defined<f64>> = bootstrap.draw_numbered(&clusters, |i, weights| {
            let by = if drawn.is_empty() {
                &mapped
            } else {
                &drawn[i % drawn.len()]
            };
            mean(by, weights)
        });
        Some(CalibratedMean {
            model: model.to_owned(),
            target,
            n: self.scores.len(),
            coverage: self.scores.len() as f64 / self.pairs.max(1) as f64,
            score: mean(&present, &once).ok()?,
            calibrated: mean(&mapped, &once).ok()?,
            interval: interval(draws, &clusters).ok(),
        })
    }
}

/// Interpolates a bootstrap curve linearly between its stored values.
fn on_grid(values: &[f64]) -> Isotonic {
    Isotonic {
        points: grid().zip(values).map(|(x, y)| [x, *y]).collect(),
    }
}

impl Calibration {
    /// Returns the calibrated scores of a record by target.
    pub fn mapped(&self, verdict: &PairVerdict) -> Option<Value> {
        let scores = verdict.scores.as_ref()?;
        let mut mapped = Map::new();
        for (target, fitted) in &self.targets {
            if let Some(pair) = scores.get(target) {
                let pair = pair.map(|score| rounded(fitted.curve.at(score)));
                mapped.insert(target.key().to_owned(), Value::from(pair.to_vec()));
            }
        }
        Some(Value::Object(mapped))
    }
}
