//! Pairwise comparisons of models with significance tests.

use rayon::prelude::*;
use serde::Serialize;

use crate::analysis::ranking::comparison_data::{
    ComparisonData, FittedStrengths, PointMargins, ReplicateStrengths,
};
use crate::statistics::{
    Clusters, Davidson, Defined, PairwiseOutcomes, holm_adjust, paired_permutation_test,
    percentile_interval, student_two_sided_p,
};

/// Minimum number of images for a test. With five images that all favour the same model, the exact
/// two-sided p is 1/16, which can never be significant.
const MIN_IMAGES: usize = 6;

/// Minimum number of images for a test of strengths: standard errors that are clustered by fewer
/// images are too small (Cameron and Miller, A practitioner's guide to cluster-robust inference,
/// 2015, section VI). With as many images that compare two models with each other or with the same
/// opponent, the exact test is used.
const MIN_IMAGES_OF_STRENGTHS: usize = 50;

/// Test of the difference of two models.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum DifferenceTest {
    /// Exact paired permutation test of the points in common comparisons, clustered by image.
    Permutation,
    /// t-test of the difference of log strengths, with the standard error over the resamples of
    /// images. It uses the pairs of both models with all others.
    Strengths,
}

/// Comparison of two models.
#[derive(Clone, Debug, Serialize)]
pub struct PairwiseComparison {
    /// Model with the higher strength.
    pub first: String,
    /// The other model.
    pub second: String,
    /// Number of pairs of the two models that the first won.
    pub wins: u64,
    /// Number of tied pairs of the two models.
    pub ties: u64,
    /// Number of pairs of the two models that the second won.
    pub losses: u64,
    /// Log strength of the first minus that of the second, fitted on all pairs of all models.
    /// Penalised strengths if the maximum-likelihood strengths are undefined.
    pub difference: f64,
    /// 95 % interval of the difference.
    pub interval: Option<[f64; 2]>,
    /// Test of the difference; `None` if it was not tested.
    pub test: Option<DifferenceTest>,
    /// Two-sided p-value of the test. 1 if the weaker model has more points in common comparisons.
    pub p: Option<f64>,
    /// p-value after Holm's correction over all comparisons.
    pub p_holm: Option<f64>,
    /// The result in one sentence.
    #[serde(rename = "words")]
    pub summary: String,
}

impl PairwiseComparison {
    /// Returns true if the first model is significantly better (Holm-corrected p below 0.05).
    pub fn is_significant(&self) -> bool {
        self.p_holm.is_some_and(|p| p < 0.05)
    }
}

/// Compares every two models. `order` lists the models, best first.
pub(super) fn pairwise_comparisons(
    data: &ComparisonData,
    order: &[usize],
    fitted: &FittedStrengths,
) -> Vec<PairwiseComparison> {
    let outcomes = data.outcomes(&vec![1.0; data.pairs.len()]);
    let pairs: Vec<[usize; 2]> = (0..order.len())
        .flat_map(|rank| order[rank + 1..].iter().map(move |j| [order[rank], *j]))
        .collect();
    let compare = |pair: &[usize; 2]| compare_pair(data, *pair, &outcomes, fitted);
    let mut comparisons: Vec<PairwiseComparison> = pairs.par_iter().map(compare).collect();
    let p_values: Vec<f64> = comparisons.iter().filter_map(|comparison| comparison.p).collect();
    let tested = comparisons.iter_mut().filter(|comparison| comparison.p.is_some());
    for (comparison, p) in tested.zip(holm_adjust(&p_values)) {
        comparison.p_holm = Some(p);
    }
    for comparison in &mut comparisons {
        comparison.summary = conclusion(comparison, &data.clusters);
    }
    comparisons
}

fn compare_pair(
    data: &ComparisonData,
    [i, j]: [usize; 2],
    outcomes: &PairwiseOutcomes,
    fitted: &FittedStrengths,
) -> PairwiseComparison {
    let strength_difference = |model: &Davidson| model.strengths[i] - model.strengths[j];
    let resampled = |resample: &ReplicateStrengths| {
        resample.fit.as_ref().map(strength_difference).map_err(|e| *e)
    };
    let resampled: Vec<Defined<f64>> = fitted.resamples.iter().map(resampled).collect();
    let difference = strength_difference(&fitted.for_ranks);
    let margins = data.point_margins([i, j]);
    let images = data.count_images_of([i, j]);
    let common = margins.as_ref().map_or(0, |margins| margins.images);
    // The choice depends on the comparisons that were made, not on who won them.
    let has_few_common = common < MIN_IMAGES_OF_STRENGTHS && 2 * common < images;
    let by_strengths = (has_few_common && images >= MIN_IMAGES_OF_STRENGTHS)
        .then(|| test_strengths(difference, &resampled, images))
        .flatten();
    let by_permutation = || Some(test_margins(margins.as_ref()?, difference));
    let test = match by_strengths {
        Some(p) => Some((DifferenceTest::Strengths, p)),
        None if data.clusters.count() < MIN_IMAGES => None,
        None => by_permutation().map(|p| (DifferenceTest::Permutation, p)),
    };
    PairwiseComparison {
        first: data.models[i].clone(),
        second: data.models[j].clone(),
        wins: outcomes.wins(i, j) as u64,
        ties: outcomes.ties(i, j) as u64,
        losses: outcomes.wins(j, i) as u64,
        difference,
        interval: percentile_interval(resampled, &data.clusters).ok(),
        test: test.map(|(test, _)| test),
        p: test.map(|(_, p)| p),
        p_holm: None,
        summary: String::new(),
    }
}

/// Tests the points of two models in common comparisons.
fn test_margins(PointMargins { margins, .. }: &PointMargins, difference: f64) -> f64 {
    // A model can lead on common opponents but have the lower strength: then neither is better.
    let agrees = margins.iter().sum::<i64>() as f64 * difference >= 0.0;
    if agrees { paired_permutation_test(margins) } else { 1.0 }
}

/// Tests a difference of log strengths. `None` if too many resamples have no strengths, or if all
/// have the same.
fn test_strengths(difference: f64, resampled: &[Defined<f64>], images: usize) -> Option<f64> {
    let values: Vec<f64> = resampled.iter().filter_map(|value| value.ok()).collect();
    if values.len() < 2 || values.len() * 20 < resampled.len() * 19 {
        return None;
    }
    let center = values.iter().sum::<f64>() / values.len() as f64;
    let squares: f64 = values.iter().map(|value| (value - center).powi(2)).sum();
    let standard_error = (squares / (values.len() - 1) as f64).sqrt();
    let t = difference / standard_error;
    t.is_finite().then(|| student_two_sided_p(t, (images - 1) as f64))
}

fn conclusion(comparison: &PairwiseComparison, clusters: &Clusters) -> String {
    let (first, second) = (&comparison.first, &comparison.second);
    match comparison.p_holm {
        Some(_) if comparison.is_significant() => format!("{first} is better than {second}"),
        Some(_) => format!("{first} and {second}: no significant difference"),
        None if clusters.count() >= MIN_IMAGES => {
            format!(
                "{first} and {second}: not tested, no case compares both with each other or with \
                 the same opponent"
            )
        }
        None => format!(
            "{first} and {second}: too few images for a test ({}, expected at least {MIN_IMAGES})",
            clusters.count()
        ),
    }
}
