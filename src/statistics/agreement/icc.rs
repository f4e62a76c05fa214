//! Intraclass correlations: the proportion of score variance between cases.

use serde::Serialize;

use super::ratings::{RatedUnits, RatingMatrix};
use crate::statistics::inference::distribution::f_quantile;
use crate::statistics::undefined::{Defined, Undefined, require_at_least};

/// A form of the intraclass correlation (Shrout and Fleiss 1979).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub enum IccForm {
    /// ICC(1,1): each case has different raters.
    #[serde(rename = "icc_1_1")]
    OneSingle,
    /// ICC(2,1): raters are a random sample; absolute agreement.
    #[serde(rename = "icc_2_1")]
    TwoSingle,
    /// ICC(3,1): fixed raters; consistency.
    #[serde(rename = "icc_3_1")]
    ThreeSingle,
    /// ICC(1,k): like (1,1), for the mean of all raters.
    #[serde(rename = "icc_1_k")]
    OneMean,
    /// ICC(2,k): like (2,1), for the mean of all raters.
    #[serde(rename = "icc_2_k")]
    TwoMean,
    /// ICC(3,k): like (3,1), for the mean of all raters.
    #[serde(rename = "icc_3_k")]
    ThreeMean,
}

impl IccForm {
    /// All six forms.
    pub const ALL: [Self; 6] = [
        Self::OneSingle,
        Self::TwoSingle,
        Self::ThreeSingle,
        Self::OneMean,
        Self::TwoMean,
        Self::ThreeMean,
    ];

    /// Returns true if the form ignores the identity of raters.
    pub fn is_one_way(self) -> bool {
        matches!(self, Self::OneSingle | Self::OneMean)
    }
}

/// Mean squares of a complete table of cases and raters. All six forms derive from them.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Icc {
    /// Number of cases.
    n: f64,
    /// Number of raters.
    k: f64,
    /// Mean squares: between cases, between raters, residual.
    between: f64,
    raters: f64,
    residual: f64,
}

/// A sum of squares below this proportion of the total is rounding error.
const ROUNDING: f64 = 1e-20;

/// Computes the mean squares of the complete rows, with the weight of each case.
///
/// # Errors
///
/// There are fewer than two raters or two cases, or all ratings are equal.
pub fn icc(rows: &[Option<Vec<f64>>], weights: &[f64]) -> Defined<Icc> {
    let present = || {
        let rows = rows.iter().zip(weights).filter(|(_, w)| **w > 0.0);
        rows.filter_map(|(row, w)| Some((row.as_deref()?, *w)))
    };
    let raters = present().map(|(row, _)| row.len()).max().unwrap_or(0);
    let n: f64 = present().map(|(_, w)| w).sum();
    require_at_least(2, n as usize, ["case rated by all raters", "cases rated by all raters"])?;
    require_at_least(2, raters, ["rater", "raters"])?;
    let k = raters as f64;
    let mut columns = vec![0.0; raters];
    for (row, w) in present() {
        for (column, value) in columns.iter_mut().zip(row) {
            *column += w * value / n;
        }
    }
    let grand = columns.iter().sum::<f64>() / k;
    let (mut between, mut rest, mut all) = (0.0, 0.0, 0.0);
    for (row, w) in present() {
        let mean = row.iter().sum::<f64>() / k;
        between += w * k * (mean - grand).powi(2);
        for (value, column) in row.iter().zip(&columns) {
            rest += w * (value - mean - column + grand).powi(2);
            all += w * (value - grand).powi(2);
        }
    }
    let by_rater: f64 = columns.iter().map(|c| n * (c - grand).powi(2)).sum();
    let scale = grand * grand * n * k + all;
    if all <= ROUNDING * scale {
        return Err(Undefined::NoVariation);
    }
    let clean = |sum: f64| if sum <= ROUNDING * scale { 0.0 } else { sum };
    Ok(Icc {
        n,
        k,
        between: clean(between) / (n - 1.0),
        raters: clean(by_rater) / (k - 1.0),
        residual: clean(rest) / ((n - 1.0) * (k - 1.0)),
    })
}

