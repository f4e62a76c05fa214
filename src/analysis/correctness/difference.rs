//! Differences between the accuracies of two models on the same cases.

use std::collections::HashMap;

use serde::Serialize;

use super::graded_run::GradedResponse;
use super::model_accuracy::indicator;
use crate::statistics::{Clusters, MeanDifference, holm_adjust, paired_difference};

/// Difference between two models, with p-values of a permutation test clustered by image and Holm's
/// correction over all pairs of models.
#[derive(Clone, Debug, Serialize)]
pub struct AccuracyDifference {
    /// The two models, the more accurate one first.
    pub models: [String; 2],
    /// Number of cases with a verdict on both.
    pub n: usize,
    /// Cases on which only the first, and only the second, is correct.
    pub only: [usize; 2],
    /// Accuracy of the first minus accuracy of the second.
    #[serde(flatten)]
    pub difference: MeanDifference,
}

impl AccuracyDifference {
    /// Compares all pairs of models that have cases in common. `models`: their names, the most accurate
    /// first.
    pub(super) fn between_all(models: &[&str], responses: &[&GradedResponse]) -> Vec<Self> {
        let pairs = models
            .iter()
            .enumerate()
            .flat_map(|(i, first)| models.iter().skip(i + 1).map(move |second| [*first, *second]));
        let mut differences: Vec<Self> =
            pairs.filter_map(|pair| Self::between(pair, responses)).collect();
        let p: Vec<f64> = differences.iter().map(|d| d.difference.p).collect();
        for (difference, p_holm) in differences.iter_mut().zip(holm_adjust(&p)) {
            difference.difference.p_holm = p_holm;
        }
        differences
    }

    fn between(models: [&str; 2], responses: &[&GradedResponse]) -> Option<Self> {
        let [first, second] = models.map(|model| {
            let of_model = responses.iter().filter(|r| r.model == model);
            let graded = of_model.filter_map(|r| Some((r.case.as_str(), (*r, r.is_correct()?))));
            graded.collect::<HashMap<_, _>>()
        });
        let mut common: Vec<_> = first
            .iter()
            .filter_map(|(case, (r, a))| Some((*case, r.cluster.as_str(), *a, second.get(case)?.1)))
            .collect();
        common.sort_unstable();
        let clusters = Clusters::new(common.iter().map(|(_, cluster, _, _)| *cluster));
        let values: Vec<(f64, f64)> =
            common.iter().map(|(_, _, a, b)| (indicator(*a), indicator(*b))).collect();
        let only = |x: bool| common.iter().filter(|(_, _, a, b)| *a == x && *b != x).count();
        Some(Self {
            models: models.map(str::to_owned),
            n: common.len(),
            only: [only(true), only(false)],
            difference: paired_difference(&clusters, &values).ok()?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::super::test_run::response;
    use super::*;

    #[test]
    fn difference_uses_common_cases_only() {
        let correct = |is: bool| Some(if is { 0.8 } else { 0.3 });
        let mut responses: Vec<_> = (0..30).map(|i| response(i, "a", correct(i != 3))).collect();
        responses.extend((0..20).map(|i| response(i, "b", correct(i % 5 == 3))));
        responses.push(response(21, "b", None));
        let responses: Vec<&GradedResponse> = responses.iter().collect();
        let differences = AccuracyDifference::between_all(&["a", "b"], &responses);
        let [difference] = differences.as_slice() else {
            panic!("{differences:?}");
        };
        assert_eq!(difference.models, ["a", "b"]);
        assert_eq!((difference.n, difference.only), (20, [16, 1]));
        assert!((difference.difference.value - 0.75).abs() < 1e-12);
        assert!(difference.difference.p < 0.01);
    }
}
