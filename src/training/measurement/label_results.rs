//! Agreement with labels of aspects, criteria and final scores (`HDCEval` §4.2, `AutoMedEval` §4.3).

use std::collections::BTreeMap;

use acem3_conclusion::{Verdict, compare_scores};
use acem3_experts::{Aspect, Criterion};
use serde::Serialize;

use super::interval::{Proportion, proportion_with_interval};
use super::test_pair::TestPair;
use super::test_sets::KnownOrder;
use crate::statistics::{
    Bootstrap, Clusters, ContingencyCells, ContingencyTable, Defined, pearson, spearman,
};

/// A pair with its known order and its verdict.
pub(super) type JudgedPair<'a> = (&'a TestPair, &'a KnownOrder, &'a Verdict);

/// Agreement with the labels of a test set. A part without labels is empty or absent.
#[derive(Clone, Debug, Default, Serialize)]
pub struct LabelResults {
    /// Order accuracy of each labelled aspect.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub aspects: Vec<TargetAccuracy>,
    /// Order accuracy of each labelled criterion.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub criteria: Vec<TargetAccuracy>,
    /// Mean of the accuracies of the criteria, each with the same weight.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub criteria_mean: Option<f64>,
    /// Spearman's correlation of final scores with labels, over responses.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub spearman: Option<ScoreCorrelation>,
    /// Pearson's correlation of final scores with labels, over responses.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pearson: Option<ScoreCorrelation>,
}

/// Order accuracy of an aspect or a criterion. A tie counts as an order.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct TargetAccuracy {
    /// Key of the aspect or criterion.
    pub target: String,
    /// Proportion of pairs with the order of the labels.
    pub accuracy: Proportion,
}

impl TargetAccuracy {
    /// Returns the name in tables.
    pub fn name(&self) -> String {
        self.target.replace('_', " ")
    }
}

/// Correlation of scores with labels.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct ScoreCorrelation {
    /// The correlation, −1 to 1.
    pub value: f64,
    /// The 95 % bootstrap interval, clustered by image; `None` if there are too few images.
    pub interval: Option<[f64; 2]>,
    /// Number of responses.
    pub n: usize,
    /// Number of images (clusters).
    pub images: usize,
}

impl LabelResults {
    /// Compares verdicts with labels.
    pub(super) fn new(judged: &[JudgedPair<'_>]) -> Self {
        let aspects = Aspect::ALL.into_iter().filter_map(|aspect| {
            accuracy(judged, aspect.key(), |known, verdict| {
                Some((known.aspect(aspect)?, verdict.aspect_scores(aspect)))
            })
        });
        let criteria = Criterion::ALL.into_iter().filter_map(|criterion| {
            accuracy(judged, criterion.key(), |known, verdict| {
                Some((known.criterion(criterion)?, verdict.criterion_scores(criterion)))
            })
        });
        let criteria: Vec<TargetAccuracy> = criteria.collect();
        let sum: f64 = criteria.iter().map(|criterion| criterion.accuracy.value).sum();
        let scores = ResponseScores::of_pairs(judged);
        Self {
            aspects: aspects.collect(),
            criteria_mean: (!criteria.is_empty()).then(|| sum / criteria.len() as f64),
            criteria,
            spearman: scores.correlation(spearman),
            pearson: scores.correlation(pearson),
        }
    }
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
struct ResponseScores {
    judged: Vec<f64>,
    labels: Vec<f64>,
    clusters: Vec<String>,
}

impl ResponseScores {
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
        let scores = ResponseScores {
            judged: vec![1.0, 2.0, 3.0, 4.5],
            labels: vec![1.0, 3.0, 2.0, 4.0],
            clusters: ["a", "a", "b", "b"].map(str::to_owned).to_vec(),
        };
        let (rank, linear) = (scores.correlation(spearman), scores.correlation(pearson));
        let (rank, linear) = (rank.unwrap(), linear.unwrap());
        assert!((rank.value - 0.8).abs() < 1e-12, "{rank:?}");
        assert_eq!((rank.n, rank.images), (4, 2));
        assert!((linear.value - 0.821_442).abs() < 1e-6, "{linear:?}");
        let equal = ResponseScores { labels: vec![2.0; 4], ..scores };
        assert!(equal.correlation(pearson).is_none());
    }
}
