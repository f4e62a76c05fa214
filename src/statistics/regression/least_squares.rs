//! Linear regression with one feature.

use serde::{Deserialize, Serialize};

use crate::statistics::undefined::{Defined, RatingColumn, Undefined, require_at_least};

/// y = slope · x + intercept.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct LinearFit {
    /// The slope.
    pub slope: f64,
    /// The intercept.
    pub intercept: f64,
}

impl LinearFit {
    /// Fits a line by weighted least squares.
    ///
    /// # Errors
    ///
    /// There are fewer than two cases, all x are equal, or a value is not finite.
    pub fn fit(x: &[f64], y: &[f64], weights: &[f64]) -> Defined<Self> {
        let weighted = || {
            let cases = x.iter().zip(y).zip(weights).filter(|(_, w)| **w > 0.0);
            cases.map(|((x, y), w)| (*x, *y, *w))
        };
        let n: f64 = weighted().map(|(_, _, w)| w).sum();
        require_at_least(2, n as usize, ["case", "cases"])?;
        if weighted().any(|(x, y, _)| !(x.is_finite() && y.is_finite())) {
            return Err(Undefined::NotFinite);
        }
        let mean_x = weighted().map(|(x, _, w)| w * x).sum::<f64>() / n;
        let mean_y = weighted().map(|(_, y, w)| w * y).sum::<f64>() / n;
        let squares: f64 = weighted().map(|(x, _, w)| w * (x - mean_x).powi(2)).sum();
        if squares <= 1e-20 * n * (1.0 + mean_x * mean_x) {
            return Err(Undefined::Constant(RatingColumn::First));
        }
        let products: f64 = weighted().map(|(x, y, w)| w * (x - mean_x) * (y - mean_y)).sum();
        let slope = products / squares;
        Ok(Self { slope, intercept: mean_y - slope * mean_x })
    }

    /// Evaluates the line.
    pub fn eval(&self, x: f64) -> f64 {
        self.slope * x + self.intercept
    }
}
