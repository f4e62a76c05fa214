//! A score 0–5 with the probability the model gave to each of the six.

use serde::{Deserialize, Serialize};

/// The lowest and the highest score.
pub const SCORES: std::ops::RangeInclusive<u8> = 0..=5;

/// What the judge chose at a score's place, and how sure it was.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Score {
    /// The most probable score.
    pub value: u8,
    /// The probability of each score 0–5 among the six; they sum to one.
    pub probabilities: [f32; 6],
}

impl Score {
    /// The score of the most probable of six logits (the lower one on a tie), and their softmax.
    pub fn from_logits(logits: [f32; 6]) -> Self {
        let mut best = 0;
        for (i, logit) in logits.iter().enumerate() {
            if *logit > logits[best] {
                best = i;
            }
        }
        let weights = logits.map(|l| f64::from(l - logits[best]).exp());
        let total: f64 = weights.iter().sum();
        Self {
            value: best as u8,
            probabilities: weights.map(|w| (w / total) as f32),
        }
    }

    /// A score that is given without any doubt; above 5 it is 5.
    pub fn certain(value: u8) -> Self {
        let value = value.min(*SCORES.end());
        let mut probabilities = [0.0; 6];
        probabilities[usize::from(value)] = 1.0;
        Self {
            value,
            probabilities,
        }
    }

    /// The mean of the distribution, 0 to 5.
    pub fn expected(&self) -> f64 {
        self.probabilities
            .iter()
            .enumerate()
            .map(|(s, p)| s as f64 * f64::from(*p))
            .sum()
    }

    /// The standard deviation of the distribution: how unsure the judge was, in score points.
    pub fn spread(&self) -> f64 {
        let mean = self.expected();
        let squares = self.probabilities.iter().enumerate();
        squares
            .map(|(s, p)| (s as f64 - mean).powi(2) * f64::from(*p))
            .sum::<f64>()
            .sqrt()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn expectation_of_two_equal_scores_lies_between_them() {
        let score = Score::from_logits([-40.0, 2.0, -40.0, 2.0, -40.0, -40.0]);
        assert_eq!(score.value, 1);
        assert!((score.expected() - 2.0).abs() < 1e-6);
        assert!((score.spread() - 1.0).abs() < 1e-6);
    }
}
