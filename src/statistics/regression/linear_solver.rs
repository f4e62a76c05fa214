//! Small linear systems, for Newton's method.

/// Solves a linear system by Gaussian elimination with pivoting; `None` if it is singular.
pub(crate) fn solve(mut matrix: Vec<Vec<f64>>, mut right: Vec<f64>) -> Option<Vec<f64>> {
    let n = right.len();
    for column in 0..n {
        let largest = |a: &usize, b: &usize| {
            matrix[*a][column]
                .abs()
                .total_cmp(&matrix[*b][column].abs())
        };
        let pivot = (column..n).max_by(largest)?;
        if matrix[pivot][column].abs() < 1e-300 {
            return None;
        }
        matrix.swap(column, pivot);
        right.swap(column, pivot);
        let (above, below) = matrix.split_at_mut(column + 1);
        let lead = &above[column];
        for (row, value) in below.iter_mut().zip(column + 1..) {
            let factor = row[column] / lead[column];
            for (cell, l) in row.iter_mut().zip(lead).skip(column) {
                *cell -= factor * l;
            }
            right[value] -= factor * right[column];
        }
    }
    for column in (0..n).rev() {
        let known: f64 = (column + 1..n).map(|i| matrix[column][i] * right[i]).sum();
        right[column] = (right[column] - known) / matrix[column][column];
    }
    Some(right)
}
