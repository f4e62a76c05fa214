//! Two ratings of each case as a table of their distinct pairs.
//!
//! Scores have few distinct values, so that a hundred thousand cases fill a few hundred cells, and
//! whatever is asked of two raters is a function of the cells and their weights.

use super::ratings::RatingMatrix;
use crate::statistics::undefined::{Defined, Undefined, at_least};

/// The distinct pairs of values of two raters, and which of them each case has.
#[derive(Clone, Debug)]
pub struct ContingencyCells {
    /// The distinct values of the first rater, ascending.
    x: Vec<f64>,
    /// Those of the second.
    y: Vec<f64>,
    /// The distinct pairs, as places in `x` and `y`, ascending.
    pairs: Vec<[u32; 2]>,
    /// The pair of each case, as a place in `pairs`.
    of: Vec<u32>,
}

/// The cells with a weight each: how many cases they hold, or how many were drawn.
#[derive(Clone, Debug)]
pub struct ContingencyTable<'a> {
    cells: &'a ContingencyCells,
    weights: Vec<f64>,
}

/// Distinct values, ascending, and the place of each value among them.
pub(crate) fn levels(values: &[f64]) -> Defined<(Vec<f64>, Vec<u32>)> {
    if values.iter().any(|v| !v.is_finite()) {
        return Err(Undefined::NotFinite);
    }
    // Adding zero makes one zero of both.
    let mut distinct: Vec<f64> = values.iter().map(|v| v + 0.0).collect();
    distinct.sort_by(f64::total_cmp);
    distinct.dedup();
    let place = |v: &f64| distinct.partition_point(|d| d < v) as u32;
    let places = values.iter().map(place).collect();
    Ok((distinct, places))
}

impl ContingencyCells {
    /// The ratings of two raters, case by case.
    ///
    /// # Errors
    ///
    /// Without a case, and where a value is not finite.
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

    /// How many cases there are.
    pub fn len(&self) -> usize {
        self.of.len()
    }

    /// Never: without a case there are no cells.
    pub fn is_empty(&self) -> bool {
        self.of.is_empty()
    }

    /// The distinct pairs as ratings by two raters, to be weighed by [`ContingencyTable::weights`].
    pub fn ratings(&self) -> RatingMatrix {
        let unit = |[i, j]: &[u32; 2]| vec![(0, self.x[*i as usize]), (1, self.y[*j as usize])];
        RatingMatrix::of_finite(self.pairs.iter().map(unit).collect())
    }

    /// Every case once.
    pub fn table(&self) -> ContingencyTable<'_> {
        self.fill(|_| 1.0)
    }

    /// Every case as often as its weight says, in the order of the cases.
    pub fn drawn(&self, weights: &[f64]) -> ContingencyTable<'_> {
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
    /// The two values of each cell that is not empty, and its weight; ascending by the first value,
    /// then by the second.
    pub fn entries(&self) -> impl Iterator<Item = (f64, f64, f64)> + Clone + '_ {
        self.places()
            .map(|([i, j], w)| (self.cells.x[i], self.cells.y[j], w))
    }

    /// As [`entries`](Self::entries), with the places of the values among the distinct ones.
    pub(crate) fn places(&self) -> impl Iterator<Item = ([usize; 2], f64)> + Clone + '_ {
        let cells = self.cells.pairs.iter().zip(&self.weights);
        cells
            .filter(|(_, w)| **w > 0.0)
            .map(|(pair, w)| (pair.map(|p| p as usize), *w))
    }

    /// The weight of each distinct pair, ascending by the first value, then by the second.
    pub fn weights(&self) -> &[f64] {
        &self.weights
    }

    /// The weight of all cells: the number of cases.
    pub fn total(&self) -> f64 {
        self.weights.iter().sum()
    }

    /// The distinct values of the first rater with their weights, and those of the second.
    pub(crate) fn sides(&self) -> [Vec<(f64, f64)>; 2] {
        let [x, y] = self.margins();
        let with =
            |values: &[f64], weights: Vec<f64>| values.iter().copied().zip(weights).collect();
        [with(&self.cells.x, x), with(&self.cells.y, y)]
    }

    /// The weight of each distinct value of the first rater, and of the second.
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

    #[test]
    fn equal_pairs_are_one_cell() {
        let cells = ContingencyCells::new(&[2.0, 0.0, 2.0, -0.0], &[1.0, 5.0, 1.0, 5.0]).unwrap();
        let all: Vec<_> = cells.table().entries().collect();
        assert_eq!(all, [(0.0, 5.0, 2.0), (2.0, 1.0, 2.0)]);
        let drawn = cells.drawn(&[3.0, 0.0, 1.0, 0.0]);
        assert_eq!(drawn.entries().collect::<Vec<_>>(), [(2.0, 1.0, 4.0)]);
        assert!((drawn.total() - 4.0).abs() < 1e-12);
    }

    #[test]
    fn what_is_no_number_is_refused() {
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
