//! Comparisons of models as indices, and the statistics of one bootstrap resample.

use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use crate::analysis::verdicts::{PairVerdict, Verdicts};
use crate::data::labels::ScoreTarget;
use crate::statistics::{Bootstrap, Clusters, Davidson, Defined, PairwiseOutcomes};

/// Comparisons of one or more runs.
pub(super) struct ComparisonData {
    /// Names of the models, sorted.
    pub(super) models: Vec<String>,
    /// Indices of the two models and their order, for each pair with a verdict.
    pub(super) pairs: Vec<([usize; 2], Ordering)>,
    /// Bootstrap cluster of each pair: the image, or the case if it has none.
    pub(super) clusters: Clusters,
    /// Number of images of the pairs with a verdict.
    pub(super) image_count: usize,
    /// Index of the case of each pair.
    case_indices: Vec<usize>,
    /// Indices of the pairs of each model.
    pairs_of_model: Vec<Vec<usize>>,
    /// Number of pairs of each model, scored or not.
    pub(super) pair_counts: Vec<u64>,
}

/// Statistics of the original pairs or of one bootstrap resample.
pub(super) struct ReplicateStrengths {
    /// Win rate of each model.
    pub(super) rates: Vec<Defined<f64>>,
    /// Maximum-likelihood strengths.
    pub(super) fit: Defined<Davidson>,
}

/// Strengths of the original pairs and of all resamples.
pub(super) struct FittedStrengths {
    /// Statistics of the original pairs.
    pub(super) original: ReplicateStrengths,
    /// Maximum-likelihood strengths of the original pairs, or penalised ones, which always exist, if
    /// those are undefined.
    pub(super) for_ranks: Davidson,
    /// Statistics of the resamples. If the strengths of the original pairs are undefined, so are
    /// these: resamples of models that never lost cannot show how strong the models are.
    pub(super) resamples: Vec<ReplicateStrengths>,
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
        // Models without any pair have no rank, so their unlisted pairs do not count either.
        let unlisted = |model: &&str| -> u64 {
            runs.iter().filter_map(|run| run.unlisted_pairs.get(*model)).sum()
        };
        let mut pair_counts: Vec<u64> = numbers.keys().map(unlisted).collect();
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
        // Runs over two data sets can have equal ids of different cases.
        let mut case_numbers: HashMap<(&str, &str), usize> = HashMap::new();
        let mut case_indices = Vec::with_capacity(scored.len());
        for verdict in &scored {
            let next = case_numbers.len();
            let case = (verdict.case.as_str(), verdict.cluster.as_str());
            case_indices.push(*case_numbers.entry(case).or_insert(next));
        }
        let clusters = Clusters::new(scored.iter().map(|verdict| verdict.cluster.as_str()));
        Self {
            image_count: clusters.count_among(|pair| scored[pair].has_image),
            clusters,
            models: numbers.into_keys().map(str::to_owned).collect(),
            pairs_of_model: index_by_model(&pairs, pair_counts.len()),
            pairs,
            case_indices,
            pair_counts,
        }
    }

    pub(super) fn outcomes(&self, weights: &[f64]) -> PairwiseOutcomes {
        PairwiseOutcomes::new(self.models.len(), &self.pairs, weights)
    }

    /// Fits the strengths of the original pairs and of resamples of their images.
    pub(super) fn fit_strengths(&self, bootstrap: Bootstrap) -> FittedStrengths {
        let unit_weights = vec![1.0; self.pairs.len()];
        let original = self.compute_strengths(&unit_weights);
        let for_ranks = match &original.fit {
            Ok(fit) => fit.clone(),
            Err(_) => Davidson::fit_penalised(&self.outcomes(&unit_weights)),
        };
        let resamples = bootstrap.resample(&self.clusters, |weights| match original.fit {
            Ok(_) => self.compute_strengths(weights),
            Err(reason) => {
                ReplicateStrengths { rates: self.outcomes(weights).win_rates(), fit: Err(reason) }
            }
        });
        FittedStrengths { original, for_ranks, resamples }
    }

    fn compute_strengths(&self, weights: &[f64]) -> ReplicateStrengths {
        let outcomes = self.outcomes(weights);
        ReplicateStrengths { rates: outcomes.win_rates(), fit: Davidson::fit(&outcomes) }
    }

    /// Returns the lead of model `i` over model `j` per image: a win is +1, a loss −1. Pairs with a
    /// third model count in the cases in which it was compared equally often with both. `None` if
    /// no case has a pair of the two or a common opponent.
    pub(super) fn point_margins(&self, [i, j]: [usize; 2]) -> Option<PointMargins> {
        let indices = self.pairs_of_model[i].iter().map(|index| (*index, i));
        let indices = indices.chain(self.pairs_of_model[j].iter().map(|index| (*index, j)));
        let mut results: Vec<CommonOpponent> = indices
            .map(|(index, model)| {
                let ([a, b], order) = self.pairs[index];
                let (other, order) = if model == a { (b, order) } else { (a, order.reverse()) };
                let points = order as i64;
                CommonOpponent {
                    case: self.case_indices[index],
                    // In a direct pair each model is the other's opponent: use one index for both.
                    opponent: if other == j { i } else { other },
                    cluster: self.clusters.cluster_of(index),
                    point_lead: if model == i { points } else { -points },
                    pair_surplus: if model == i { 1 } else { -1 },
                }
            })
            .collect();
        results.sort_unstable_by_key(|result| (result.case, result.opponent));
        let mut margins = vec![0; self.clusters.count()];
        let mut compared = BTreeSet::new();
        for same in results.chunk_by(|a, b| (a.case, a.opponent) == (b.case, b.opponent)) {
            let surplus: i64 = same.iter().map(|result| result.pair_surplus).sum();
            let lead: i64 = same.iter().map(|result| result.point_lead).sum();
            if let (0, Some(result)) = (surplus, same.first()) {
                compared.insert(result.cluster);
                margins[result.cluster] += lead;
            }
        }
        (!compared.is_empty()).then_some(PointMargins { margins, images: compared.len() })
    }

    /// Counts the images with a pair of either model.
    pub(super) fn count_images_of(&self, [i, j]: [usize; 2]) -> usize {
        let indices = self.pairs_of_model[i].iter().chain(&self.pairs_of_model[j]);
        indices.map(|index| self.clusters.cluster_of(*index)).collect::<HashSet<_>>().len()
    }
}

