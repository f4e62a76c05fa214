//! Agreement between the raters so far, with intervals.

use super::rated_items::RatedTarget;
use crate::statistics::{
    Bootstrap, Clusters, ContingencyCells, Defined, DistanceMetric, Estimate, IccForm,
    RatingMatrix, RatingMeanSquares, Undefined, Weighting, alpha, kappa,
};

/// Resamples of an interval. It is computed anew after every entry.
const BOOTSTRAP: Bootstrap = Bootstrap { resamples: 500, seed: 1 };

/// Agreement on one target.
#[derive(Clone, Debug)]
pub(crate) struct RaterAgreement {
    /// Name of the target.
    pub(crate) name: String,
    /// Number of items with at least two raters.
    pub(crate) items: usize,
    /// Krippendorff's alpha: ordinal for scores, nominal for preferences.
    pub(crate) alpha: Estimate,
    /// Mean over pairs of raters of Cohen's kappa: quadratic weights for scores, none for preferences.
    pub(crate) kappa: Estimate,
    /// ICC of single ratings; `None` for preferences.
    pub(crate) icc: Option<Estimate>,
}

impl RaterAgreement {
    /// Computes the agreement on a target. Intervals resample cases.
    pub(crate) fn new(target: &RatedTarget, icc_form: IccForm) -> Self {
        let rated = target.items.iter().filter(|item| item.ratings.len() > 1);
        let (cases, units): (Vec<&str>, Vec<_>) =
            rated.map(|item| (item.case.as_str(), item.ratings.clone())).unzip();
        let (items, clusters) = (units.len(), Clusters::new(cases));
        let (metric, weighting) = if target.is_preference {
            (DistanceMetric::Nominal, Weighting::Unweighted)
        } else {
            (DistanceMetric::Ordinal, Weighting::Quadratic)
        };
        let pairs = RaterPairs::new(&units);
        let name = target.name.clone();
        let matrix = match RatingMatrix::new(units) {
            Ok(matrix) => matrix,
            Err(reason) => {
                let undefined = Estimate::undefined(reason, items, clusters.count());
                let (alpha, kappa) = (undefined.clone(), undefined);
                return Self { name, items, alpha, kappa, icc: None };
            }
        };
        let units = matrix.to_rated_units();
        Self {
            name,
            items,
            alpha: BOOTSTRAP.estimate(&clusters, items, |weights| alpha(&units, metric, weights)),
            kappa: BOOTSTRAP
                .estimate(&clusters, items, |weights| pairs.mean_kappa(weighting, weights)),
            icc: (!target.is_preference).then(|| icc_estimate(&matrix, &clusters, icc_form)),
        }
    }
}

/// Returns the ICC with its exact interval.
fn icc_estimate(matrix: &RatingMatrix, clusters: &Clusters, form: IccForm) -> Estimate {
    let (units, rows) = (matrix.to_rated_units(), matrix.complete_rows());
    let complete = rows.iter().filter(|row| row.is_some()).count();
    let weights = vec![1.0; rows.len()];
    let squares = RatingMeanSquares::new(&units, &rows, &weights).for_form(form);
    Estimate {
        value: squares.and_then(|icc| icc.value(form)),
        interval: squares.and_then(|icc| icc.interval(form)),
        n: if form.is_one_way() { rows.len() } else { complete },
        clusters: clusters.count(),
    }
}

/// The items that two raters rated, for every two raters.
struct RaterPairs(Vec<RaterPair>);

struct RaterPair {
    /// Indices of the items.
    items: Vec<usize>,
    cells: ContingencyCells,
}

impl RaterPairs {
    fn new(units: &[Vec<(u32, f64)>]) -> Self {
        let raters = units.iter().flatten().map(|(rater, _)| rater + 1).max().unwrap_or_default();
        let rating = |unit: &[(u32, f64)], rater| {
            unit.iter().find(|(other, _)| *other == rater).map(|(_, value)| *value)
        };
        let pair = |first, second| {
            let both = units
                .iter()
                .enumerate()
                .filter_map(|(i, unit)| Some((i, (rating(unit, first)?, rating(unit, second)?))));
            let (items, values): (Vec<usize>, Vec<(f64, f64)>) = both.unzip();
            let (a, b): (Vec<f64>, Vec<f64>) = values.into_iter().unzip();
            let cells = ContingencyCells::new(&a, &b).ok().filter(|cells| !cells.is_empty())?;
            Some(RaterPair { items, cells })
        };
        let pairs = (0..raters).flat_map(|first| (first + 1..raters).map(move |b| (first, b)));
        Self(pairs.filter_map(|(first, second)| pair(first, second)).collect())
    }

