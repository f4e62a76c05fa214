//! Statistics that are computed together on the same cases.

use std::cmp::Ordering;

use super::statistic::Statistic;
use crate::analysis::agreement::units::labelled_units::{
    PairUnit, ResponseUnit, TripleUnit, order_as_number,
};
use crate::analysis::verdicts::PairVerdict;
use crate::statistics::agreement::accuracy;
use crate::statistics::{
    Clusters, ContingencyCells, ContingencyTable, Defined, DistanceMetric, IccForm, RatedUnits,
    RatingMeanSquares, Weighting, alpha, bias, fleiss, kappa, kendall, mean, mean_absolute,
    mean_over_table, pearson, spearman,
};

/// Computes one value per statistic from the weight of each case.
type StatisticsFn = Box<dyn Fn(&[f64]) -> Vec<Defined<f64>> + Send + Sync>;

/// Statistics of the same cases.
pub struct StatisticGroup {
    /// The statistics.
    pub statistics: Vec<Statistic>,
    /// Sample size of each statistic. Some statistics exclude cases, for example ties.
    pub counts: Vec<SampleSize>,
    /// Number of cases with a verdict.
    pub n: usize,
    /// Number of labelled cases.
    pub labelled: usize,
    /// Bootstrap clusters of the cases with a verdict.
    pub clusters: Clusters,
    /// Mean squares of the scores, for exact intervals of intraclass correlations.
    pub mean_squares: Option<RatingMeanSquares>,
    pub(crate) compute: StatisticsFn,
}

/// Sample size of a statistic.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SampleSize {
    /// Number of cases.
    pub n: usize,
    /// Number of images.
    pub images: usize,
}

impl SampleSize {
    /// Counts all cases.
    pub(crate) fn all(clusters: &Clusters) -> Self {
        Self { n: clusters.len(), images: clusters.count() }
    }

    /// Counts the cases for which `includes` returns true.
    pub(crate) fn counting(clusters: &Clusters, includes: impl Fn(usize) -> bool) -> Self {
        Self {
            n: (0..clusters.len()).filter(|case| includes(*case)).count(),
            images: clusters.count_among(includes),
        }
    }
}

impl StatisticGroup {
    /// Computes every statistic with weight 1 for each case.
    pub fn values(&self) -> Vec<Defined<f64>> {
        (self.compute)(&vec![1.0; self.clusters.len()])
    }

    /// Creates the group of statistics of pair orders.
    pub(crate) fn from_pairs(units: &[&PairUnit], verdicts: &[PairVerdict]) -> Self {
        let judged = units
            .iter()
            .filter_map(|unit| Some((unit.verdict, unit.judge?, unit.ratings.order(None)?)));
        let judged: Vec<(usize, Ordering, Ordering)> = judged.collect();
        let clusters = clusters_of_units(judged.iter().map(|(v, ..)| *v), verdicts);
        let judge: Vec<f64> = judged.iter().map(|pair| order_as_number(pair.1)).collect();
        let label: Vec<f64> = judged.iter().map(|pair| order_as_number(pair.2)).collect();
        let ratings = TwoRaters::new(&judge, &label);
        let count_cases = |definition: fn(Ordering, Ordering) -> Option<f64>| {
            SampleSize::counting(&clusters, |case| {
                let (_, judge, label) = judged[case];
                definition(judge, label).is_some()
            })
        };
        let count = |statistic: &Statistic| match statistic {
            Statistic::AccuracyWithoutTies => count_cases(accuracy::without_ties),
            Statistic::AccuracyPreferred => count_cases(accuracy::judge_ties_as_half),
            _ => SampleSize::all(&clusters),
        };
        let counts = Statistic::ORDERS.iter().map(count).collect();
        Self {
            statistics: Statistic::ORDERS.to_vec(),
            counts,
            n: judged.len(),
            labelled: units.len(),
            clusters,
            mean_squares: None,
            compute: Box::new(move |weights| ratings.order_statistics(weights)),
        }
    }

    /// Creates the group of statistics of triples.
    pub(crate) fn from_triples(units: &[&TripleUnit], verdicts: &[PairVerdict]) -> Self {
        let judged = units.iter().filter_map(|u| Some((u.verdict, u.judge?, u.label)));
        let judged: Vec<_> = judged.collect();
        let clusters = clusters_of_units(judged.iter().map(|(v, ..)| *v), verdicts);
        let accuracy = |(_, judge, label): &(_, _, _)| Some(accuracy::triple(*judge, *label));
        let accuracies: Vec<Option<f64>> = judged.iter().map(accuracy).collect();
        Self {
            statistics: vec![Statistic::AccuracyTriple],
            counts: vec![SampleSize::all(&clusters)],
            n: judged.len(),
            labelled: units.len(),
            clusters,
            mean_squares: None,
            compute: Box::new(move |weights| vec![mean(&accuracies, weights)]),
        }
    }

    /// Creates the group of statistics of response scores.
    pub(crate) fn from_responses(units: &[&ResponseUnit], verdicts: &[PairVerdict]) -> Self {
        let judged = units.iter().filter_map(|u| Some((u.verdict, u.judge?, u.label(None)?)));
        let judged: Vec<(usize, f64, f64)> = judged.collect();
        let clusters = clusters_of_units(judged.iter().map(|(v, ..)| *v), verdicts);
        let judge: Vec<f64> = judged.iter().map(|unit| unit.1).collect();
        let label: Vec<f64> = judged.iter().map(|unit| unit.2).collect();
        let ratings = TwoRaters::new(&judge, &label);
        Self {
            statistics: Statistic::SCORES.to_vec(),
            counts: vec![SampleSize::all(&clusters); Statistic::SCORES.len()],
            n: judged.len(),
            labelled: units.len(),
            clusters,
            mean_squares: ratings.mean_squares(),
            compute: Box::new(move |weights| ratings.score_statistics(weights)),
        }
    }
}

