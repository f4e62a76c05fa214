//! Calibration curves: isotonic or linear.

use serde::{Deserialize, Serialize};

use crate::statistics::{Defined, Isotonic, LinearFit};

/// Fitting method.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, clap::ValueEnum)]
#[serde(rename_all = "snake_case")]
pub enum Method {
    /// Isotonic (non-decreasing) curve; needs a few hundred labels
    Isotonic,
    /// Straight line; for few labels
    Linear,
}

/// A fitted curve.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Curve {
    /// Isotonic (non-decreasing) curve.
    Isotonic(Isotonic),
    /// Straight line.
    Linear(LinearFit),
}

impl Curve {
    /// Fits a curve to scores and labels.
    ///
    /// # Errors
    ///
    /// Same as [`Isotonic::fit`] and [`LinearFit::fit`].
    pub fn fit(method: Method, scores: &[f64], labels: &[f64], weights: &[f64]) -> Defined<Self> {
        match method {
            Method::Isotonic => Isotonic::fit(scores, labels, weights).map(Self::Isotonic),
            Method::Linear => LinearFit::fit(scores, labels, weights).map(Self::Linear),
        }
    }

    /// Maps a score to the label scale, 0 to 5.
    pub fn eval(&self, score: f64) -> f64 {
        let value = match self {
            Self::Isotonic(curve) => curve.eval(score),
            Self::Linear(line) => line.eval(score),
        };
        value.clamp(0.0, 5.0)
    }
}
