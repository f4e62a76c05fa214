//! Small linear systems, for Newton's method.

/// Solves a linear system by Gaussian elimination with pivoting; `None` if it is singular.
pub(crate) fn solve(mut matrix: Vec<Vec<f64>>, mut values: Vec<f64>) -> Option<Vec<f64>> {
    let n = values.len();
    for column in 0..n {
        let largest =
            |a: &usize, b: &usize| matrix[*a][column].abs().total_cmp(&matrix[*b][column].abs());
        let pivot = (column..n).max_by(largest)?;
        if matrix[pivot][column].abs() < 1e-300 {
            return None;
        }
        matrix.swap(column, pivot);
        values.swap(column, pivot);
        let (above, below) = matrix.split_at_mut(column + 1);
        let pivot_row = &above[column];
        for (row, index) in below.iter_mut().zip(column + 1..) {
            let factor = row[column] / pivot_row[column];
            for (cell, value) in row.iter_mut().zip(pivot_row).skip(column) {
                *cell -= factor * value;
            }
            values[index] -= factor * values[column];
        }
    }
    for column in (0..n).rev() {
        let known: f64 = (column + 1..n).map(|i| matrix[column][i] * values[i]).sum();
        values[column] = (values[column] - known) / matrix[column][column];
    }
    Some(values)
}