/// Returns the bootstrap clusters of units, given the indices of their verdicts.
pub(crate) fn clusters_of_units(
    verdict_indices: impl Iterator<Item = usize>,
    verdicts: &[PairVerdict],
) -> Clusters {
    let cluster = |i: usize| verdicts.get(i).map_or("", |v| v.cluster.as_str());
    Clusters::new(verdict_indices.map(cluster))
}

/// Paired ratings of judge and label, or the reason why statistics are undefined.
struct TwoRaters(Defined<DistinctPairs>);

/// The distinct pairs of ratings, as cells, units and rows.
struct DistinctPairs {
    cells: ContingencyCells,
    units: RatedUnits,
    rows: Vec<Option<Vec<f64>>>,
}

impl TwoRaters {
    fn new(first: &[f64], second: &[f64]) -> Self {
        Self(ContingencyCells::new(first, second).map(|cells| {
            let ratings = cells.ratings();
            DistinctPairs { units: ratings.to_rated_units(), rows: ratings.complete_rows(), cells }
        }))
    }

    /// Computes the statistics of orders, in the order of [`Statistic::ORDERS`].
    fn order_statistics(&self, weights: &[f64]) -> Vec<Defined<f64>> {
        self.compute(Statistic::ORDERS.len(), weights, |table, units, _| {
            let mut values = order_statistics_two(table);
            values.extend(order_statistics_many(units, table.weights()));
            values
        })
    }

    /// Computes the statistics of scores, in the order of [`Statistic::SCORES`].
    fn score_statistics(&self, weights: &[f64]) -> Vec<Defined<f64>> {
        self.compute(Statistic::SCORES.len(), weights, |table, units, rows| {
            let mut values = score_statistics_two(table);
            values.extend(score_statistics_many(units, rows, table.weights()));
            values.extend([mean_absolute(table), bias(table)]);
            values
        })
    }

    fn compute(
        &self,
        n: usize,
        weights: &[f64],
        statistics: impl Fn(
            &ContingencyTable<'_>,
            &RatedUnits,
            &[Option<Vec<f64>>],
        ) -> Vec<Defined<f64>>,
    ) -> Vec<Defined<f64>> {
        match &self.0 {
            Ok(pairs) => {
                statistics(&pairs.cells.weighted_table(weights), &pairs.units, &pairs.rows)
            }
            Err(reason) => vec![Err(*reason); n],
        }
    }

    /// Computes the mean squares for intraclass correlations.
    fn mean_squares(&self) -> Option<RatingMeanSquares> {
        let pairs = self.0.as_ref().ok()?;
        let weights = pairs.cells.table();
        Some(RatingMeanSquares::new(&pairs.units, &pairs.rows, weights.weights()))
    }
}

/// Computes the order statistics of exactly two raters, in the order of [`Statistic::ORDERS`].
pub(crate) fn order_statistics_two(table: &ContingencyTable<'_>) -> Vec<Defined<f64>> {
    let order = |value: f64| value.total_cmp(&0.0);
    let proportion = |definition: fn(Ordering, Ordering) -> Option<f64>| {
        mean_over_table(table, |a, b| definition(order(a), order(b)))
    };
    vec![
        proportion(|judge, label| Some(accuracy::with_ties(judge, label))),
        proportion(accuracy::without_ties),
        proportion(accuracy::judge_ties_as_half),
        kappa(table, Weighting::Unweighted),
    ]
}

/// Computes the order statistics of any number of raters, in the order of [`Statistic::ORDERS`].
pub(crate) fn order_statistics_many(units: &RatedUnits, weights: &[f64]) -> [Defined<f64>; 3] {
    [
        fleiss(units, weights),
        alpha(units, DistanceMetric::Nominal, weights),
        alpha(units, DistanceMetric::Ordinal, weights),
    ]
}

/// Computes the score statistics of exactly two raters, in the order of [`Statistic::SCORES`].
pub(crate) fn score_statistics_two(table: &ContingencyTable<'_>) -> Vec<Defined<f64>> {
    vec![
        pearson(table),
        spearman(table),
        kendall(table),
        kappa(table, Weighting::Unweighted),
        kappa(table, Weighting::Linear),
        kappa(table, Weighting::Quadratic),
    ]
}

/// Computes the score statistics of any number of raters, in the order of [`Statistic::SCORES`].
pub(crate) fn score_statistics_many(
    units: &RatedUnits,
    rows: &[Option<Vec<f64>>],
    weights: &[f64],
) -> Vec<Defined<f64>> {
    let mut values = vec![fleiss(units, weights)];
    let metrics = [DistanceMetric::Nominal, DistanceMetric::Ordinal, DistanceMetric::Interval];
    values.extend(metrics.map(|metric| alpha(units, metric, weights)));
    let squares = RatingMeanSquares::new(units, rows, weights);
    values.extend(IccForm::ALL.map(|form| squares.for_form(form)?.value(form)));
    values
}