/// Computes the mean squares for the two forms that ignore the identity of raters
/// ([`IccForm::is_one_way`]). These need the same number of ratings per unit, so only units with
/// the most frequent number of ratings (at least two) are included, as in
/// [`fleiss`](super::fleiss()).
///
/// # Errors
///
/// There are fewer than two such units, or all ratings are equal.
pub fn icc_one_way(units: &RatedUnits, weights: &[f64]) -> Defined<Icc> {
    let m = units.ratings_per_unit;
    require_at_least(2, m, ["rating of each case", "ratings of each case"])?;
    let counted = || {
        let all = units.level_indices.iter().zip(weights);
        all.filter(|(unit, w)| unit.len() == m && **w > 0.0)
            .map(|(unit, w)| (unit.iter().map(|level| units.levels[*level as usize]), *w))
    };
    let n: f64 = counted().map(|(_, w)| w).sum();
    require_at_least(2, n as usize, ["case rated equally often", "cases rated equally often"])?;
    let k = m as f64;
    let grand = counted().map(|(unit, w)| w * unit.sum::<f64>()).sum::<f64>() / (n * k);
    let (mut between, mut within) = (0.0, 0.0);
    for (unit, w) in counted() {
        let mean = unit.clone().sum::<f64>() / k;
        between += w * k * (mean - grand).powi(2);
        within += w * unit.map(|value| (value - mean).powi(2)).sum::<f64>();
    }
    let scale = grand * grand * n * k + between + within;
    if between + within <= ROUNDING * scale {
        return Err(Undefined::NoVariation);
    }
    let clean = |sum: f64| if sum <= ROUNDING * scale { 0.0 } else { sum };
    // Without rater identity, rater variance is part of the residual.
    let within = clean(within) / (n * (k - 1.0));
    Ok(Icc { n, k, between: clean(between) / (n - 1.0), raters: within, residual: within })
}

/// Mean squares for all six forms, from ratings with missing values.
#[derive(Clone, Copy, Debug)]
pub struct RatingMeanSquares {
    one_way: Defined<Icc>,
    two_way: Defined<Icc>,
}

impl RatingMeanSquares {
    /// Computes the mean squares from units and from rows.
    pub fn new(units: &RatedUnits, rows: &[Option<Vec<f64>>], weights: &[f64]) -> Self {
        let two_way = icc(rows, weights);
        let has_gaps = rows.iter().any(Option::is_none);
        Self { one_way: if has_gaps { icc_one_way(units, weights) } else { two_way }, two_way }
    }

    /// Returns the mean squares of a form.
    ///
    /// # Errors
    ///
    /// Same as [`icc`] and [`icc_one_way`].
    pub fn for_form(&self, form: IccForm) -> Defined<Icc> {
        if form.is_one_way() { self.one_way } else { self.two_way }
    }
}

impl Icc {
    /// Computes the mean squares of the cases that all raters rated.
    ///
    /// # Errors
    ///
    /// Same as [`icc`].
    pub fn from_ratings(ratings: &RatingMatrix) -> Defined<Self> {
        icc(&ratings.complete_rows(), &vec![1.0; ratings.len()])
    }

    /// Computes the mean square within cases: raters and residual.
    fn within(&self) -> f64 {
        let (n, k) = (self.n, self.k);
        (self.raters * (k - 1.0) + self.residual * (n - 1.0) * (k - 1.0)) / (n * (k - 1.0))
    }

    /// Computes the value of a form, at most 1.
    ///
    /// # Errors
    ///
    /// The variance between cases is zero for this form.
    pub fn value(&self, form: IccForm) -> Defined<f64> {
        let Self { n, k, between, raters, residual } = *self;
        let within = self.within();
        let rater_variance = (raters - residual) / n;
        let (numerator, denominator) = match form {
            IccForm::OneSingle => (between - within, between + (k - 1.0) * within),
            IccForm::TwoSingle => {
                (between - residual, between + (k - 1.0) * residual + k * rater_variance)
            }
            IccForm::ThreeSingle => (between - residual, between + (k - 1.0) * residual),
            IccForm::OneMean => (between - within, between),
            IccForm::TwoMean => (between - residual, between + rater_variance),
            IccForm::ThreeMean => (between - residual, between),
        };
        if denominator.abs() <= 1e-12 * (between + raters + residual) {
            return Err(Undefined::NoVarianceBetween);
        }
        Ok(numerator / denominator)
    }

    /// Computes the exact 95 % confidence interval of a form, from quantiles of the F distribution:
    /// Shrout and Fleiss (1979) for ICC(1,·) and ICC(3,·), McGraw and Wong (1996, table 7) for
    /// ICC(2,·).
    ///
    /// # Errors
    ///
    /// Same as [`value`](Self::value).
    pub fn interval(&self, form: IccForm) -> Defined<[f64; 2]> {
        let value = self.value(form)?;
        let (n, k) = (self.n, self.k);
        let within = self.within();
        match form {
            IccForm::OneSingle | IccForm::OneMean if within > 0.0 => {
                let ratio = self.between / within;
                self.ratio_interval(form, ratio, [n - 1.0, n * (k - 1.0)])
            }
            IccForm::ThreeSingle | IccForm::ThreeMean if self.residual > 0.0 => {
                let ratio = self.between / self.residual;
                self.ratio_interval(form, ratio, [n - 1.0, (n - 1.0) * (k - 1.0)])
            }
            IccForm::TwoSingle | IccForm::TwoMean if within > 0.0 => self.absolute_interval(form),
            // Perfect agreement has no uncertainty.
            _ => Ok([value, value]),
        }
    }

