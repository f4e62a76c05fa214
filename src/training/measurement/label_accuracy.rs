//! Compares verdicts with labels of aspects, criteria and final scores.

use std::collections::BTreeSet;

use std::collections::BTreeMap;

use acem3_conclusion::{Verdict, compare_scores};
use acem3_experts::{Aspect, Criterion};

use super::interval::proportion_with_interval;
use super::label_results::{LabelResults, ScoreCorrelation, TargetAccuracy};
use super::test_pair::TestPair;
use super::test_sets::KnownOrder;
use crate::statistics::{
    Bootstrap, Clusters, ContingencyCells, ContingencyTable, Defined, pearson, spearman,
};

/// A pair with its known order and its verdict.
pub(super) type JudgedPair<'a> = (&'a TestPair, &'a KnownOrder, &'a Verdict);

/// Compares verdicts with labels.
pub(super) fn compare_with_labels(judged: &[JudgedPair<'_>]) -> LabelResults {
    let aspects = Aspect::known().into_iter().filter_map(|aspect| {
        accuracy(judged, aspect.key(), |known, verdict| {
            let order = known.aspect(aspect).filter(|_| has_aspect(verdict, aspect))?;
            Some((order, verdict.aspect_scores(aspect)))
        })
    });
    let criteria = Criterion::known().into_iter().filter_map(|criterion| {
        accuracy(judged, criterion.key(), |known, verdict| {
            let order = known.criterion(criterion).filter(|_| has_criterion(verdict, criterion))?;
            Some((order, verdict.criterion_scores(criterion)))
        })
    });
    let criteria: Vec<TargetAccuracy> = criteria.collect();
    let scored: BTreeSet<Criterion> = judged
        .iter()
        .flat_map(|(_, _, verdict)| &verdict.orders)
        .flat_map(|order| &order.branches)
        .flat_map(|branch| branch.ratings.iter().map(|(criterion, _)| *criterion))
        .collect();
    let sum: f64 = criteria.iter().map(|criterion| criterion.accuracy.value).sum();
    let scores = ResponseMeans::of_pairs(judged);
    LabelResults {
        aspects: aspects.collect(),
        // A mean of some criteria would not be comparable.
        criteria_mean: (!criteria.is_empty() && criteria.len() == scored.len())
            .then(|| sum / criteria.len() as f64),
        criteria,
        spearman: scores.correlation(spearman),
        pearson: scores.correlation(pearson),
    }
}

/// Returns true if a verdict has scores of an aspect. A panel of another rubric has none.
pub(super) fn has_aspect(verdict: &Verdict, aspect: Aspect) -> bool {
    let mut branches = verdict.orders.iter().flat_map(|order| &order.branches);
    branches.any(|branch| branch.aspect == aspect)
}

/// Returns true if a verdict has scores of a criterion.
pub(super) fn has_criterion(verdict: &Verdict, criterion: Criterion) -> bool {
    let branches = verdict.orders.iter().flat_map(|order| &order.branches);
    let mut ratings = branches.flat_map(|branch| &branch.ratings);
    ratings.any(|(rated, _)| *rated == criterion)
}

/// Returns the order accuracy of a target; `None` if no pair has a label. `target`: returns the known
/// order of a pair and the judge's scores.
fn accuracy(
    judged: &[JudgedPair<'_>],
    key: &str,
    target: impl Fn(&KnownOrder, &Verdict) -> Option<(std::cmp::Ordering, Vec<f64>)>,
) -> Option<TargetAccuracy> {
    let values = judged.iter().filter_map(|(pair, known, verdict)| {
        let (order, scores) = target(known, verdict)?;
        let is_right = order == compare_scores(scores);
        Some((pair.cluster.clone(), f64::from(u8::from(is_right))))
    });
    let accuracy = proportion_with_interval(&values.collect::<Vec<_>>())?;
    Some(TargetAccuracy { target: key.to_owned(), accuracy })
}

/// Final scores of responses: the judge's, averaged over the pairs of a response, and the labels.
struct ResponseMeans {
    judged: Vec<f64>,
    labels: Vec<f64>,
    clusters: Vec<String>,
}

impl ResponseMeans {
    fn of_pairs(judged: &[JudgedPair<'_>]) -> Self {
        // Sum and number of the judge's scores, label and cluster of each response.
        let mut responses: BTreeMap<&str, (f64, f64, f64, &str)> = BTreeMap::new();
        for (pair, known, verdict) in judged {
            let Some(labels) = &known.labels else { continue };
            for ((key, label), score) in labels.iter().zip(verdict.scores()) {
                let entry = responses.entry(key).or_insert((0.0, 0.0, *label, &pair.cluster));
                entry.0 += score;
                entry.1 += 1.0;
            }
        }
        let mut scores = Self { judged: vec![], labels: vec![], clusters: vec![] };
        for (sum, n, label, cluster) in responses.into_values() {
            scores.judged.push(sum / n);
            scores.labels.push(label);
            scores.clusters.push(cluster.to_owned());
        }
        scores
    }

    /// Returns a correlation; `None` if it is undefined, for example for equal labels.
    fn correlation(
        &self,
        statistic: fn(&ContingencyTable<'_>) -> Defined<f64>,
    ) -> Option<ScoreCorrelation> {
        let cells = ContingencyCells::new(&self.judged, &self.labels).ok()?;
        let clusters = Clusters::new(self.clusters.iter().map(String::as_str));
        let n = self.judged.len();
        let estimate = Bootstrap::default()
            .estimate(&clusters, n, |weights| statistic(&cells.weighted_table(weights)));
        Some(ScoreCorrelation {
            value: estimate.value.ok()?,
            interval: estimate.interval.ok(),
            n,
            images: estimate.clusters,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Computed by hand: the ranks differ by one twice, and the product-moment correlation.
    #[test]
    fn correlations_are_over_responses() {
        let scores = ResponseMeans {
            judged: vec![1.0, 2.0, 3.0, 4.5],
            labels: vec![1.0, 3.0, 2.0, 4.0],
            clusters: ["a", "a", "b", "b"].map(str::to_owned).to_vec(),
        };
        let (rank, linear) = (scores.correlation(spearman), scores.correlation(pearson));
        let (rank, linear) = (rank.unwrap(), linear.unwrap());
        assert!((rank.value - 0.8).abs() < 1e-12, "{rank:?}");
        assert_eq!((rank.n, rank.images), (4, 2));
        assert!((linear.value - 0.821_442).abs() < 1e-6, "{linear:?}");
        let equal = ResponseMeans { labels: vec![2.0; 4], ..scores };
        assert!(equal.correlation(pearson).is_none());
    }
}
