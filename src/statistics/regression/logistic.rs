//! Logistic regression of outcomes between 0 and 1, by Newton's method.
//!
//! An outcome of one half (a tie) counts as half a success and half a failure, like the binomial
//! quasi-likelihood of statsmodels' `GLM`.

use crate::statistics::regression::linear_solver::solve;
use crate::statistics::undefined::{Defined, Undefined, require_at_least};

/// Maximum Newton steps; fewer than ten are typical.
const MAX_STEPS: usize = 60;
/// A coefficient beyond this limit is treated as unbounded.
const MAX_COEFFICIENT: f64 = 23.0;

/// One outcome with its features.
#[derive(Clone, Debug, PartialEq)]
pub struct LogisticObservation {
    /// The features; the same number in each observation. There is no intercept: add a constant
    /// feature for one.
    pub features: Vec<f64>,
    /// The outcome, 0 to 1.
    pub outcome: f64,
}

/// Maximum-likelihood coefficients.
#[derive(Clone, Debug, PartialEq)]
pub struct Logistic {
    /// One log odds ratio per feature.
    pub coefficients: Vec<f64>,
}

impl Logistic {
    /// Fits weighted observations.
    ///
    /// # Errors
    ///
    /// There is no observation, the features are collinear, or the likelihood has no maximum
    /// because the features separate the outcomes.
    pub fn fit(observations: &[LogisticObservation], weights: &[f64]) -> Defined<Self> {
        let size = observations.first().map_or(0, |o| o.features.len());
        Self::fit_newton(observations, weights, &vec![0.0; size])
    }

    /// Like [`fit`](Self::fit), with a penalty of `ridge · coefficient² / 2` per feature, so that a
    /// maximum always exists. This is scikit-learn's `LogisticRegression` with `C = 1 / ridge`, if
    /// `ridge` is 0 for a constant feature.
    ///
    /// # Errors
    ///
    /// There is no observation, or features without penalty are collinear.
    pub fn fit_ridge(
        observations: &[LogisticObservation],
        weights: &[f64],
        ridge: &[f64],
    ) -> Defined<Self> {
        Self::fit_newton(observations, weights, ridge)
    }

    fn fit_newton(
        observations: &[LogisticObservation],
        weights: &[f64],
        ridge: &[f64],
    ) -> Defined<Self> {
        let n: f64 = weights.iter().sum();
        require_at_least(1, n as usize, ["pair", "pairs"])?;
        let mut coefficients = vec![0.0; ridge.len()];
        let loss = |coefficients: &[f64]| {
            let penalties = coefficients.iter().zip(ridge).map(|(a, r)| r * a * a / 2.0);
            negative_log_likelihood(observations, weights, coefficients) + penalties.sum::<f64>()
        };
        let mut best_loss = loss(&coefficients);
        for _ in 0..MAX_STEPS {
            let (mut gradient, mut information) = derivatives(observations, weights, &coefficients);
            for (i, (a, r)) in coefficients.iter().zip(ridge).enumerate() {
                gradient[i] -= r * a;
                information[i][i] += r;
            }
            let step = solve(information, gradient).ok_or(Undefined::Unbounded(
                "the features do not vary enough to separate their effects",
            ))?;
            let mut length = 1.0;
            // A step that overshoots the maximum is halved.
            let (next, next_loss) = loop {
                let next: Vec<f64> =
                    coefficients.iter().zip(&step).map(|(a, s)| a + length * s).collect();
                let next_loss = loss(&next);
                if next_loss <= best_loss + 1e-12 || length < 1e-8 {
                    break (next, next_loss);
                }
                length /= 2.0;
            };
            (coefficients, best_loss) = (next, next_loss);
            if coefficients.iter().any(|a| !a.is_finite() || a.abs() > MAX_COEFFICIENT) {
                break;
            }
            if step.iter().all(|s| s.abs() < 1e-10) {
                return Ok(Self { coefficients });
            }
        }
        Err(Undefined::Unbounded(
            "the features separate the outcomes perfectly, so the effects are unbounded",
        ))
    }

    /// Predicts the expected outcome for the features.
    pub fn predict(&self, features: &[f64]) -> f64 {
        predicted_outcome(features, &self.coefficients)
    }
}

fn predicted_outcome(features: &[f64], coefficients: &[f64]) -> f64 {
    let log_odds: f64 = features.iter().zip(coefficients).map(|(x, b)| x * b).sum();
    1.0 / (1.0 + (-log_odds).exp())
}

