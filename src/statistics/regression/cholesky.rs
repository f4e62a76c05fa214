//! Symmetric linear systems, for Newton's method with many parameters.

/// The lower triangle of a symmetric matrix.
#[derive(Clone, Debug)]
pub(super) struct SymmetricMatrix {
    size: usize,
    /// Cells of the rows up to the diagonal.
    cells: Vec<f64>,
}

impl SymmetricMatrix {
    /// Creates a matrix of zeros.
    pub(super) fn new(size: usize) -> Self {
        Self { size, cells: vec![0.0; size * (size + 1) / 2] }
    }

    /// Returns a cell; `row` is at least `column`.
    pub(super) fn cell(&mut self, row: usize, column: usize) -> &mut f64 {
        &mut self.cells[row * (row + 1) / 2 + column]
    }

    /// Returns a row up to the diagonal.
    fn row(&self, row: usize) -> &[f64] {
        let start = row * (row + 1) / 2;
        &self.cells[start..=start + row]
    }

    /// Returns all rows of the whole matrix.
    pub(super) fn to_rows(&self) -> Vec<Vec<f64>> {
        let cell = |i: usize, j: usize| self.row(i.max(j))[i.min(j)];
        (0..self.size).map(|i| (0..self.size).map(|j| cell(i, j)).collect()).collect()
    }

    /// Solves the system with these values by Cholesky's method; `None` if the matrix is not
    /// positive definite.
    pub(super) fn solve(mut self, mut values: Vec<f64>) -> Option<Vec<f64>> {
        for i in 0..self.size {
            let start = i * (i + 1) / 2;
            let (above, below) = self.cells.split_at_mut(start);
            let row = &mut below[..=i];
            for j in 0..i {
                let other = &above[j * (j + 1) / 2..][..=j];
                row[j] = (row[j] - dot(&row[..j], &other[..j])) / other[j];
            }
            let square = row[i] - dot(&row[..i], &row[..i]);
            // A tiny pivot is the rounding error of a singular matrix.
            if square.is_nan() || square <= 1e-12 * row[i].abs() {
                return None;
            }
            row[i] = square.sqrt();
        }
        for i in 0..self.size {
            let row = self.row(i);
            values[i] = (values[i] - dot(&row[..i], &values[..i])) / row[i];
        }
        for i in (0..self.size).rev() {
            let row = self.row(i);
            let value = values[i] / row[i];
            values[i] = value;
            for (other, factor) in values[..i].iter_mut().zip(row) {
                *other -= factor * value;
            }
        }
        Some(values)
    }
}

/// Computes the sum of the products. Four partial sums let the processor work in parallel.
fn dot(a: &[f64], b: &[f64]) -> f64 {
    let mut sums = [0.0; 4];
    let (chunks_a, chunks_b) = (a.chunks_exact(4), b.chunks_exact(4));
    let rest: f64 = chunks_a.remainder().iter().zip(chunks_b.remainder()).map(|(x, y)| x * y).sum();
    for (x, y) in chunks_a.zip(chunks_b) {
        for (sum, (x, y)) in sums.iter_mut().zip(x.iter().zip(y)) {
            *sum += x * y;
        }
    }
    rest + sums.iter().sum::<f64>()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::statistics::regression::linear_solver;

    fn matrix(size: usize, cell: impl Fn(usize, usize) -> f64) -> SymmetricMatrix {
        let mut matrix = SymmetricMatrix::new(size);
        for i in 0..size {
            (0..=i).for_each(|j| *matrix.cell(i, j) = cell(i, j));
        }
        matrix
    }

    #[test]
    fn solution_equals_that_of_elimination() {
        let size = 13;
        let matrix = matrix(size, |i, j| {
            f64::from(u8::from(i == j)) * 5.0 + 1.0 / (1.0 + i as f64 + 2.0 * j as f64)
        });
        let values: Vec<f64> = (0..size).map(|i| i as f64 - 4.0).collect();
        let expected = linear_solver::solve(matrix.to_rows(), values.clone()).unwrap();
        for (a, b) in matrix.solve(values).unwrap().iter().zip(expected) {
            assert!((a - b).abs() < 1e-12, "{a} {b}");
        }
    }

    #[test]
    fn singular_and_indefinite_matrices_have_no_solution() {
        assert!(matrix(3, |_, _| 1.0).solve(vec![1.0; 3]).is_none());
        assert!(matrix(2, |i, j| (i + j) as f64 - 1.0).solve(vec![1.0; 2]).is_none());
        assert!(matrix(2, |_, _| f64::NAN).solve(vec![1.0; 2]).is_none());
    }
}
