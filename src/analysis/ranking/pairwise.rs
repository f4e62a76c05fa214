//! Pairwise comparisons of models with significance tests.

use serde::Serialize;

use crate::analysis::ranking::comparison_data::{ComparisonData, ReplicateStrengths};
use crate::statistics::{Clusters, Davidson, Defined, PairwiseOutcomes, holm, interval, sign_flip};

/// Minimum number of images for a test. With five images that all favour the same model, the exact two-sided p
/// is 1/16, which can never be significant.
const MIN_IMAGES: usize = 6;

/// Comparison of two models.
#[derive(Clone, Debug, Serialize)]
pub struct PairwiseComparison {
    /// Model with the higher strength.
    pub first: String,
    /// The other model.
    pub second: String,
    /// Pairs of the two models that the first won.
    pub wins: u64,
    /// Tied pairs of the two models.
    pub ties: u64,
    /// Pairs of the two models that the second won.
    pub losses: u64,
    /// Log strength of the first minus that of the second, fitted on all pairs of all models. Regularised
    /// (shrunk) strengths if the maximum-likelihood strengths are undefined.
    pub difference: f64,
    /// 95 % interval of the difference.
    pub interval: Option<[f64; 2]>,
    /// Two-sided p-value of the exact paired permutation test, clustered by image. 1 if the sign of the lead
    /// contradicts the strengths.
    pub p: Option<f64>,
    /// p-value after Holm's correction over all comparisons.
    pub p_holm: Option<f64>,
    /// Result as text.
    pub words: String,
}

impl PairwiseComparison {
    /// Returns true if the first model is significantly better (Holm-corrected p below 0.05).
    pub fn is_significant(&self) -> bool {
        self.p_holm.is_some_and(|p| p < 0.05)
    }
}

/// Compares every two models. `order` lists the models, best first.
pub(super) fn duels(
    data: &ComparisonData,
    order: &[usize],
    whole: &ReplicateStrengths,
    draws: &[ReplicateStrengths],
) -> Vec<PairwiseComparison> {
    let outcomes = data.outcomes(&vec![1.0; data.pairs.len()]);
    let mut duels = Vec::new();
    for (place, i) in order.iter().enumerate() {
        for j in order.iter().skip(place + 1) {
            duels.push(compare(data, [*i, *j], &outcomes, whole, draws));
        }
    }
    let p: Vec<f64> = duels.iter().filter_map(|comparison| comparison.p).collect();
    let tested = duels.iter_mut().filter(|comparison| comparison.p.is_some());
    for (comparison, p) in tested.zip(holm(&p)) {
        comparison.p_holm = Some(p);
    }
    for comparison in &mut duels {
        comparison.words = words(comparison, &data.clusters);
    }
    duels
}

fn compare(
    data: &ComparisonData,
    [i, j]: [usize; 2],
    outcomes: &PairwiseOutcomes,
    whole: &ReplicateStrengths,
    draws: &[ReplicateStrengths],
) -> PairwiseComparison {
    let apart = |of: &Davidson| of.strengths[i] - of.strengths[j];
    // Use the same kind of strengths for the difference and its resamples.
    let fitted = |draw: &ReplicateStrengths| draw.fit.as_ref().map(apart).map_err(|e| *e);
    let shrunk = |draw: &ReplicateStrengths| -> Defined<f64> { Ok(apart(&draw.shrunk)) };
    let drawn = match whole.fit {
        Ok(_) => draws.iter().map(fitted).collect(),
        Err(_) => draws.iter().map(shrunk).collect(),
    };
    let difference = apart(whole.best());
    let lead = data.lead([i, j]);
    // A model can lead on common opponents but have the lower strength: then neither is better.
    let p = lead.map(|lead| {
        let agrees = lead.iter().sum::<i64>() as f64 * difference >= 0.0;
        if agrees { sign_flip(&lead) } else { 1.0 }
    });
    PairwiseComparison {
        first: data.models[i].clone(),
        second: data.models[j].clone(),
        wins: outcomes.wins(i, j) as u64,
        ties: outcomes.ties(i, j) as u64,
        losses: outcomes.wins(j, i) as u64,
        difference,
        interval: interval(drawn, &data.clusters).ok(),
        p: p.filter(|_| data.clusters.count() >= MIN_IMAGES),
        p_holm: None,
        words: String::new(),
    }
}

fn words(comparison: &PairwiseComparison, clusters: &Clusters) -> String {
    let (first, second) = (&comparison.first, &comparison.second);
    match comparison.p_holm {
        Some(_) if comparison.is_significant() => format!("{first} is better than {second}"),
        Some(_) => format!("{first} and {second}: no significant difference"),
        None if clusters.count() >= MIN_IMAGES => {
            format!("{first} and {second}: no common case or opponent")
        }
        None => format!(
            "{first} and {second}: too few images for a test ({}, expected at least {MIN_IMAGES})",
            clusters.count()
        ),
    }
}
