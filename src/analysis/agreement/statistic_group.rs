//! Statistics that are computed together, of the same cases.

use std::cmp::Ordering;

use super::statistic::Statistic;
use super::units::{PairUnit, ResponseUnit, TripleUnit, number};
use crate::analysis::verdicts::PairVerdict;
use crate::statistics::agreement::accuracy;
use crate::statistics::{
    Clusters, ContingencyCells, ContingencyTable, Defined, DistanceMetric, IccForm, RatedUnits,
    RatingMeanSquares, Weighting, alpha, bias, fleiss, kappa, kendall, mean, mean_absolute,
    mean_of, pearson, spearman,
};

/// What is computed of the cases, each as often as it was drawn: one value for each statistic.
type StatisticsFn = Box<dyn Fn(&[f64]) -> Vec<Defined<f64>> + Send + Sync>;

/// Statistics of the same cases.
pub struct StatisticGroup {
    /// Their names.
    pub statistics: Vec<Statistic>,
    /// What each is of: all cases with a verdict, or fewer.
    pub counts: Vec<SampleSize>,
    /// The cases with a verdict.
    pub n: usize,
    /// All that are labelled.
    pub labelled: usize,
    /// Which of them belong together.
    pub clusters: Clusters,
    /// The mean squares of the scores, from which intraclass correlations have exact intervals.
    pub squares: Option<RatingMeanSquares>,
    pub(super) compute: StatisticsFn,
}

/// What a statistic is of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SampleSize {
    /// Cases.
    pub n: usize,
    /// The images they are about.
    pub images: usize,
}

impl SampleSize {
    /// All cases.
    pub(super) fn all(clusters: &Clusters) -> Self {
        Self {
            n: clusters.len(),
            images: clusters.count(),
        }
    }

    /// Those cases that count.
    pub(super) fn of(clusters: &Clusters, counts: impl Fn(usize) -> bool) -> Self {
        Self {
            n: (0..clusters.len()).filter(|case| counts(*case)).count(),
            images: clusters.among(counts),
        }
    }
}

impl StatisticGroup {
    /// Every statistic of the cases as they are.
    pub fn values(&self) -> Vec<Defined<f64>> {
        (self.compute)(&vec![1.0; self.clusters.len()])
    }

    /// Orders of pairs.
    pub(super) fn orders(units: &[&PairUnit], verdicts: &[PairVerdict]) -> Self {
        let judged = units
            .iter()
            .filter_map(|unit| Some((unit.verdict, unit.judge?, unit.rated.order(None)?)));
        let judged: Vec<(usize, Ordering, Ordering)> = judged.collect();
        let clusters = clusters(judged.iter().map(|(v, ..)| *v), verdicts);
        let judge: Vec<f64> = judged.iter().map(|pair| number(pair.1)).collect();
        let label: Vec<f64> = judged.iter().map(|pair| number(pair.2)).collect();
        let table = TwoRaters::new(&judge, &label);
        let present = |counts: fn(Ordering, Ordering) -> Option<f64>| {
            SampleSize::of(&clusters, |case| {
                let (_, judge, label) = judged[case];
                counts(judge, label).is_some()
            })
        };
        let count = |statistic: &Statistic| match statistic {
            Statistic::AccuracyWithoutTies => present(accuracy::without_ties),
            Statistic::AccuracyPreferred => present(accuracy::preferred),
            _ => SampleSize::all(&clusters),
        };
        let counts = Statistic::ORDERS.iter().map(count).collect();
        Self {
            statistics: Statistic::ORDERS.to_vec(),
            counts,
            n: judged.len(),
            labelled: units.len(),
            clusters,
            squares: None,
            compute: Box::new(move |weights| table.orders(weights)),
        }
    }

    /// Triples of responses.
    pub(super) fn triples(units: &[&TripleUnit], verdicts: &[PairVerdict]) -> Self {
        let judged = units
            .iter()
            .filter_map(|u| Some((u.verdict, u.judge?, u.label)));
        let judged: Vec<_> = judged.collect();
        let clusters = clusters(judged.iter().map(|(v, ..)| *v), verdicts);
        let hit = |(_, judge, label): &(_, _, _)| Some(accuracy::triple(*judge, *label));
        let hits: Vec<Option<f64>> = judged.iter().map(hit).collect();
        Self {
            statistics: vec![Statistic::AccuracyTriple],
            counts: vec![SampleSize::all(&clusters)],
            n: judged.len(),
            labelled: units.len(),
            clusters,
            squares: None,
            compute: Box::new(move |weights| vec![mean(&hits, weights)]),
        }
    }