/// Computes the negative log-likelihood.
fn negative_log_likelihood(
    observations: &[LogisticObservation],
    weights: &[f64],
    coefficients: &[f64],
) -> f64 {
    let term = |(o, weight): (&LogisticObservation, &f64)| {
        let products = o.features.iter().zip(coefficients).map(|(x, b)| x * b);
        let log_odds: f64 = products.sum();
        // ln(1 + e^log_odds), without overflow.
        let softplus = log_odds.max(0.0) + (-log_odds.abs()).exp().ln_1p();
        weight * (softplus - o.outcome * log_odds)
    };
    observations.iter().zip(weights).map(term).sum()
}

/// Computes the gradient of the log-likelihood and its negated Hessian.
fn derivatives(
    observations: &[LogisticObservation],
    weights: &[f64],
    coefficients: &[f64],
) -> (Vec<f64>, Vec<Vec<f64>>) {
    let size = coefficients.len();
    let mut gradient = vec![0.0; size];
    let mut information = vec![vec![0.0; size]; size];
    for (o, weight) in observations.iter().zip(weights).filter(|(_, w)| **w > 0.0) {
        let p = predicted_outcome(&o.features, coefficients);
        for (row, x) in information.iter_mut().zip(&o.features) {
            for (cell, y) in row.iter_mut().zip(&o.features) {
                *cell += weight * p * (1.0 - p) * x * y;
            }
        }
        for (slope, x) in gradient.iter_mut().zip(&o.features) {
            *slope += weight * (o.outcome - p) * x;
        }
    }
    (gradient, information)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn observation(features: &[f64], outcome: f64) -> LogisticObservation {
        LogisticObservation { features: features.to_vec(), outcome }
    }

    /// Three of four succeed: odds of three to one. A tie is half of each.
    #[test]
    fn one_feature_equals_hand_computation() {
        let all = [1.0, 1.0, 1.0, 0.0].map(|y| observation(&[1.0], y));
        let fit = Logistic::fit(&all, &[1.0; 4]).unwrap();
        assert!((fit.coefficients[0] - 3f64.ln()).abs() < 1e-9);
        assert!(
            (fit.predict(&[1.0]) - 0.75).abs() < 1e-9 && (fit.predict(&[0.0]) - 0.5).abs() < 1e-12
        );
        let tied = [observation(&[1.0], 0.5), observation(&[1.0], 1.0)];
        let fit = Logistic::fit(&tied, &[2.0, 2.0]).unwrap();
        assert!((fit.coefficients[0] - 3f64.ln()).abs() < 1e-9);
    }

    /// Compares with scikit-learn, including features that separate the outcomes.
    #[test]
    fn ridge_equals_scikit_learn() {
        #[derive(serde::Deserialize)]
        struct Golden {
            features: Vec<Vec<f64>>,
            outcomes: Vec<f64>,
            ridge: f64,
            coefficients: Vec<f64>,
        }
        let golden = include_str!("../../../assets/golden/ridge.json");
        let golden: Vec<Golden> = serde_json::from_str(golden).unwrap();
        assert!(golden.len() > 10);
        for example in golden {
            let all = example.features.iter().zip(&example.outcomes);
            let all: Vec<LogisticObservation> = all.map(|(x, y)| observation(x, *y)).collect();
            let mut ridge = vec![example.ridge; example.coefficients.len()];
            ridge[0] = 0.0;
            let fit = Logistic::fit_ridge(&all, &vec![1.0; all.len()], &ridge).unwrap();
            for (found, expected) in fit.coefficients.iter().zip(&example.coefficients) {
                assert!((found - expected).abs() < 1e-5, "{found} {expected}");
            }
        }
    }

    #[test]
    fn unbounded_and_collinear_features_are_reported() {
        let sure = [observation(&[1.0], 1.0), observation(&[-2.0], 0.0)];
        assert!(matches!(Logistic::fit(&sure, &[1.0; 2]), Err(Undefined::Unbounded(_))));
        let same = [1.0, 0.0].map(|y| observation(&[1.0, 2.0], y));
        assert!(Logistic::fit(&same, &[1.0; 2]).is_err());
        let flat = [observation(&[0.0], 1.0)];
        assert!(Logistic::fit(&flat, &[1.0]).is_err());
        assert!(Logistic::fit(&[], &[]).is_err());
    }
}
