//! Contingency table of two raters.
//!
//! Scores have few distinct values, so a hundred thousand cases fill a few hundred cells. Statistics of two
//! raters are functions of the cells and their weights.

use super::levels::levels;
use super::ratings::RatingMatrix;
use crate::statistics::undefined::{Defined, at_least};

/// The distinct pairs of values of two raters, and the pair of each case.
#[derive(Clone, Debug)]
pub struct ContingencyCells {
    /// The distinct values of the first rater, ascending.
    x: Vec<f64>,
    /// The distinct values of the second rater, ascending.
    y: Vec<f64>,
    /// The distinct pairs as indices into `x` and `y`, ascending.
    pairs: Vec<[u32; 2]>,
    /// The index in `pairs` of each case.
    of: Vec<u32>,
}

/// The cells with their weights: the number of cases, or of resampled cases.
#[derive(Clone, Debug)]
pub struct ContingencyTable<'a> {
    cells: &'a ContingencyCells,
    weights: Vec<f64>,
}

impl ContingencyCells {
    /// Builds the cells from the ratings of two raters, case by case.
    ///
    /// # Errors
    ///
    /// There is no case, or a value is not finite.
    pub fn new(first: &[f64], second: &[f64]) -> Defined<Self> {
        at_least(1, first.len().min(second.len()), "cases")?;
        let (x, of_x) = levels(first)?;
        let (y, of_y) = levels(second)?;
        let all: Vec<[u32; 2]> = of_x.into_iter().zip(of_y).map(|(a, b)| [a, b]).collect();
        let mut pairs = all.clone();
        pairs.sort_unstable();
        pairs.dedup();
        let place = |pair: &[u32; 2]| pairs.partition_point(|p| p < pair) as u32;
        let of = all.iter().map(place).collect();
        Ok(Self { x, y, pairs, of })
    }

    /// Number of cases.
    pub fn len(&self) -> usize {
        self.of.len()
    }

    /// Always `false`: `new` requires a case.
    pub fn is_empty(&self) -> bool {
        self.of.is_empty()
    }

    /// The distinct pairs as ratings of two raters. Weight them with [`ContingencyTable::weights`].
    pub fn ratings(&self) -> RatingMatrix {
        let unit = |[i, j]: &[u32; 2]| vec![(0, self.x[*i as usize]), (1, self.y[*j as usize])];
        RatingMatrix::of_finite(self.pairs.iter().map(unit).collect())
    }

    /// The table in which each case counts once.
    pub fn table(&self) -> ContingencyTable<'_> {
        self.fill(|_| 1.0)
    }

    /// The table in which each case counts with its weight.
    pub fn weighted_table(&self, weights: &[f64]) -> ContingencyTable<'_> {
        self.fill(|case| weights.get(case).copied().unwrap_or(0.0))
    }

    fn fill(&self, weight: impl Fn(usize) -> f64) -> ContingencyTable<'_> {
        let mut weights = vec![0.0; self.pairs.len()];
        for (case, &cell) in self.of.iter().enumerate() {
            weights[cell as usize] += weight(case);
        }
        ContingencyTable {
            cells: self,
            weights,
        }
    }
}

impl ContingencyTable<'_> {
    /// The two values and the weight of each non-empty cell, ascending by first and second value.
    pub fn entries(&self) -> impl Iterator<Item = (f64, f64, f64)> + Clone + '_ {
        self.places()
            .map(|([i, j], w)| (self.cells.x[i], self.cells.y[j], w))
    }

    /// As [`entries`](Self::entries), with indices of the values.
    pub(crate) fn places(&self) -> impl Iterator<Item = ([usize; 2], f64)> + Clone + '_ {
        let cells = self.cells.pairs.iter().zip(&self.weights);
        cells
            .filter(|(_, w)| **w > 0.0)
            .map(|(pair, w)| (pair.map(|p| p as usize), *w))
    }

    /// The weight of each distinct pair, ascending by first and second value.
    pub fn weights(&self) -> &[f64] {
        &self.weights
    }

    /// The total weight: the number of cases.
    pub fn total(&self) -> f64 {
        self.weights.iter().sum()
    }

    /// The distinct values of each rater with their weights.
    pub(crate) fn sides(&self) -> [Vec<(f64, f64)>; 2] {
        let [x, y] = self.margins();
        let with =
            |values: &[f64], weights: Vec<f64>| values.iter().copied().zip(weights).collect();
        [with(&self.cells.x, x), with(&self.cells.y, y)]
    }

    /// The marginal weights of each rater.
    pub(crate) fn margins(&self) -> [Vec<f64>; 2] {
        let mut margins = [vec![0.0; self.cells.x.len()], vec![0.0; self.cells.y.len()]];
        for (pair, w) in self.places() {
            for (margin, place) in margins.iter_mut().zip(pair) {
                margin[place] += w;
            }
        }
        margins
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::statistics::undefined::Undefined;

    #[test]
    fn equal_pairs_are_one_cell() {
        let cells = ContingencyCells::new(&[2.0, 0.0, 2.0, -0.0], &[1.0, 5.0, 1.0, 5.0]).unwrap();
        let all: Vec<_> = cells.table().entries().collect();
        assert_eq!(all, [(0.0, 5.0, 2.0), (2.0, 1.0, 2.0)]);
        let drawn = cells.weighted_table(&[3.0, 0.0, 1.0, 0.0]);
        assert_eq!(drawn.entries().collect::<Vec<_>>(), [(2.0, 1.0, 4.0)]);
        assert!((drawn.total() - 4.0).abs() < 1e-12);
    }

    #[test]
    fn nan_is_rejected() {
        assert_eq!(
            ContingencyCells::new(&[f64::NAN], &[1.0]).err(),
            Some(Undefined::NotFinite)
        );
        assert!(matches!(
            ContingencyCells::new(&[], &[]),
            Err(Undefined::TooFew { found: 0, .. })
        ));
    }
}
