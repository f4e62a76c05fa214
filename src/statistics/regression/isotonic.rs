//! Isotonic regression.

use serde::{Deserialize, Serialize};

use crate::statistics::undefined::{Defined, Undefined, require_at_least};

/// A non-decreasing curve: linear between its points, constant outside.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Isotonic {
    /// Points `[x, y]`, ascending in both.
    pub points: Vec<[f64; 2]>,
}

/// A pooled block: smallest and largest x, mean y, weight.
#[derive(Clone, Copy)]
struct PooledBlock {
    from: f64,
    to: f64,
    mean: f64,
    weight: f64,
}

impl Isotonic {
    /// Fits by least squares, pooling adjacent violators (Barlow et al. 1972). The curve is linear
    /// between the pooled points, like scikit-learn's `IsotonicRegression`.
    ///
    /// # Errors
    ///
    /// There is no case, or a value is not finite.
    pub fn fit(x: &[f64], y: &[f64], weights: &[f64]) -> Defined<Self> {
        let weighted = x.iter().zip(y).zip(weights).filter(|(_, w)| **w > 0.0);
        let mut cases: Vec<[f64; 3]> = weighted.map(|((x, y), w)| [*x, *y, *w]).collect();
        require_at_least(1, cases.len(), ["case", "cases"])?;
        if cases.iter().flatten().any(|v| !v.is_finite()) {
            return Err(Undefined::NotFinite);
        }
        cases.sort_by(|a, b| a[0].total_cmp(&b[0]));
        let mut blocks: Vec<PooledBlock> = Vec::new();
        for equal in cases.chunk_by(|a, b| a[0] >= b[0]) {
            let weight: f64 = equal.iter().map(|c| c[2]).sum();
            let mean = equal.iter().map(|c| c[1] * c[2]).sum::<f64>() / weight;
            let (from, to) = (equal[0][0], equal[0][0]);
            let mut block = PooledBlock { from, to, mean, weight };
            while let Some(before) = blocks.pop_if(|before| before.mean >= block.mean) {
                block = before.merge(block);
            }
            blocks.push(block);
        }
        let block_points = |block: &PooledBlock| [[block.from, block.mean], [block.to, block.mean]];
        let mut points: Vec<[f64; 2]> = blocks.iter().flat_map(block_points).collect();
        points.dedup();
        Ok(Self { points })
    }

    /// Evaluates the curve.
    pub fn eval(&self, x: f64) -> f64 {
        let after = self.points.partition_point(|[from, _]| *from <= x);
        let before = after.checked_sub(1).and_then(|i| self.points.get(i));
        match (before, self.points.get(after)) {
            (Some([a, low]), Some([b, high])) => low + (high - low) * (x - a) / (b - a),
            (Some([_, level]), None) | (None, Some([_, level])) => *level,
            // A curve without points is the identity.
            (None, None) => x,
        }
    }
}

impl PooledBlock {
    fn merge(self, next: Self) -> Self {
        let weight = self.weight + next.weight;
        Self {
            from: self.from,
            to: next.to,
            mean: (self.mean * self.weight + next.mean * next.weight) / weight,
            weight,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn adjacent_violators_are_pooled() {
        let curve = Isotonic::fit(&[1.0, 2.0, 3.0, 4.0], &[1.0, 3.0, 2.0, 5.0], &[1.0; 4]).unwrap();
        assert_eq!(curve.points, [[1.0, 1.0], [2.0, 2.5], [3.0, 2.5], [4.0, 5.0]]);
        for (x, expected) in [(0.0, 1.0), (1.5, 1.75), (2.2, 2.5), (3.5, 3.75), (9.0, 5.0)] {
            assert!((curve.eval(x) - expected).abs() < 1e-12, "{x}");
        }
    }

    #[test]
    fn decreasing_data_fit_a_constant() {
        let curve = Isotonic::fit(&[1.0, 1.0, 2.0], &[5.0, 3.0, 1.0], &[1.0, 1.0, 2.0]).unwrap();
        assert_eq!(curve.points, [[1.0, 2.5], [2.0, 2.5]]);
        assert!(Isotonic::fit(&[], &[], &[]).is_err());
    }
}
