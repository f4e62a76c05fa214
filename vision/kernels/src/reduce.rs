//! Sums in a fixed order, which keeps results independent of the number of threads.

/// Sums `f` over the element pairs of two rows. Eight interleaved partial sums are a fixed order
/// that the compiler can vectorise.
#[inline(always)]
#[expect(clippy::inline_always, reason = "it is part of functions that enable vector instructions")]
pub(crate) fn sum_by(x: &[f32], y: &[f32], f: impl Fn(f32, f32) -> f32) -> f32 {
    let mut parts = [0f32; 8];
    let (xs, ys) = (x.chunks_exact(8), y.chunks_exact(8));
    let (x_rest, y_rest) = (xs.remainder(), ys.remainder());
    for (x, y) in xs.zip(ys) {
        for ((part, x), y) in parts.iter_mut().zip(x).zip(y) {
            *part += f(*x, *y);
        }
    }
    for ((part, x), y) in parts.iter_mut().zip(x_rest).zip(y_rest) {
        *part += f(*x, *y);
    }
    let [a, b, c, d, e, f, g, h] = parts;
    ((a + e) + (c + g)) + ((b + f) + (d + h))
}

/// Sums the products of the elements of two rows.
pub fn sum_of_products(x: &[f32], y: &[f32]) -> f32 {
    sum_by(x, y, |x, y| x * y)
}

/// Adds `row` to `sum`, element by element.
pub(crate) fn accumulate(sum: &mut [f32], row: &[f32]) {
    for (sum, x) in sum.iter_mut().zip(row) {
        *sum += x;
    }
}

/// Adds the sums of all blocks, in block order.
pub(crate) fn sum_blocks(block_sums: &[Vec<f32>], n: usize) -> Vec<f32> {
    let mut sum = vec![0f32; n];
    for block_sum in block_sums {
        accumulate(&mut sum, block_sum);
    }
    sum
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn remainder_elements_are_summed() {
        let x: Vec<f32> = (0..19).map(|x| x as f32).collect();
        assert!((sum_by(&x, &x, |x, _| x) - 171.).abs() < 1e-6);
        assert!((sum_by(&x, &x, |x, y| x * y) - 2109.).abs() < 1e-6);
    }
}
