//! Win rates at equal length.
//!
//! The length-controlled win rate is that of Dubois et al. (2024, `Length-Controlled AlpacaEval`,
//! §3; their code: `alpaca_eval/metrics/glm_winrate.py`), simplified: the outcome of a pair is a
//! logistic model of the difference of the two models' strengths and of tanh((l₁ − l₂) / s), where
//! s is the standard deviation of l₁ − l₂. Without the second term, the model predicts the outcome
//! at equal lengths. The original has a term for the difficulty of the instruction, a length effect
//! per model and a penalty on it. This version has one length effect, no penalty, and counts words.
//! A tie is half a win.

use std::cmp::Ordering;
use std::collections::{BTreeMap, HashMap};

use acem3_conclusion::compare_scores;

use super::audit_verdicts::AuditVerdicts;
use crate::analysis::audit::result::{
    AuditEstimate, AuditMeasure, ClusteredValues, MeasureUnit, names,
};
use crate::analysis::verdicts::PairVerdict;
use crate::data::labels::ScoreTarget;
use crate::statistics::{Clusters, Defined, Logistic, LogisticObservation, Undefined};

/// Measures at equal length, or a note with the reason why there are none.
#[derive(Default)]
pub(super) struct LengthControl {
    /// The length effect and the win rate of each model.
    pub(super) measures: Vec<AuditMeasure>,
    /// Reason for missing or undefined measures.
    pub(super) note: Option<String>,
}

/// The pairs of a logistic model. Equal observations are stored once.
struct LengthPairs {
    models: Vec<String>,
    /// The distinct observations; the last feature is the length difference.
    observations: Vec<LogisticObservation>,
    /// The index of the observation of each pair.
    observation_indices: Vec<usize>,
    /// The bootstrap cluster of each pair.
    clusters: Vec<String>,
}

impl LengthPairs {
    /// Collects the scored pairs. `None` if all length differences are equal.
    fn new(audit_verdicts: &AuditVerdicts<'_>) -> Option<Self> {
        let scored: Vec<(&PairVerdict, Ordering)> = audit_verdicts
            .scored_pairs()
            .filter_map(|(v, _)| Some((v, v.order(ScoreTarget::Final)?)))
            .collect();
        let difference = |v: &PairVerdict| v.words[0] as f64 - v.words[1] as f64;
        let n = scored.len() as f64;
        let mean = scored.iter().map(|(v, _)| difference(v)).sum::<f64>() / n;
        let squared_deviations = scored.iter().map(|(v, _)| (difference(v) - mean).powi(2));
        let deviation = (squared_deviations.sum::<f64>() / n).sqrt();
        if deviation.is_nan() || deviation <= 0.0 {
            return None;
        }
        let mut models: BTreeMap<String, usize> = BTreeMap::new();
        for model in scored.iter().flat_map(|(v, _)| &v.pair) {
            models.entry(model.clone()).or_default();
        }
        for (index, number) in models.values_mut().enumerate() {
            *number = index;
        }
        let mut pairs = Self {
            models: models.keys().cloned().collect(),
            observations: Vec::new(),
            observation_indices: Vec::new(),
            clusters: scored.iter().map(|(v, _)| v.cluster.clone()).collect(),
        };
        let mut indices: HashMap<([usize; 2], i64, Ordering), usize> = HashMap::new();
        for (verdict, order) in scored {
            let [i, j] = verdict.pair.each_ref().map(|m| models.get(m).copied().unwrap_or(0));
            let next = indices.len();
            let index = *indices.entry(([i, j], difference(verdict) as i64, order)).or_insert(next);
            if index == next {
                let mut features = pairs.strength_features(i, j);
                features.push((difference(verdict) / deviation).tanh());
                let outcome = match order {
                    Ordering::Greater => 1.0,
                    Ordering::Equal => 0.5,
                    Ordering::Less => 0.0,
                };
                let observation = LogisticObservation { features, outcome };
                pairs.observations.push(observation);
            }
            pairs.observation_indices.push(index);
        }
        Some(pairs)
    }