/// Returns the indices of the pairs of each model.
fn index_by_model(pairs: &[([usize; 2], Ordering)], models: usize) -> Vec<Vec<usize>> {
    let mut indices = vec![Vec::new(); models];
    for (index, ([a, b], _)) in pairs.iter().enumerate() {
        indices[*a].push(index);
        if a != b {
            indices[*b].push(index);
        }
    }
    indices
}

/// The lead of one model over another.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct PointMargins {
    /// The lead in each image; 0 in images without a comparison.
    pub(super) margins: Vec<i64>,
    /// Number of images with a comparison.
    pub(super) images: usize,
}

/// A pair of model `i` or `j` with an opponent in a case. Pairs with the same opponent in the same case
/// are added.
struct CommonOpponent {
    case: usize,
    opponent: usize,
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
            pairs_of_model: index_by_model(&pairs, 3),
            pairs,
            clusters: Clusters::new([0, 0, 0, 1, 1, 1, 2]),
            image_count: 3,
            case_indices: vec![0, 0, 0, 1, 1, 1, 2],
            pair_counts: vec![0; 3],
        }
    }

    /// In the first case `a` has two points and `b` minus two; in the second case they have one
    /// each. The third case lacks `b`, so it does not count.
    #[test]
    fn point_margins_match_hand_calculation() {
        let found = |pair| example().point_margins(pair).map(|m| (m.margins, m.images));
        assert_eq!(found([0, 1]), Some((vec![4, 0, 0], 2)));
        assert_eq!(found([1, 0]), Some((vec![-4, 0, 0], 2)));
        assert_eq!(found([0, 2]), Some((vec![2, 3, -2], 3)));
        assert_eq!(example().count_images_of([0, 1]), 3);
        let mut without_common = example();
        without_common.pairs.truncate(1);
        without_common.pairs_of_model = index_by_model(&without_common.pairs, 3);
        assert_eq!(without_common.point_margins([0, 2]), None);
    }
}
