//! Correlation of two ratings: Pearson, Spearman and Kendall's tau-b.

use crate::statistics::agreement::contingency::ContingencyTable;
use crate::statistics::undefined::{Defined, RatingColumn, Undefined, require_at_least};

/// Computes Pearson's product-moment correlation, −1 to 1.
///
/// # Errors
///
/// There are fewer than two cases, or one rating is constant.
pub fn pearson(table: &ContingencyTable<'_>) -> Defined<f64> {
    check(table)?;
    Ok(product_moment(table.entries()))
}

/// Computes Spearman's rank correlation, −1 to 1: Pearson's correlation of the ranks, with mean
/// ranks for ties.
///
/// # Errors
///
/// Same as [`pearson`].
pub fn spearman(table: &ContingencyTable<'_>) -> Defined<f64> {
    check(table)?;
    let [x, y] = table.marginal_weights().map(|margin| midranks(&margin));
    let ranked = table.entries_by_index().map(|([i, j], w)| (x[i], y[j], w));
    Ok(product_moment(ranked))
}

/// Computes Kendall's tau-b, −1 to 1: concordant minus discordant pairs of cases, divided by the
/// geometric mean of the pairs without ties in each rating (Kendall 1945).
///
/// # Errors
///
/// Same as [`pearson`].
pub fn kendall(table: &ContingencyTable<'_>) -> Defined<f64> {
    check(table)?;
    let margins = table.marginal_weights();
    let pairs = |w: f64| w * (w - 1.0) / 2.0;
    let all = pairs(table.total());
    let [untied_x, untied_y] =
        margins.each_ref().map(|margin| all - margin.iter().map(|w| pairs(*w)).sum::<f64>());
    let mut sums = FenwickSums::new(margins[1].len());
    let (mut excess, mut before) = (0.0, 0.0);
    let entries: Vec<_> = table.entries_by_index().collect();
    // Cases with the same first value are compared with cases of smaller first values only, not
    // with each other.
    for group in entries.chunk_by(|(a, _), (b, _)| a[0] == b[0]) {
        for ([_, j], w) in group {
            let below = sums.below(*j);
            let above = before - sums.below(j + 1);
            excess += w * (below - above);
        }
        for ([_, j], w) in group {
            sums.add(*j, *w);
            before += w;
        }
    }
    Ok((excess / untied_x.sqrt() / untied_y.sqrt()).clamp(-1.0, 1.0))
}

fn check(table: &ContingencyTable<'_>) -> Defined<()> {
    require_at_least(2, table.total() as usize, ["case", "cases"])?;
    for (margin, column) in
        table.marginal_weights().iter().zip([RatingColumn::First, RatingColumn::Second])
    {
        if margin.iter().filter(|w| **w > 0.0).count() < 2 {
            return Err(Undefined::Constant(column));
        }
    }
    Ok(())
}

fn product_moment(entries: impl Iterator<Item = (f64, f64, f64)> + Clone) -> f64 {
    let sums = entries.clone().fold([0.0; 3], |[n, x, y], (a, b, w)| [n + w, x + w * a, y + w * b]);
    let (x, y) = (sums[1] / sums[0], sums[2] / sums[0]);
    let [xx, yy, xy] = entries.fold([0.0; 3], |[xx, yy, xy], (a, b, w)| {
        let (a, b) = (a - x, b - y);
        [xx + w * a * a, yy + w * b * b, xy + w * a * b]
    });
    // Rounding may exceed the range slightly.
    (xy / xx.sqrt() / yy.sqrt()).clamp(-1.0, 1.0)
}

/// Computes the mean rank of each level of ascending values, given the number of cases per level;
/// ranks start at one half.
pub(crate) fn midranks(weights: &[f64]) -> Vec<f64> {
    let mut below = 0.0;
    let rank = |w: &f64| {
        let rank = below + w / 2.0;
        below += w;
        rank
    };
    weights.iter().map(rank).collect()
}

/// Prefix sums of weights (a Fenwick tree).
struct FenwickSums(Vec<f64>);

impl FenwickSums {
    fn new(len: usize) -> Self {
        Self(vec![0.0; len + 1])
    }

    fn add(&mut self, index: usize, weight: f64) {
        let mut i = index + 1;
        while i < self.0.len() {
            self.0[i] += weight;
            i += i & i.wrapping_neg();
        }
    }

    /// Sums the weights before an index.
    fn below(&self, index: usize) -> f64 {
        let (mut i, mut sum) = (index, 0.0);
        while i > 0 {
            sum += self.0[i];
            i &= i - 1;
        }
        sum
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::statistics::ContingencyCells;

    fn compute(
        x: &[f64],
        y: &[f64],
        statistic: fn(&ContingencyTable<'_>) -> Defined<f64>,
    ) -> Defined<f64> {
        statistic(&ContingencyCells::new(x, y)?.table())
    }

    /// By hand: of the ten pairs of five cases 7 are concordant, 1 is discordant, one is tied in
    /// the first and one in the second: (7 − 1) / √(9 · 9).
    #[test]
    fn kendall_equals_hand_computation() {
        let (x, y) = ([1.0, 2.0, 2.0, 3.0, 4.0], [1.0, 2.0, 3.0, 3.0, 2.5]);
        let tau = compute(&x, &y, kendall).unwrap();
        let (mut excess, mut ties) = (0.0, [0, 0]);
        for i in 0..5 {
            for j in 0..i {
                let (a, b): (f64, f64) = (x[i] - x[j], y[i] - y[j]);
                excess += if a * b == 0.0 { 0.0 } else { (a * b).signum() };
                ties[0] += i32::from(a == 0.0);
                ties[1] += i32::from(b == 0.0);
            }
        }
        assert_eq!(ties, [1, 1]);
        assert!((tau - excess / 9.0).abs() < 1e-12, "{tau} {excess}");
    }

    #[test]
    fn constant_rating_is_reported() {
        let constant = compute(&[1.0, 2.0], &[3.0, 3.0], spearman);
        assert_eq!(constant, Err(Undefined::Constant(RatingColumn::Second)));
        assert!(matches!(
            compute(&[1.0], &[2.0], pearson),
            Err(Undefined::TooFew { found: 1, .. })
        ));
    }

    #[test]
    fn weight_two_equals_two_cases() {
        let (x, y) = ([1.0, 2.0, 3.0, 5.0], [2.0, 1.0, 4.0, 4.0]);
        let cells = ContingencyCells::new(&x, &y).unwrap();
        let resampled = cells.weighted_table(&[2.0, 0.0, 1.0, 1.0]);
        let (x, y) = ([1.0, 1.0, 3.0, 5.0], [2.0, 2.0, 4.0, 4.0]);
        for statistic in [pearson, spearman, kendall] {
            let copied = compute(&x, &y, statistic).unwrap();
            assert!((statistic(&resampled).unwrap() - copied).abs() < 1e-12);
        }
    }
}
