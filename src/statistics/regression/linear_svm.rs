//! Linear support vector machine, by dual coordinate descent (Hsieh et al. 2008).
//!
//! The squared hinge loss makes the optimum unique. It is the optimum of LIBLINEAR and of
//! scikit-learn's `LinearSVC`. No crate solves this problem in Rust: `linfa-svm` has the hinge loss, an
//! unpenalised intercept and an n × n kernel matrix, and `liblinear` is C++.

use rand::SeedableRng;
use rand::seq::SliceRandom as _;
use rand_chacha::ChaCha8Rng;

use crate::statistics::undefined::{Defined, require_at_least};

/// Settings of the fit.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SvmSettings {
    /// Weight of the loss against the penalty of the coefficients (C).
    pub cost: f64,
    /// The fit ends if the projected gradients of an epoch differ by less.
    pub tolerance: f64,
    /// Maximum number of passes over the rows. The result is then near the optimum, not at it.
    pub max_epochs: usize,
    /// Seed of the order of the rows in each pass.
    pub seed: u64,
}

/// A linear classifier.
#[derive(Clone, Debug, PartialEq)]
pub struct LinearSvm {
    /// One coefficient for each feature.
    pub coefficients: Vec<f64>,
    /// The intercept. It has a penalty like a coefficient of a constant feature 1.
    pub intercept: f64,
}

impl Default for SvmSettings {
    /// The tolerance and number of epochs that scikit-learn has.
    fn default() -> Self {
        Self { cost: 1.0, tolerance: 1e-4, max_epochs: 1000, seed: 1 }
    }
}

impl LinearSvm {
    /// Fits rows with outcomes: minimises `|w|² / 2 + C Σ max(0, 1 − y (w·x + b))²`, where `w`
    /// includes `b` and `y` is 1 or −1.
    ///
    /// # Errors
    /// There is no row.
    pub fn fit(rows: &[&[f64]], outcomes: &[bool], settings: SvmSettings) -> Defined<Self> {
        require_at_least(1, rows.len(), ["row", "rows"])?;
        // The squared hinge loss adds a constant to the diagonal of the dual problem, and leaves
        // its variables without an upper bound.
        let diagonal = 0.5 / settings.cost;
        let curvatures: Vec<f64> = rows.iter().map(|row| dot(row, row) + 1.0 + diagonal).collect();
        let mut svm = Self { coefficients: vec![0.0; rows[0].len()], intercept: 0.0 };
        let mut duals = vec![0.0; rows.len()];
        let mut order: Vec<usize> = (0..rows.len()).collect();
        let mut random = ChaCha8Rng::seed_from_u64(settings.seed);
        for _ in 0..settings.max_epochs {
            order.shuffle(&mut random);
            let (mut lowest, mut highest) = (f64::INFINITY, f64::NEG_INFINITY);
            for &i in &order {
                let sign = if outcomes[i] { 1.0 } else { -1.0 };
                let gradient = sign * svm.decide(rows[i]) - 1.0 + diagonal * duals[i];
                let projected = if duals[i] > 0.0 { gradient } else { gradient.min(0.0) };
                lowest = projected.min(lowest);
                highest = projected.max(highest);
                let next = (duals[i] - gradient / curvatures[i]).max(0.0);
                let step = sign * (next - duals[i]);
                duals[i] = next;
                if step != 0.0 {
                    for (coefficient, x) in svm.coefficients.iter_mut().zip(rows[i]) {
                        *coefficient += step * x;
                    }
                    svm.intercept += step;
                }
            }
            if highest - lowest <= settings.tolerance {
                break;
            }
        }
        Ok(svm)
    }

    /// Returns the decision value: positive for a positive outcome.
    pub fn decide(&self, features: &[f64]) -> f64 {
        dot(&self.coefficients, features) + self.intercept
    }
}

fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn coefficients_equal_scikit_learn() {
        #[derive(serde::Deserialize)]
        struct Golden {
            features: Vec<Vec<f64>>,
            outcomes: Vec<bool>,
            cost: f64,
            coefficients: Vec<f64>,
            intercept: f64,
            decisions: Vec<f64>,
        }
        let golden = include_str!("../../../assets/golden/svm.json");
        let golden: Vec<Golden> = serde_json::from_str(golden).unwrap();
        assert!(golden.len() > 10);
        for example in golden {
            let rows: Vec<&[f64]> = example.features.iter().map(Vec::as_slice).collect();
            let settings =
                SvmSettings { cost: example.cost, tolerance: 1e-9, max_epochs: 100_000, seed: 3 };
            let fit = LinearSvm::fit(&rows, &example.outcomes, settings).unwrap();
            let found = fit.coefficients.iter().chain([&fit.intercept]);
            let expected = example.coefficients.iter().chain([&example.intercept]);
            for (found, expected) in found.zip(expected) {
                assert!(
                    (found - expected).abs() < 1e-6,
                    "C {}: {found}, not {expected}",
                    example.cost
                );
            }
            for (row, expected) in rows.iter().zip(&example.decisions) {
                assert!((fit.decide(row) - expected).abs() < 1e-5);
            }
            // The optimum does not depend on the order of the rows.
            let other =
                LinearSvm::fit(&rows, &example.outcomes, SvmSettings { seed: 9, ..settings });
            assert!((other.unwrap().intercept - fit.intercept).abs() < 1e-6);
        }
    }

    /// By symmetry w = (a, 0) and b = 0; the derivative of a²/2 + 2C(1 − a)² is zero at
    /// a = 4C / (1 + 4C).
    #[test]
    fn two_rows_equal_hand_computation() {
        let rows: [&[f64]; 2] = [&[1.0, 0.0], &[-1.0, 0.0]];
        let settings = SvmSettings { tolerance: 1e-12, ..SvmSettings::default() };
        let fit = LinearSvm::fit(&rows, &[true, false], settings).unwrap();
        assert!((fit.coefficients[0] - 0.8).abs() < 1e-9, "{fit:?}");
        assert!(fit.coefficients[1].abs() < 1e-12 && fit.intercept.abs() < 1e-9, "{fit:?}");
        let one_class = LinearSvm::fit(&rows, &[true, true], settings).unwrap();
        assert!(one_class.decide(&[0.0, 0.0]) > 0.5, "{one_class:?}");
        assert!(LinearSvm::fit(&[], &[], settings).is_err());
    }
}
