//! What no judge need pass: how far people agree with each other.
//!
//! A statistic of two raters is that of each rater beside the others' consensus, as the judge stands beside
//! all of them; the mean over the raters, by the number of their ratings. With two raters this is simply the
//! one beside the other. A statistic of several raters is that of all of them.

use std::cmp::Ordering;

use super::statistic::Statistic;
use super::units::{PairUnit, ResponseUnit, number};
use crate::analysis::agreement::case_ratings::{CaseRatings, DistinctRatings};
use crate::analysis::agreement::statistic_group::{
    SampleSize, StatisticGroup, clusters, several, several_orders, two_columns, two_orders,
};
use crate::analysis::verdicts::PairVerdict;
use crate::statistics::agreement::accuracy;
use crate::statistics::{
    Clusters, ContingencyCells, ContingencyTable, Defined, RatingMatrix, RatingMeanSquares,
    Undefined, bias, mean_absolute,
};

/// A rater beside the others' consensus, on the opinions that have both.
struct RaterVsConsensus {
    /// The places of the opinions.
    places: Vec<usize>,
    cells: ContingencyCells,
}

impl StatisticGroup {
    /// The raters' orders of pairs.
    pub(super) fn raters_orders(
        units: &[&PairUnit],
        verdicts: &[PairVerdict],
        raters: usize,
    ) -> Self {
        let opinion = |unit: &&PairUnit| {
            let votes = unit.rated.votes();
            let others = |(rater, _): &(u32, _)| unit.rated.order(Some(*rater)).map(number);
            CaseRatings {
                others: votes.iter().map(others).collect(),
                by: votes
                    .iter()
                    .map(|(rater, order)| (*rater, number(*order)))
                    .collect(),
            }
        };
        let all = units.iter().map(|unit| (unit.verdict, opinion(unit)));
        let (opinions, verdict) = several_raters(all);
        let found = beside(&opinions, raters);
        let n = opinions.len();
        let once = opinions.weights(&vec![1.0; n]);
        let table = opinions.ratings();
        let table = table.map(|ratings| ratings.paired().of_cases(&once));
        let clusters = clusters(verdict.into_iter(), verdicts);
        let count = |statistic: &Statistic| match (statistic, &table) {
            (Statistic::AccuracyWithoutTies, _) => {
                opinions.counted(&clusters, accuracy::without_ties)
            }
            (Statistic::AccuracyPreferred, _) => opinions.counted(&clusters, accuracy::preferred),
            (Statistic::OrderFleiss, Ok(units)) => {
                opinions.count(&clusters, |opinion| units.is_even(opinion))
            }
            _ => SampleSize::all(&clusters),
        };
        let counts = Statistic::ORDERS.iter().map(count).collect();
        let compute = move |weights: &[f64]| {
            let weights = opinions.weights(weights);
            let mut values = over_raters(&found, &weights, two_orders);
            values.extend(match &table {
                Ok(units) => several_orders(units, &weights),
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

    /// The raters' scores of responses.
    pub(super) fn raters_scores(
        units: &[&ResponseUnit],
        verdicts: &[PairVerdict],
        raters: usize,
    ) -> Self {
        let opinion = |unit: &&ResponseUnit| {
            let others = |(rater, _): &(u32, f64)| unit.label(Some(*rater));
            CaseRatings {
                others: unit.ratings.iter().map(others).collect(),
                by: unit.ratings.clone(),
            }
        };
        let all = units.iter().map(|unit| (unit.verdict, opinion(unit)));
        let (opinions, verdict) = several_raters(all);
        let found = beside(&opinions, raters);
        let n = opinions.len();
        let once = opinions.weights(&vec![1.0; n]);
        let table = opinions
            .ratings()
            .map(|ratings| (ratings.paired().of_cases(&once), ratings.complete()));
        let clusters = clusters(verdict.into_iter(), verdicts);
        let squares = table
            .as_ref()
            .ok()
            .map(|(units, rows)| RatingMeanSquares::of(units, rows, &once));
        let known = table.as_ref().ok();
        let even = opinions.count(&clusters, |opinion| {
            known.is_some_and(|(units, _)| units.is_even(opinion))
        });
        let complete = opinions.count(&clusters, |opinion| {
            let row = known.and_then(|(_, rows)| rows.get(opinion));
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
            let weights = opinions.weights(weights);
            let mut values = over_raters(&found, &weights, |table| {
                let mut values = two_columns(table);
                values.extend([mean_absolute(table), bias(table)]);
                values
            });
            // Those of several raters stand between.
            let last = values.split_off(values.len() - 2);
            values.extend(match &table {
                Ok((units, rows)) => several(units, rows, &weights),
                Err(reason) => vec![Err(*reason); 10],
            });
            values.extend(last);
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

/// The opinions of two raters or more, and the verdicts of their cases.
fn several_raters(
    all: impl Iterator<Item = (usize, CaseRatings)>,
) -> (DistinctRatings, Vec<usize>) {
    let mut verdicts = Vec::new();
    let kept = all
        .filter(|(_, opinion)| opinion.by.len() > 1)
        .map(|(verdict, opinion)| {
            verdicts.push(verdict);
            opinion
        });
    (DistinctRatings::new(kept), verdicts)
}

impl DistinctRatings {
    /// The distinct opinions as ratings.
    fn ratings(&self) -> Defined<RatingMatrix> {
        RatingMatrix::new(
            self.distinct
                .iter()
                .map(|opinion| opinion.by.clone())
                .collect(),
        )
    }

    /// How many cases count in an accuracy for at least one rater.
    fn counted(
        &self,
        clusters: &Clusters,
        counts: fn(Ordering, Ordering) -> Option<f64>,
    ) -> SampleSize {
        let order = |value: f64| value.total_cmp(&0.0);
        self.count(clusters, |opinion| {
            let opinion = &self.distinct[opinion];
            let mut pairs = opinion.by.iter().zip(&opinion.others);
            pairs.any(|((_, own), others)| {
                others.is_some_and(|others| counts(order(*own), order(others)).is_some())
            })
        })
    }

    /// The cases whose opinion counts, told by its place among the distinct ones.
    fn count(&self, clusters: &Clusters, counts: impl Fn(usize) -> bool) -> SampleSize {
        SampleSize::of(clusters, |case| counts(self.of(case)))
    }
}

/// Each rater beside the others.
fn beside(opinions: &DistinctRatings, raters: usize) -> Vec<RaterVsConsensus> {
    let of = |rater: u32| {
        let (mut places, mut own, mut others) = (Vec::new(), Vec::new(), Vec::new());
        for (place, opinion) in opinions.distinct.iter().enumerate() {
            let mut all = opinion.by.iter().zip(&opinion.others);
            if let Some(((_, value), Some(rest))) = all.find(|((by, _), _)| *by == rater) {
                places.push(place);
                own.push(*value);
                others.push(*rest);
            }
        }
        let cells = ContingencyCells::new(&own, &others).ok()?;
        Some(RaterVsConsensus { places, cells })
    };
    (0..raters as u32).filter_map(of).collect()
}

/// The mean over raters of each statistic, by the number of their cases; raters for whom it is undefined
/// are left out, and if it is for all, the last one's reason is told.
fn over_raters(
    found: &[RaterVsConsensus],
    weights: &[f64],
    of: impl Fn(&ContingencyTable<'_>) -> Vec<Defined<f64>>,
) -> Vec<Defined<f64>> {
    let mut means: Vec<(f64, f64, Option<Undefined>)> = Vec::new();
    for beside in found {
        let own: Vec<f64> = beside.places.iter().map(|place| weights[*place]).collect();
        let cases: f64 = own.iter().sum();
        let values = of(&beside.cells.drawn(&own));
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
