//! Platt scaling: a logistic curve from decision values of a classifier to probabilities (Platt
//! 1999, Lin, Lin and Weng 2007; scikit-learn's `_SigmoidCalibration`).

use crate::statistics::regression::logistic::{Logistic, LogisticObservation};
use crate::statistics::undefined::{Defined, require_at_least};

/// Decision values are fitted in hundredths of their spread, so that a steep curve stays below the
/// limit of coefficients.
const SPREAD_UNITS: f64 = 100.0;

/// Log odds of the outcome as a linear function of the decision value.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PlattScaling {
    /// Change of the log odds per unit of the decision value.
    pub slope: f64,
    /// Log odds at the decision value 0.
    pub intercept: f64,
}

impl PlattScaling {
    /// Fits decision values and outcomes. The targets are those of Platt, which are not quite 0
    /// and 1: a curve exists even if the decision values separate the outcomes. Equal decision
    /// values give a constant.
    ///
    /// # Errors
    /// There is no outcome.
    pub fn fit(decisions: &[f64], outcomes: &[bool]) -> Defined<Self> {
        require_at_least(1, outcomes.len(), ["outcome", "outcomes"])?;
        let n = decisions.len() as f64;
        let center = decisions.iter().sum::<f64>() / n;
        let variance = decisions.iter().map(|d| (d - center) * (d - center)).sum::<f64>() / n;
        let unit = variance.sqrt() / SPREAD_UNITS;
        // Equal values differ by rounding only.
        if unit <= 1e-12 * (1.0 + center.abs()) {
            return Self::constant(outcomes);
        }
        let [low, high] = targets(outcomes);
        let observation = |(decision, outcome): (&f64, &bool)| LogisticObservation {
            features: vec![1.0, (decision - center) / unit],
            outcome: if *outcome { high } else { low },
        };
        let observations: Vec<_> = decisions.iter().zip(outcomes).map(observation).collect();
        let weights = vec![1.0; observations.len()];
        // A penalty bounds the slope of a curve that is steeper still.
        let fit = Logistic::fit(&observations, &weights)
            .or_else(|_| Logistic::fit_ridge(&observations, &weights, &[0.0, 1.0]))?;
        let [at_center, slope] = fit.coefficients[..] else {
            return Self::constant(outcomes);
        };
        let slope = slope / unit;
        Ok(Self { slope, intercept: at_center - slope * center })
    }

    /// Returns the constant curve: the proportion of positive outcomes, smoothed as in
    /// [`fit`](Self::fit).
    ///
    /// # Errors
    /// There is no outcome.
    pub fn constant(outcomes: &[bool]) -> Defined<Self> {
        require_at_least(1, outcomes.len(), ["outcome", "outcomes"])?;
        let [low, high] = targets(outcomes);
        let sum: f64 = outcomes.iter().map(|outcome| if *outcome { high } else { low }).sum();
        let mean = sum / outcomes.len() as f64;
        Ok(Self { slope: 0.0, intercept: (mean / (1.0 - mean)).ln() })
    }

    /// Returns the probability of a positive outcome.
    pub fn probability(&self, decision: f64) -> f64 {
        1.0 / (1.0 + (-(self.slope * decision + self.intercept)).exp())
    }
}

/// Returns the targets of negative and positive outcomes.
fn targets(outcomes: &[bool]) -> [f64; 2] {
    let positive = outcomes.iter().filter(|outcome| **outcome).count() as f64;
    let negative = outcomes.len() as f64 - positive;
    [1.0 / (negative + 2.0), (positive + 1.0) / (positive + 2.0)]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scaling_equals_scikit_learn() {
        #[derive(serde::Deserialize)]
        struct Golden {
            decisions: Vec<f64>,
            outcomes: Vec<bool>,
            slope: f64,
            intercept: f64,
        }
        let golden = include_str!("../../../assets/golden/platt.json");
        let golden: Vec<Golden> = serde_json::from_str(golden).unwrap();
        assert!(golden.len() > 8);
        for example in golden {
            let fit = PlattScaling::fit(&example.decisions, &example.outcomes).unwrap();
            let expected = PlattScaling { slope: example.slope, intercept: example.intercept };
            for decision in &example.decisions {
                let [found, expected] = [fit, expected].map(|curve| curve.probability(*decision));
                assert!((found - expected).abs() < 1e-5, "{decision}: {found}, not {expected}");
            }
        }
    }

    #[test]
    fn separated_and_equal_values_have_a_curve() {
        let outcomes: Vec<bool> = (0..40).map(|i| i >= 20).collect();
        let decisions: Vec<f64> = (0..40).map(|i| f64::from(i) - 19.5).collect();
        let fit = PlattScaling::fit(&decisions, &outcomes).unwrap();
        assert!(fit.slope > 0.0 && fit.probability(19.5) < 1.0, "{fit:?}");
        // A gap that is tiny beside the spread, and values that only differ by rounding.
        let tiny: Vec<f64> = (0..40)
            .map(|i| {
                if i == 0 {
                    -1e6
                } else if i < 20 {
                    -1e-3
                } else {
                    1e-3
                }
            })
            .collect();
        let fit = PlattScaling::fit(&tiny, &outcomes).unwrap();
        assert!(fit.slope > 0.0 && fit.probability(1e-3) > fit.probability(-1e-3), "{fit:?}");
        let equal = PlattScaling::fit(&[0.3; 40], &outcomes).unwrap();
        assert!(equal.slope.abs() < 1e-12 && (equal.probability(7.0) - 0.5).abs() < 1e-12);
        let one_class = PlattScaling::fit(&decisions, &[true; 40]).unwrap();
        assert!(one_class.probability(0.0) > 0.9, "{one_class:?}");
        assert!(PlattScaling::fit(&[], &[]).is_err());
    }
}
