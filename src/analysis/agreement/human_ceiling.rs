//! Human ceiling: inter-rater agreement.
//!
//! For a statistic of two raters, each rater is compared with the consensus of the others, as the judge is
//! compared with that of all; the ceiling is the mean over raters, weighted by their number of ratings. With
//! two raters this compares one with the other. A statistic of many raters uses all of them at once.

use std::cmp::Ordering;

use super::statistic::Statistic;
use super::units::{PairUnit, ResponseUnit, order_as_number};
use crate::analysis::agreement::case_ratings::{CaseRatings, DistinctRatings};
use crate::analysis::agreement::statistic_group::{
    SampleSize, StatisticGroup, clusters, order_statistics_many, order_statistics_two,
    score_statistics_many, score_statistics_two,
};
use crate::analysis::verdicts::PairVerdict;
use crate::statistics::agreement::accuracy;
use crate::statistics::{
    Clusters, ContingencyCells, ContingencyTable, Defined, RatingMatrix, RatingMeanSquares,
    Undefined, bias, mean_absolute,
};

/// One rater and the consensus of the others, on the cases that have both.
struct RaterVsConsensus {
    /// Indices of the distinct ratings.
    indices: Vec<usize>,
    cells: ContingencyCells,
}

impl StatisticGroup {
    /// The statistics of the raters' pair orders.
    pub(super) fn raters_orders(
        units: &[&PairUnit],
        verdicts: &[PairVerdict],
        raters: usize,
    ) -> Self {
        let ratings_of = |unit: &&PairUnit| {
            let votes = unit.rated.votes();
            let others =
                |(rater, _): &(u32, _)| unit.rated.order(Some(*rater)).map(order_as_number);
            CaseRatings {
                others: votes.iter().map(others).collect(),
                by: votes
                    .iter()
                    .map(|(rater, order)| (*rater, order_as_number(*order)))
                    .collect(),
            }
        };
        let all = units.iter().map(|unit| (unit.verdict, ratings_of(unit)));
        let (ratings, verdict) = with_several_raters(all);
        let comparisons = rater_vs_consensus(&ratings, raters);
        let n = ratings.len();
        let once = ratings.weights(&vec![1.0; n]);
        let matrix = ratings.matrix();
        let table = matrix.map(|matrix| matrix.paired().of_cases(&once));
        let clusters = clusters(verdict.into_iter(), verdicts);
        let count = |statistic: &Statistic| match (statistic, &table) {
            (Statistic::AccuracyWithoutTies, _) => {
                ratings.counted(&clusters, accuracy::without_ties)
            }
            (Statistic::AccuracyPreferred, _) => ratings.counted(&clusters, accuracy::preferred),
            (Statistic::OrderFleiss, Ok(units)) => {
                ratings.count(&clusters, |index| units.is_even(index))
            }
            _ => SampleSize::all(&clusters),
        };
        let counts = Statistic::ORDERS.iter().map(count).collect();
        let compute = move |weights: &[f64]| {
            let weights = ratings.weights(weights);
            let mut values = mean_over_raters(&comparisons, &weights, order_statistics_two);
            values.extend(match &table {
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
            squares: None,
            compute: Box::new(compute),
        }
    }

    /// The statistics of the raters' response scores.
    pub(super) fn raters_scores(
        units: &[&ResponseUnit],
        verdicts: &[PairVerdict],
        raters: usize,
    ) -> Self {
        let ratings_of = |unit: &&ResponseUnit| {
            let others = |(rater, _): &(u32, f64)| unit.label(Some(*rater));
            CaseRatings {
                others: unit.ratings.iter().map(others).collect(),
                by: unit.ratings.clone(),
            }
        };
        let all = units.iter().map(|unit| (unit.verdict, ratings_of(unit)));
        let (ratings, verdict) = with_several_raters(all);
        let comparisons = rater_vs_consensus(&ratings, raters);
        let n = ratings.len();
        let once = ratings.weights(&vec![1.0; n]);
        let table = ratings
            .matrix()
            .map(|matrix| (matrix.paired().of_cases(&once), matrix.complete()));
        let clusters = clusters(verdict.into_iter(), verdicts);
        let squares = table
            .as_ref()
            .ok()
            .map(|(units, rows)| RatingMeanSquares::of(units, rows, &once));
        let known = table.as_ref().ok();
        let even = ratings.count(&clusters, |index| {
            known.is_some_and(|(units, _)| units.is_even(index))
        });
        let complete = ratings.count(&clusters, |index| {
            let row = known.and_then(|(_, rows)| rows.get(index));
            row.is_some_and(Option::is_some)
        });
        let count = |statistic: &Statistic| match statistic {
            Statistic::Fleiss => even,
            other => match other.icc() {
                Some(form) if form.is_one_way() => even,
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
            values.extend(match &table {
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
            squares,
            compute: Box::new(compute),
        }
    }
}

/// The ratings of cases with at least two raters, and the verdicts of these cases.
fn with_several_raters(
    all: impl Iterator<Item = (usize, CaseRatings)>,
) -> (DistinctRatings, Vec<usize>) {
    let mut verdicts = Vec::new();
    let kept = all
        .filter(|(_, ratings)| ratings.by.len() > 1)
        .map(|(verdict, ratings)| {
            verdicts.push(verdict);
            ratings
        });
    (DistinctRatings::new(kept), verdicts)
}

impl DistinctRatings {
    /// The distinct ratings as a matrix.
    fn matrix(&self) -> Defined<RatingMatrix> {
        RatingMatrix::new(
            self.distinct
                .iter()
                .map(|ratings| ratings.by.clone())
                .collect(),
        )
    }

    /// The cases that count in an accuracy for at least one rater.
    fn counted(
        &self,
        clusters: &Clusters,
        counts: fn(Ordering, Ordering) -> Option<f64>,
    ) -> SampleSize {
        let order = |value: f64| value.total_cmp(&0.0);
        self.count(clusters, |index| {
            let ratings = &self.distinct[index];
            let mut pairs = ratings.by.iter().zip(&ratings.others);
            pairs.any(|((_, own), others)| {
                others.is_some_and(|others| counts(order(*own), order(others)).is_some())
            })
        })
    }

    /// The cases whose ratings count; `counts` receives the index of the distinct ratings.
    fn count(&self, clusters: &Clusters, counts: impl Fn(usize) -> bool) -> SampleSize {
        SampleSize::counting(clusters, |case| counts(self.index_of(case)))
    }
}

/// Compares each rater with the consensus of the others.
fn rater_vs_consensus(ratings: &DistinctRatings, raters: usize) -> Vec<RaterVsConsensus> {
    let comparison = |rater: u32| {
        let (mut indices, mut own, mut others) = (Vec::new(), Vec::new(), Vec::new());
        for (index, ratings) in ratings.distinct.iter().enumerate() {
            let mut all = ratings.by.iter().zip(&ratings.others);
            if let Some(((_, value), Some(rest))) = all.find(|((by, _), _)| *by == rater) {
                indices.push(index);
                own.push(*value);
                others.push(*rest);
            }
        }
        let cells = ContingencyCells::new(&own, &others).ok()?;
        Some(RaterVsConsensus { indices, cells })
    };
    (0..raters as u32).filter_map(comparison).collect()
}

/// Mean of each statistic over raters, weighted by their number of cases. Raters for whom it is undefined
/// are left out; if it is undefined for all, the error is that of the last rater.
fn mean_over_raters(
    comparisons: &[RaterVsConsensus],
    weights: &[f64],
    statistics: impl Fn(&ContingencyTable<'_>) -> Vec<Defined<f64>>,
) -> Vec<Defined<f64>> {
    let mut means: Vec<(f64, f64, Option<Undefined>)> = Vec::new();
    for comparison in comparisons {
        let indices = comparison.indices.iter();
        let own: Vec<f64> = indices.map(|index| weights[*index]).collect();
        let cases: f64 = own.iter().sum();
        let values = statistics(&comparison.cells.weighted_table(&own));
        means.resize(values.len(), (0.0, 0.0, None));
        for (value, (sum, n, reason)) in values.into_iter().zip(&mut means) {
            match value {
                Ok(value) => (*sum, *n) = (*sum + cases * value, *n + cases),
                Err(why) => *reason = Some(why),
            }
        }
    }
    let mean = |(sum, n, reason): (f64, f64, Option<Undefined>)| {
        let none = Undefined::TooFew {
            what: "cases of two raters",
            found: 0,
            needed: 1,
        };
        if n > 0.0 {
            Ok(sum / n)
        } else {
            Err(reason.unwrap_or(none))
        }
    };
    means.into_iter().map(mean).collect()
}
