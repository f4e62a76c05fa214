//! Contingency table of two raters.
//!
//! Scores have few distinct values, so a hundred thousand cases fill a few hundred cells.
//! Statistics of two raters are functions of the cells and their weights.

use super::levels::distinct_levels;
use super::ratings::RatingMatrix;
use crate::statistics::undefined::{Defined, require_at_least};

/// The distinct pairs of values of two raters, and the pair of each case.
#[derive(Clone, Debug)]
pub struct ContingencyCells {
    /// The distinct values of the first rater, ascending.
    x: Vec<f64>,
    /// The distinct values of the second rater, ascending.
    y: Vec<f64>,
    /// The distinct pairs as indices into `x` and `y`, ascending.
    pairs: Vec<[u32; 2]>,
    /// For each case, the index of its pair in `pairs`.
    cell_indices: Vec<u32>,
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
        require_at_least(1, first.len().min(second.len()), ["case", "cases"])?;
        let (x, x_indices) = distinct_levels(first)?;
        let (y, y_indices) = distinct_levels(second)?;
        let all: Vec<[u32; 2]> =
            x_indices.into_iter().zip(y_indices).map(|(a, b)| [a, b]).collect();
        let mut pairs = all.clone();
        pairs.sort_unstable();
        pairs.dedup();
        let index = |pair: &[u32; 2]| pairs.partition_point(|p| p < pair) as u32;
        let cell_indices = all.iter().map(index).collect();
        Ok(Self { x, y, pairs, cell_indices })
    }

    /// Returns the number of cases.
    pub fn len(&self) -> usize {
        self.cell_indices.len()
    }

    /// Returns true if there is no case, which [`new`](Self::new) rules out.
    pub fn is_empty(&self) -> bool {
        self.cell_indices.is_empty()
    }

    /// Returns the distinct pairs as ratings of two raters. Weight them with
    /// [`ContingencyTable::weights`].
    pub fn ratings(&self) -> RatingMatrix {
        let unit = |[i, j]: &[u32; 2]| vec![(0, self.x[*i as usize]), (1, self.y[*j as usize])];
        RatingMatrix::new_unchecked(self.pairs.iter().map(unit).collect())
    }

    /// Builds the table in which each case counts once.
    pub fn table(&self) -> ContingencyTable<'_> {
        self.build_table(|_| 1.0)
    }

    /// Builds the table in which each case counts with its weight.
    pub fn weighted_table(&self, weights: &[f64]) -> ContingencyTable<'_> {
        self.build_table(|case| weights.get(case).copied().unwrap_or(0.0))
    }

    fn build_table(&self, weight: impl Fn(usize) -> f64) -> ContingencyTable<'_> {
        let mut weights = vec![0.0; self.pairs.len()];
        for (case, &cell) in self.cell_indices.iter().enumerate() {
            weights[cell as usize] += weight(case);
        }
        ContingencyTable { cells: self, weights }
    }
}

impl ContingencyTable<'_> {
    /// Returns the two values and the weight of each non-empty cell, ascending by first and second
    /// value.
    pub fn entries(&self) -> impl Iterator<Item = (f64, f64, f64)> + Clone + '_ {
        self.entries_by_index().map(|([i, j], w)| (self.cells.x[i], self.cells.y[j], w))
    }

    /// Returns the same as [`entries`](Self::entries), with the indices of the values.
    pub(crate) fn entries_by_index(&self) -> impl Iterator<Item = ([usize; 2], f64)> + Clone + '_ {
        let cells = self.cells.pairs.iter().zip(&self.weights);
        cells.filter(|(_, w)| **w > 0.0).map(|(pair, w)| (pair.map(|p| p as usize), *w))
    }

    /// Returns the weight of each distinct pair, ascending by first and second value.
    pub fn weights(&self) -> &[f64] {
        &self.weights
    }

    /// Returns the total weight: the number of cases.
    pub fn total(&self) -> f64 {
        self.weights.iter().sum()
    }

    /// Returns the distinct values of each rater with their weights.
    pub(crate) fn marginal_values(&self) -> [Vec<(f64, f64)>; 2] {
        let [x, y] = self.marginal_weights();
        let with_weights =
            |values: &[f64], weights: Vec<f64>| values.iter().copied().zip(weights).collect();
        [with_weights(&self.cells.x, x), with_weights(&self.cells.y, y)]
    }

    /// Computes the marginal weights of each rater.
    pub(crate) fn marginal_weights(&self) -> [Vec<f64>; 2] {
        let mut margins = [vec![0.0; self.cells.x.len()], vec![0.0; self.cells.y.len()]];
        for (pair, w) in self.entries_by_index() {
            for (margin, index) in margins.iter_mut().zip(pair) {
                margin[index] += w;
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
        let resampled = cells.weighted_table(&[3.0, 0.0, 1.0, 0.0]);
        assert_eq!(resampled.entries().collect::<Vec<_>>(), [(2.0, 1.0, 4.0)]);
        assert!((resampled.total() - 4.0).abs() < 1e-12);
    }

    #[test]
    fn nan_is_rejected() {
        assert_eq!(ContingencyCells::new(&[f64::NAN], &[1.0]).err(), Some(Undefined::NotFinite));
        assert!(matches!(ContingencyCells::new(&[], &[]), Err(Undefined::TooFew { found: 0, .. })));
    }
}
