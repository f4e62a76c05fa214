//! Human ceiling: inter-rater agreement.
//!
//! For a statistic of two raters, the judge is compared with the consensus of all raters, and each
//! rater with the consensus of the others. The ceiling is the mean over raters, weighted by their
//! number of ratings. With two raters, one is compared with the other. A statistic of many raters
//! uses all ratings together.

use std::cmp::Ordering;

use super::statistic::Statistic;
use crate::analysis::agreement::statistics::case_ratings::{CaseRatings, DistinctRatings};
use crate::analysis::agreement::statistics::statistic_group::{
    SampleSize, StatisticGroup, clusters_of_units, order_statistics_many, order_statistics_two,
    score_statistics_many, score_statistics_two,
};
use crate::analysis::agreement::units::labelled_units::{PairUnit, ResponseUnit, order_as_number};
use crate::analysis::verdicts::PairVerdict;
use crate::statistics::agreement::accuracy;
use crate::statistics::{
    Clusters, ContingencyCells, ContingencyTable, Defined, RatingMatrix, RatingMeanSquares,
    Undefined, bias, mean_absolute,
};

/// One rater and the consensus of the others, on the cases that have both.
struct RaterVsConsensus {
    /// Indices of these cases in [`DistinctRatings::distinct`].
    indices: Vec<usize>,
    cells: ContingencyCells,
}

impl StatisticGroup {
    /// Creates the group of statistics of the raters' pair orders.
    pub(crate) fn from_rater_orders(
        units: &[&PairUnit],
        verdicts: &[PairVerdict],
        raters: usize,
    ) -> Self {
        let ratings_of = |unit: &&PairUnit| {
            let votes = unit.ratings.votes();
            let others =
                |(rater, _): &(u32, _)| unit.ratings.order(Some(*rater)).map(order_as_number);
            CaseRatings {
                consensus_of_others: votes.iter().map(others).collect(),
                ratings: votes
                    .iter()
                    .map(|(rater, order)| (*rater, order_as_number(*order)))
                    .collect(),
            }
        };
        let rated = units.iter().map(|unit| (unit.verdict, ratings_of(unit)));
        let (ratings, verdict_indices) = select_multi_rater_cases(rated);
        let comparisons = compare_raters_with_consensus(&ratings, raters);
        let n = ratings.len();
        let case_counts = ratings.weights(&vec![1.0; n]);
        let rated_units = ratings
            .to_matrix()
            .map(|matrix| matrix.to_rated_units().with_case_counts(&case_counts));
        let clusters = clusters_of_units(verdict_indices.into_iter(), verdicts);
        let count = |statistic: &Statistic| match (statistic, &rated_units) {
            (Statistic::AccuracyWithoutTies, _) => {
                ratings.count_accuracy_cases(&clusters, accuracy::without_ties)
            }
            (Statistic::AccuracyPreferred, _) => {
                ratings.count_accuracy_cases(&clusters, accuracy::judge_ties_as_half)
            }
            (Statistic::OrderFleiss, Ok(units)) => {
                ratings.count_cases(&clusters, |index| units.has_required_ratings(index))
            }
            _ => SampleSize::all(&clusters),
        };
        let counts = Statistic::ORDERS.iter().map(count).collect();
        let compute = move |weights: &[f64]| {
            let weights = ratings.weights(weights);
            let mut values = mean_over_raters(&comparisons, &weights, order_statistics_two);
            values.extend(match &rated_units {
                Ok(units) => order_statistics_many(units, &weights),
                Err(reason) => [Err(*reason); 3],
            });
            values
        };
        Self {
            statistics: Statistic::ORDERS.to_vec(),
            counts,
            n,
            labelled: n,
            clusters,
            mean_squares: None,
            compute: Box::new(compute),
        }
    }

    /// Creates the group of statistics of the raters' response scores.
    pub(crate) fn from_rater_scores(
        units: &[&ResponseUnit],
        verdicts: &[PairVerdict],
        raters: usize,
    ) -> Self {
        let ratings_of = |unit: &&ResponseUnit| {
            let others = |(rater, _): &(u32, f64)| unit.label(Some(*rater));
            CaseRatings {
                consensus_of_others: unit.ratings.iter().map(others).collect(),
                ratings: unit.ratings.clone(),
            }
        };
        let rated = units.iter().map(|unit| (unit.verdict, ratings_of(unit)));
        let (ratings, verdict_indices) = select_multi_rater_cases(rated);
        let comparisons = compare_raters_with_consensus(&ratings, raters);
        let n = ratings.len();
        let case_counts = ratings.weights(&vec![1.0; n]);
        let units_and_rows = ratings.to_matrix().map(|matrix| {
            (matrix.to_rated_units().with_case_counts(&case_counts), matrix.complete_rows())
        });
        let clusters = clusters_of_units(verdict_indices.into_iter(), verdicts);
        let defined = units_and_rows.as_ref().ok();
        let mean_squares =
            defined.map(|(units, rows)| RatingMeanSquares::new(units, rows, &case_counts));
        let equally_rated = ratings.count_cases(&clusters, |index| {
            defined.is_some_and(|(units, _)| units.has_required_ratings(index))
        });
        let complete = ratings.count_cases(&clusters, |index| {
            let row = defined.and_then(|(_, rows)| rows.get(index));
            row.is_some_and(Option::is_some)
        });
        let count = |statistic: &Statistic| match statistic {
            Statistic::Fleiss => equally_rated,
            other => match other.icc_form() {
                Some(form) if form.is_one_way() => equally_rated,
                Some(_) => complete,
                None => SampleSize::all(&clusters),
            },
        };
        let counts = Statistic::SCORES.iter().map(count).collect();
        let compute = move |weights: &[f64]| {
            let weights = ratings.weights(weights);
            let mut values = mean_over_raters(&comparisons, &weights, |table| {
                let mut values = score_statistics_two(table);
                values.extend([mean_absolute(table), bias(table)]);
                values
            });
            // The statistics of many raters come before the two errors.
            let errors = values.split_off(values.len() - 2);
            values.extend(match &units_and_rows {
                Ok((units, rows)) => score_statistics_many(units, rows, &weights),
                Err(reason) => vec![Err(*reason); 10],
            });
            values.extend(errors);
            values
        };
        Self {
            statistics: Statistic::SCORES.to_vec(),
            counts,
            n,
            labelled: n,
            clusters,
            mean_squares,
            compute: Box::new(compute),
        }
    }
}

