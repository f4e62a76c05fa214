//! Comparisons of models as indices, and the statistics of one bootstrap resample.

use std::cmp::Ordering;
use std::collections::BTreeMap;

use crate::analysis::verdicts::{PairVerdict, Verdicts};
use crate::data::labels::ScoreTarget;
use crate::statistics::{Clusters, Davidson, Defined, PairwiseOutcomes};

/// Comparisons of one or more runs.
pub(super) struct ComparisonData {
    /// Names of the models, sorted.
    pub(super) models: Vec<String>,
    /// Indices of the two models and their order, for each pair with a verdict.
    pub(super) pairs: Vec<([usize; 2], Ordering)>,
    /// Image of each pair.
    pub(super) clusters: Clusters,
    /// Index of the case of each pair.
    case_indices: Vec<usize>,
    /// Number of pairs of each model, scored or not.
    pub(super) pair_counts: Vec<u64>,
}

/// Statistics of the original pairs or of one bootstrap resample.
pub(super) struct ReplicateStrengths {
    /// Win rate of each model.
    pub(super) rates: Vec<Defined<f64>>,
    /// Maximum-likelihood strengths.
    pub(super) fit: Defined<Davidson>,
    /// Regularised (shrunk) strengths, which always exist.
    pub(super) shrunk: Davidson,
}

impl ReplicateStrengths {
    /// Returns the maximum-likelihood strengths, or the shrunk ones if those are undefined.
    pub(super) fn fit_or_shrunk(&self) -> &Davidson {
        self.fit.as_ref().unwrap_or(&self.shrunk)
    }
}

impl ComparisonData {
    pub(super) fn new(runs: &[Verdicts], target: ScoreTarget) -> Self {
        let all_pairs = || runs.iter().flat_map(|run| &run.pairs);
        let mut numbers: BTreeMap<&str, usize> = BTreeMap::new();
        for model in all_pairs().flat_map(|verdict| &verdict.pair) {
            numbers.entry(model).or_default();
        }
        for (index, number) in numbers.values_mut().enumerate() {
            *number = index;
        }
        let mut pair_counts = vec![0; numbers.len()];
        let mut scored: Vec<&PairVerdict> = Vec::new();
        let mut pairs = Vec::new();
        for verdict in all_pairs() {
            let number = |model: &String| numbers.get(model.as_str()).copied().unwrap_or_default();
            let model_indices = verdict.pair.each_ref().map(number);
            for model in model_indices {
                pair_counts[model] += 1;
            }
            if let Some(order) = verdict.order(target) {
                pairs.push((model_indices, order));
                scored.push(verdict);
            }
        }
        let mut case_numbers: BTreeMap<&str, usize> = BTreeMap::new();
        let mut case_indices = Vec::with_capacity(scored.len());
        for verdict in &scored {
            let next = case_numbers.len();
            case_indices.push(*case_numbers.entry(&verdict.case).or_insert(next));
        }
        Self {
            clusters: Clusters::new(scored.iter().map(|verdict| verdict.cluster.as_str())),
            models: numbers.into_keys().map(str::to_owned).collect(),
            pairs,
            case_indices,
            pair_counts,
        }
    }

    pub(super) fn outcomes(&self, weights: &[f64]) -> PairwiseOutcomes {
        PairwiseOutcomes::new(self.models.len(), &self.pairs, weights)
    }

    pub(super) fn compute_strengths(&self, weights: &[f64]) -> ReplicateStrengths {
        let outcomes = self.outcomes(weights);
        ReplicateStrengths {
            rates: (0..self.models.len()).map(|i| outcomes.win_rate(i)).collect(),
            fit: Davidson::fit(&outcomes),
            shrunk: Davidson::fit_shrunk(&outcomes),
        }
    }

    /// Returns the lead of model `i` over model `j` per image: a win is +1, a loss −1. Pairs with a
    /// third model count in the cases in which it was compared equally often with both. `None` if
    /// no case has a pair of the two or a common opponent.
    pub(super) fn point_margins(&self, [i, j]: [usize; 2]) -> Option<Vec<i64>> {
        let mut results: BTreeMap<(usize, usize), CommonOpponent> = BTreeMap::new();
        for (index, ([a, b], order)) in self.pairs.iter().enumerate() {
            let points = match order {
                Ordering::Greater => 1,
                Ordering::Equal => 0,
                Ordering::Less => -1,
            };
            for (model, other, points) in [(*a, *b, points), (*b, *a, -points)] {
                if model != i && model != j {
                    continue;
                }
                // In a direct pair each model is the other's opponent: use one index for both.
                let opponent = if other == j { i } else { other };
                let result = results.entry((self.case_indices[index], opponent)).or_default();
                result.cluster = self.clusters.cluster_of(index);
                result.point_lead += if model == i { points } else { -points };
                result.pair_surplus += if model == i { 1 } else { -1 };
            }
        }
        let mut margins = vec![0; self.clusters.count()];
        let mut has_comparison = false;
        for result in results.values().filter(|result| result.pair_surplus == 0) {
            has_comparison = true;
            margins[result.cluster] += result.point_lead;
        }
        has_comparison.then_some(margins)
    }
}

/// Results of two models in one case against the same opponent.
#[derive(Default)]
struct CommonOpponent {
    cluster: usize,
    /// Points of `i` minus points of `j`.
    point_lead: i64,
    /// Pairs of `i` minus pairs of `j`.
    pair_surplus: i64,
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Creates two cases with all pairs of three models, and a third case with two models. Each has
    /// its own image.
    fn example() -> ComparisonData {
        use Ordering::{Equal, Greater, Less};
        let pairs = vec![
            ([0, 1], Greater),
            ([0, 2], Greater),
            ([1, 2], Less),
            ([1, 0], Equal),
            ([2, 0], Less),
            ([2, 1], Less),
            ([2, 0], Greater),
        ];
        ComparisonData {
            models: ["a", "b", "c"].map(str::to_owned).into(),
            pairs,
            clusters: Clusters::new([0, 0, 0, 1, 1, 1, 2]),
            case_indices: vec![0, 0, 0, 1, 1, 1, 2],
            pair_counts: vec![0; 3],
        }
    }

    /// In the first case `a` has two points and `b` minus two; in the second case they have one
    /// each. The third case lacks `b`, so it does not count.
    #[test]
    fn point_margins_match_hand_calculation() {
        assert_eq!(example().point_margins([0, 1]), Some(vec![4, 0, 0]));
        assert_eq!(example().point_margins([1, 0]), Some(vec![-4, 0, 0]));
        assert_eq!(example().point_margins([0, 2]), Some(vec![2, 3, -2]));
        let mut without_common = example();
        without_common.pairs.truncate(1);
        assert_eq!(without_common.point_margins([0, 2]), None);
    }
}