    /// Computes the confidence interval of a form that depends on one F ratio.
    fn ratio_interval(&self, form: IccForm, ratio: f64, [a, b]: [f64; 2]) -> Defined<[f64; 2]> {
        let low = ratio / f_quantile(0.975, a, b)?;
        let high = ratio * f_quantile(0.975, b, a)?;
        let k = self.k;
        Ok([low, high].map(|f| match form {
            IccForm::OneSingle | IccForm::ThreeSingle => (f - 1.0) / (f + k - 1.0),
            // The ratio is positive: without variance between cases these forms are undefined.
            _ => 1.0 - 1.0 / f,
        }))
    }

    /// Computes the confidence interval of absolute agreement, with Satterthwaite's degrees of
    /// freedom.
    fn absolute_interval(&self, form: IccForm) -> Defined<[f64; 2]> {
        let Self { n, k, between, raters, residual } = *self;
        let value = self.value(IccForm::TwoSingle)?;
        // The published formula divides by the residual mean square, which may be zero. Here, both
        // terms are multiplied by it instead.
        let by_raters = k * value * raters;
        let by_rest = (n * (1.0 + (k - 1.0) * value) - k * value) * residual;
        let numerator = (n - 1.0) * (k - 1.0) * (by_raters + by_rest).powi(2);
        let denominator = (n - 1.0) * by_raters.powi(2) + by_rest.powi(2);
        if denominator <= 0.0 {
            return Err(Undefined::NoVarianceBetween);
        }
        let freedom = numerator / denominator;
        // Lower quantiles are the reciprocals of the published upper quantiles, which overflow with
        // few degrees of freedom.
        let f_low = f_quantile(0.025, freedom, n - 1.0)?;
        let f_high = f_quantile(0.025, n - 1.0, freedom)?;
        let spread = k * raters + (k * n - k - n) * residual;
        let low = n * (f_low * between - residual) / (spread + f_low * n * between);
        let high = n * (between - f_high * residual) / (f_high * spread + n * between);
        if form != IccForm::TwoMean {
            return Ok([low, high]);
        }
        let mean = |single: f64| {
            let denominator = 1.0 + single * (k - 1.0);
            // Nearly equal ratings: the bound of the mean overflows.
            let overflows = denominator.abs() <= 1e-12 * (1.0 + single.abs() * (k - 1.0));
            (!overflows).then(|| single * k / denominator)
        };
        match (mean(low), mean(high)) {
            (Some(low), Some(high)) => Ok([low, high]),
            _ => Err(Undefined::NoVarianceBetween),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Ratings of Shrout and Fleiss (1979, table 2) with changing raters: six cases, four of nine
    /// raters each. They print ICC(1,1) = 0.17 and ICC(1,k) = 0.44.
    #[test]
    fn one_way_forms_ignore_rater_identity() {
        let table = [
            [9., 2., 5., 8.],
            [6., 1., 3., 2.],
            [8., 4., 6., 8.],
            [7., 1., 2., 6.],
            [10., 5., 6., 9.],
            [6., 2., 4., 7.],
        ];
        let rated = |(i, row): (u32, &[f64; 4])| {
            let raters = (0..4).map(|j| (i + 2 * j) % 9);
            raters.zip(row.iter().copied()).collect::<Vec<_>>()
        };
        let mut units: Vec<_> = (0..).zip(&table).map(rated).collect();
        // Too few ratings to count.
        units.push(vec![(0, 1.0), (1, 1.0)]);
        let ratings = RatingMatrix::new(units).unwrap();
        let squares =
            RatingMeanSquares::new(&ratings.to_rated_units(), &ratings.complete_rows(), &[1.0; 7]);
        let value = |form| squares.for_form(form).and_then(|icc| icc.value(form));
        assert!((value(IccForm::OneSingle).unwrap() - 0.1657).abs() < 1e-4);
        assert!((value(IccForm::OneMean).unwrap() - 0.4428).abs() < 1e-4);
        assert!(value(IccForm::TwoSingle).is_err());
        let matrix = RatingMatrix::from_rows(&table.map(|row| row.map(Some))).unwrap();
        let complete = Icc::from_ratings(&matrix).unwrap();
        let one_way = squares.for_form(IccForm::OneSingle).unwrap();
        assert!((one_way.within() - complete.within()).abs() < 1e-12);
        let intervals = [one_way, complete].map(|icc| icc.interval(IccForm::OneSingle).unwrap());
        for i in 0..2 {
            assert!((intervals[0][i] - intervals[1][i]).abs() < 1e-9, "{intervals:?}");
        }
    }
}
