//! The form of a map: a rising curve, or a straight line.

use serde::{Deserialize, Serialize};

use crate::statistics::{Defined, Isotonic, LinearFit};

/// How a map is fitted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, clap::ValueEnum)]
#[serde(rename_all = "snake_case")]
pub enum Method {
    /// Any curve that never falls; wants some hundred labels
    Isotonic,
    /// A straight line; enough where labels are few
    Linear,
}

/// A fitted map.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Curve {
    /// A curve that never falls.
    Isotonic(Isotonic),
    /// A straight line.
    Linear(LinearFit),
}

impl Curve {
    /// The best curve of a form through scores and labels.
    ///
    /// # Errors
    ///
    /// If there are too few.
    pub fn fit(method: Method, scores: &[f64], labels: &[f64], weights: &[f64]) -> Defined<Self> {
        match method {
            Method::Isotonic => Isotonic::fit(scores, labels, weights).map(Self::Isotonic),
            Method::Linear => LinearFit::fit(scores, labels, weights).map(Self::Linear),
        }
    }

    /// A score on the scale of labels, 0 to 5.
    pub fn at(&self, score: f64) -> f64 {
        let value = match self {
            Self::Isotonic(curve) => curve.at(score),
            Self::Linear(line) => line.at(score),
        };
        value.clamp(0.0, 5.0)
    }
}