    /// Returns the features of two models: +1 for the first, −1 for the second. The last model has
    /// strength 0.
    fn strength_features(&self, i: usize, j: usize) -> Vec<f64> {
        let mut features = vec![0.0; self.models.len().saturating_sub(1)];
        for (model, sign) in [(i, 1.0), (j, -1.0)] {
            if let Some(feature) = features.get_mut(model) {
                *feature += sign;
            }
        }
        features
    }

    fn fit(&self, pair_weights: &[f64]) -> Defined<Logistic> {
        let mut weights = vec![0.0; self.observations.len()];
        for (index, weight) in self.observation_indices.iter().zip(pair_weights) {
            weights[*index] += weight;
        }
        Logistic::fit(&self.observations, &weights)
    }

    /// Computes the length effect, then each model's mean probability of winning against the others
    /// at equal lengths.
    fn compute_statistics(&self, pair_weights: &[f64]) -> Vec<Defined<f64>> {
        let fit = match self.fit(pair_weights) {
            Ok(fit) => fit,
            Err(reason) => return vec![Err(reason); self.models.len() + 1],
        };
        let n = self.models.len();
        let effect = fit.coefficients.last().copied().ok_or(Undefined::NotFinite);
        let rate = |i: usize| {
            let against =
                (0..n).filter(|j| *j != i).map(|j| fit.predict(&self.strength_features(i, j)));
            Ok(against.sum::<f64>() / (n as f64 - 1.0))
        };
        std::iter::once(effect).chain((0..n).map(rate)).collect()
    }
}

/// Measures the length effect, and each model's win rate at equal length next to its raw win rate.
pub(super) fn length_controlled_win_rates(audit_verdicts: &AuditVerdicts<'_>) -> LengthControl {
    let with_note_only =
        |note: &str| LengthControl { note: Some(note.to_owned()), ..LengthControl::default() };
    let Some(pairs) = LengthPairs::new(audit_verdicts) else {
        return with_note_only(
            "no win rates at equal length: all pairs have the same length difference",
        );
    };
    if pairs.models.len() < 2 {
        return with_note_only("no win rates at equal length: only one model");
    }
    let values = pairs.compute_statistics(&vec![1.0; pairs.observation_indices.len()]);
    let clusters = Clusters::new(&pairs.clusters);
    let (resamples, note) = match values.first() {
        Some(Ok(_)) => {
            let resamples =
                audit_verdicts.bootstrap.resample(&clusters, |w| pairs.compute_statistics(w));
            (resamples, None)
        }
        Some(Err(reason)) => {
            let note = format!("win rates at equal length are undefined: {reason}");
            (Vec::new(), Some(note))
        }
        None => (Vec::new(), None),
    };
    let estimate = |index: usize, unit| {
        let value = values.get(index).copied();
        let resampled =
            resamples.iter().filter_map(|resample| resample.get(index).copied()).collect();
        let value = value.unwrap_or(Err(Undefined::NotFinite));
        AuditEstimate::from_resamples(value, resampled, &clusters, unit)
    };
    let mut measures = vec![names::LENGTH_EFFECT.measure(estimate(0, MeasureUnit::LogOdds))];
    let name = names::LENGTH_CONTROLLED_WIN_RATE;
    for (index, model) in pairs.models.iter().enumerate() {
        let measure = AuditMeasure {
            key: name.key_for(model),
            title: name.title_for(model),
            ..name.measure(estimate(index + 1, name.unit))
        };
        measures.push(measure.with_control(
            "raw win rate",
            raw_win_rate(audit_verdicts, model),
            None,
        ));
    }
    LengthControl { measures, note }
}

/// Computes the win rate of a model over its scored pairs; a tie is half a win.
fn raw_win_rate(audit_verdicts: &AuditVerdicts<'_>, model: &str) -> AuditEstimate {
    let wins = audit_verdicts.scored_pairs().filter_map(|(v, _)| {
        let side = v.pair.iter().position(|m| m == model)?;
        let scores = v.scores.as_ref()?.get(&ScoreTarget::Final)?;
        let win = match (compare_scores(*scores), side) {
            (Ordering::Equal, _) => 0.5,
            (Ordering::Greater, 0) | (Ordering::Less, 1) => 1.0,
            _ => 0.0,
        };
        Some((v.cluster.as_str(), win))
    });
    ClusteredValues::new(wins).estimate_mean(MeasureUnit::Proportion, audit_verdicts.bootstrap)
}