    /// Returns the mean of the defined kappas.
    fn mean_kappa(&self, weighting: Weighting, weights: &[f64]) -> Defined<f64> {
        let of_pair = |pair: &RaterPair| {
            let weights: Vec<f64> = pair.items.iter().map(|item| weights[*item]).collect();
            kappa(&pair.cells.weighted_table(&weights), weighting)
        };
        let kappas: Vec<Defined<f64>> = self.0.iter().map(of_pair).collect();
        let defined: Vec<f64> = kappas.iter().filter_map(|kappa| kappa.ok()).collect();
        if defined.is_empty() {
            let reason = kappas.first().copied().and_then(Result::err);
            return Err(reason.unwrap_or(Undefined::TooFew {
                items: ["case rated twice", "cases rated twice"],
                found: 0,
                needed: 1,
            }));
        }
        Ok(defined.iter().sum::<f64>() / defined.len() as f64)
    }
}

#[cfg(test)]
mod tests {
    use super::super::rated_items::RatedItem;
    use super::*;
    use crate::annotation::study::Part;

    const TWO: IccForm = IccForm::TwoSingle;

    fn target(is_preference: bool, ratings: &[&[f64]]) -> RatedTarget {
        let item = |(i, values): (usize, &&[f64])| RatedItem {
            case: i.to_string(),
            models: vec!["m".to_owned()],
            ratings: (0..).zip(values.iter().copied()).collect(),
        };
        let items = ratings.iter().enumerate().map(item).collect();
        let (key, name) = ("t".to_owned(), "t".to_owned());
        RatedTarget { key, name, is_preference, part: Part::Responses, items }
    }

    #[test]
    fn equal_ratings_agree_and_opposite_ones_do_not() {
        let equal =
            RaterAgreement::new(&target(false, &[&[1.0, 1.0], &[5.0, 5.0], &[3.0, 3.0]]), TWO);
        let icc = equal.icc.unwrap();
        for estimate in [&equal.alpha, &equal.kappa, &icc] {
            assert!((estimate.value.unwrap() - 1.0).abs() < 1e-9, "{estimate:?}");
        }
        assert_eq!(equal.items, 3);
        let opposite =
            RaterAgreement::new(&target(true, &[&[1.0, -1.0], &[-1.0, 1.0], &[1.0, 1.0]]), TWO);
        assert!(opposite.alpha.value.unwrap() < 0.0 && opposite.icc.is_none());
        // (observed 1/3 − expected) / (1 − expected), with margins 2/3 and 1/3 for both raters.
        let expected = 4.0 / 9.0 + 1.0 / 9.0;
        let kappa = (1.0 / 3.0 - expected) / (1.0 - expected);
        assert!((opposite.kappa.value.unwrap() - kappa).abs() < 1e-9);
    }

    #[test]
    fn single_ratings_have_no_agreement() {
        let single = RaterAgreement::new(&target(false, &[&[1.0], &[2.0]]), TWO);
        assert!(single.items == 0 && single.alpha.value.is_err() && single.kappa.value.is_err());
        assert!(single.icc.unwrap().value.is_err());
    }

    #[test]
    fn raters_of_different_cases_have_an_icc() {
        let mut rated = target(false, &[&[1.0, 1.0], &[5.0, 5.0], &[3.0, 3.0]]);
        // Three raters, of whom two rated each case.
        rated.items[1].ratings[0].0 = 2;
        let icc = |form| RaterAgreement::new(&rated, form).icc.unwrap();
        assert!((icc(IccForm::OneSingle).value.unwrap() - 1.0).abs() < 1e-9);
        assert!(icc(TWO).value.is_err());
    }
}