/// Selects the ratings of cases with at least two raters, and the verdicts of these cases.
fn select_multi_rater_cases(
    all: impl Iterator<Item = (usize, CaseRatings)>,
) -> (DistinctRatings, Vec<usize>) {
    let mut verdicts = Vec::new();
    let selected = all.filter(|(_, case)| case.ratings.len() > 1).map(|(verdict, case)| {
        verdicts.push(verdict);
        case
    });
    (DistinctRatings::new(selected), verdicts)
}

impl DistinctRatings {
    /// Converts the entries to a matrix.
    fn to_matrix(&self) -> Defined<RatingMatrix> {
        RatingMatrix::new(self.distinct.iter().map(|case| case.ratings.clone()).collect())
    }

    /// Counts the cases that an accuracy includes for at least one rater. `definition` is a function
    /// of [`accuracy`].
    fn count_accuracy_cases(
        &self,
        clusters: &Clusters,
        definition: fn(Ordering, Ordering) -> Option<f64>,
    ) -> SampleSize {
        let order = |value: f64| value.total_cmp(&0.0);
        self.count_cases(clusters, |index| {
            let case = &self.distinct[index];
            let mut pairs = case.ratings.iter().zip(&case.consensus_of_others);
            pairs.any(|((_, rating), others)| {
                others.is_some_and(|others| definition(order(*rating), order(others)).is_some())
            })
        })
    }

    /// Counts the cases for which `includes` returns true. `includes` receives the index of a case
    /// in [`DistinctRatings::distinct`].
    fn count_cases(&self, clusters: &Clusters, includes: impl Fn(usize) -> bool) -> SampleSize {
        SampleSize::counting(clusters, |case| includes(self.index_of(case)))
    }
}

/// Compares each rater with the consensus of the others.
fn compare_raters_with_consensus(
    ratings: &DistinctRatings,
    raters: usize,
) -> Vec<RaterVsConsensus> {
    let comparison = |rater: u32| {
        let (mut indices, mut values, mut others) = (Vec::new(), Vec::new(), Vec::new());
        for (index, case) in ratings.distinct.iter().enumerate() {
            let mut all = case.ratings.iter().zip(&case.consensus_of_others);
            if let Some(((_, value), Some(consensus))) = all.find(|((by, _), _)| *by == rater) {
                indices.push(index);
                values.push(*value);
                others.push(*consensus);
            }
        }
        let cells = ContingencyCells::new(&values, &others).ok()?;
        Some(RaterVsConsensus { indices, cells })
    };
    (0..raters as u32).filter_map(comparison).collect()
}

/// Computes the mean of each statistic over raters, weighted by their number of cases. Raters with
/// an undefined statistic are excluded. If it is undefined for all raters, the error is that of the
/// last one.
fn mean_over_raters(
    comparisons: &[RaterVsConsensus],
    weights: &[f64],
    statistics: impl Fn(&ContingencyTable<'_>) -> Vec<Defined<f64>>,
) -> Vec<Defined<f64>> {
    let mut means: Vec<(f64, f64, Option<Undefined>)> = Vec::new();
    for comparison in comparisons {
        let indices = comparison.indices.iter();
        let rater_weights: Vec<f64> = indices.map(|index| weights[*index]).collect();
        let cases: f64 = rater_weights.iter().sum();
        let values = statistics(&comparison.cells.weighted_table(&rater_weights));
        means.resize(values.len(), (0.0, 0.0, None));
        for (value, (sum, n, reason)) in values.into_iter().zip(&mut means) {
            match value {
                Ok(value) => (*sum, *n) = (*sum + cases * value, *n + cases),
                Err(undefined) => *reason = Some(undefined),
            }
        }
    }
    let mean = |(sum, n, reason): (f64, f64, Option<Undefined>)| {
        let no_cases = Undefined::TooFew {
            items: ["case of two raters", "cases of two raters"],
            found: 0,
            needed: 1,
        };
        if n > 0.0 { Ok(sum / n) } else { Err(reason.unwrap_or(no_cases)) }
    };
    means.into_iter().map(mean).collect()
}
