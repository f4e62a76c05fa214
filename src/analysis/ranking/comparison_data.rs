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
    cases: Vec<usize>,
    /// Number of pairs of each model, scored or not.
    pub(super) asked: Vec<u64>,
}

/// Statistics of one bootstrap resample.
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
    pub(super) fn best(&self) -> &Davidson {
        self.fit.as_ref().unwrap_or(&self.shrunk)
    }
}

impl ComparisonData {
    pub(super) fn new(runs: &[Verdicts], target: ScoreTarget) -> Self {
        let all = || runs.iter().flat_map(|run| &run.pairs);
        let mut numbers: BTreeMap<&str, usize> = BTreeMap::new();
        for model in all().flat_map(|verdict| &verdict.pair) {
            numbers.entry(model).or_default();
        }
        for (number, place) in numbers.values_mut().enumerate() {
            *place = number;
        }
        let mut asked = vec![0; numbers.len()];
        let mut judged: Vec<&PairVerdict> = Vec::new();
        let mut pairs = Vec::new();
        for verdict in all() {
            let number = |model: &String| numbers.get(model.as_str()).copied().unwrap_or_default();
            let both = verdict.pair.each_ref().map(number);
            for model in both {
                asked[model] += 1;
            }
            if let Some(order) = verdict.order(target) {
                pairs.push((both, order));
                judged.push(verdict);
            }
        }
        let mut numbers_of_cases: BTreeMap<&str, usize> = BTreeMap::new();
        let mut cases = Vec::with_capacity(judged.len());
        for verdict in &judged {
            let next = numbers_of_cases.len();
            cases.push(*numbers_of_cases.entry(&verdict.case).or_insert(next));
        }
        Self {
            clusters: Clusters::new(judged.iter().map(|verdict| verdict.cluster.as_str())),
            models: numbers.into_keys().map(str::to_owned).collect(),
            pairs,
            cases,
            asked,
        }
    }

    pub(super) fn outcomes(&self, weights: &[f64]) -> PairwiseOutcomes {
        PairwiseOutcomes::new(self.models.len(), &self.pairs, weights)
    }

    pub(super) fn draw(&self, weights: &[f64]) -> ReplicateStrengths {
        let outcomes = self.outcomes(weights);
        ReplicateStrengths {
            rates: (0..self.models.len())
                .map(|i| outcomes.win_rate(i))
                .collect(),
            fit: Davidson::fit(&outcomes),
            shrunk: Davidson::shrunk(&outcomes),
        }
    }

    /// Returns the lead of model `i` over model `j` per image: a win is +1, a loss −1. Pairs with a third model
    /// count in the cases in which it was compared equally often with both. `None` if no case has a pair of the
    /// two or a common opponent.
    pub(super) fn lead(&self, [i, j]: [usize; 2]) -> Option<Vec<i64>> {
        let mut results: BTreeMap<(usize, usize), CommonOpponent> = BTreeMap::new();
        for (at, ([a, b], order)) in self.pairs.iter().enumerate() {
            let points = match order {
                Ordering::Greater => 1,
                Ordering::Equal => 0,
                Ordering::Less => -1,
            };
            for (own, other, points) in [(*a, *b, points), (*b, *a, -points)] {
                if own != i && own != j {
                    continue;
                }
                // A direct pair has each as the other's opponent: use one index for both.
                let opponent = if other == j { i } else { other };
                let result = results.entry((self.cases[at], opponent)).or_default();
                result.cluster = self.clusters.of(at);
                result.ahead += if own == i { points } else { -points };
                result.surplus += if own == i { 1 } else { -1 };
            }
        }
        let mut ahead = vec![0; self.clusters.count()];
        let mut met = false;
        for result in results.values().filter(|result| result.surplus == 0) {
            met = true;
            ahead[result.cluster] += result.ahead;
        }
        met.then_some(ahead)
    }
}

/// Results of two models in one case against the same opponent.
#[derive(Default)]
struct CommonOpponent {
    cluster: usize,
    /// Points of `i` minus points of `j`.
    ahead: i64,
    /// Pairs of `i` minus pairs of `j`.
    surplus: i64,
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two cases with all pairs of three models and a third case with two models, one image each.
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
            cases: vec![0, 0, 0, 1, 1, 1, 2],
            asked: vec![0; 3],
        }
    }

    /// In the first case `a` has two points and `b` minus two; in the second case they have one each. The third
    /// case lacks `b`, so it does not count.
    #[test]
    fn leads_match_hand_calculation() {
        assert_eq!(example().lead([0, 1]), Some(vec![4, 0, 0]));
        assert_eq!(example().lead([1, 0]), Some(vec![-4, 0, 0]));
        assert_eq!(example().lead([0, 2]), Some(vec![2, 3, -2]));
        let mut apart = example();
        apart.pairs.truncate(1);
        assert_eq!(apart.lead([0, 2]), None);
    }
}