    /// Scores of responses.
    pub(super) fn scores(units: &[&ResponseUnit], verdicts: &[PairVerdict]) -> Self {
        let judged = units
            .iter()
            .filter_map(|u| Some((u.verdict, u.judge?, u.label(None)?)));
        let judged: Vec<(usize, f64, f64)> = judged.collect();
        let clusters = clusters(judged.iter().map(|(v, ..)| *v), verdicts);
        let side = |of: fn(&(usize, f64, f64)) -> f64| judged.iter().map(of).collect::<Vec<f64>>();
        let table = TwoRaters::new(&side(|u| u.1), &side(|u| u.2));
        Self {
            statistics: Statistic::SCORES.to_vec(),
            counts: vec![SampleSize::all(&clusters); Statistic::SCORES.len()],
            n: judged.len(),
            labelled: units.len(),
            clusters,
            squares: table.squares(),
            compute: Box::new(move |weights| table.scores(weights)),
        }
    }
}

/// The clusters of units by their verdicts.
pub(super) fn clusters(units: impl Iterator<Item = usize>, verdicts: &[PairVerdict]) -> Clusters {
    let cluster = |i: usize| verdicts.get(i).map_or("", |v| v.cluster.as_str());
    Clusters::new(units.map(cluster))
}

/// Two columns of ratings, in all the forms that statistics want.
struct TwoRaters(Defined<DistinctPairs>);

/// The distinct pairs of ratings, and these as units and as rows.
struct DistinctPairs {
    cells: ContingencyCells,
    units: RatedUnits,
    rows: Vec<Option<Vec<f64>>>,
}

impl TwoRaters {
    fn new(first: &[f64], second: &[f64]) -> Self {
        Self(ContingencyCells::new(first, second).map(|cells| {
            let ratings = cells.ratings();
            DistinctPairs {
                units: ratings.paired(),
                rows: ratings.complete(),
                cells,
            }
        }))
    }

    /// All statistics of orders, in the order of [`Statistic::ORDERS`].
    fn orders(&self, weights: &[f64]) -> Vec<Defined<f64>> {
        self.of(Statistic::ORDERS.len(), weights, |table, units, _| {
            let mut values = two_orders(table);
            values.extend(several_orders(units, table.weights()));
            values
        })
    }

    /// All statistics of scores, in the order of [`Statistic::SCORES`].
    fn scores(&self, weights: &[f64]) -> Vec<Defined<f64>> {
        self.of(Statistic::SCORES.len(), weights, |table, units, rows| {
            let mut values = two_columns(table);
            values.extend(several(units, rows, table.weights()));
            values.extend([mean_absolute(table), bias(table)]);
            values
        })
    }

    fn of(
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
            Ok(forms) => statistics(&forms.cells.drawn(weights), &forms.units, &forms.rows),
            Err(reason) => vec![Err(*reason); n],
        }
    }

    /// The mean squares from which intraclass correlations follow.
    fn squares(&self) -> Option<RatingMeanSquares> {
        let forms = self.0.as_ref().ok()?;
        let weights = forms.cells.table();
        Some(RatingMeanSquares::of(
            &forms.units,
            &forms.rows,
            weights.weights(),
        ))
    }
}

/// The statistics of exactly two raters' orders, in the order of [`Statistic::ORDERS`].
pub(super) fn two_orders(table: &ContingencyTable<'_>) -> Vec<Defined<f64>> {
    let order = |value: f64| value.total_cmp(&0.0);
    let share = |counts: fn(Ordering, Ordering) -> Option<f64>| {
        mean_of(table, |a, b| counts(order(a), order(b)))
    };
    vec![
        share(|judge, label| Some(accuracy::with_ties(judge, label))),
        share(accuracy::without_ties),
        share(accuracy::preferred),
        kappa(table, Weighting::Plain),
    ]
}

/// The statistics of any number of raters' orders, in the order of [`Statistic::ORDERS`].
pub(super) fn several_orders(units: &RatedUnits, weights: &[f64]) -> [Defined<f64>; 3] {
    [
        fleiss(units, weights),
        alpha(units, DistanceMetric::Nominal, weights),
        alpha(units, DistanceMetric::Ordinal, weights),
    ]
}

/// The statistics of exactly two raters, in the order of [`Statistic::SCORES`].
pub(super) fn two_columns(table: &ContingencyTable<'_>) -> Vec<Defined<f64>> {
    vec![
        pearson(table),
        spearman(table),
        kendall(table),
        kappa(table, Weighting::Plain),
        kappa(table, Weighting::Linear),
        kappa(table, Weighting::Quadratic),
    ]
}

/// The statistics of any number of raters, in the order of [`Statistic::SCORES`].
pub(super) fn several(
    units: &RatedUnits,
    rows: &[Option<Vec<f64>>],
    weights: &[f64],
) -> Vec<Defined<f64>> {
    let mut values = vec![fleiss(units, weights)];
    let metrics = [
        DistanceMetric::Nominal,
        DistanceMetric::Ordinal,
        DistanceMetric::Interval,
    ];
    values.extend(metrics.map(|metric| alpha(units, metric, weights)));
    let squares = RatingMeanSquares::of(units, rows, weights);
    values.extend(IccForm::ALL.map(|form| squares.of_form(form)?.value(form)));
    values
}
