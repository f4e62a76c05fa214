//! A score with the probabilities of all scores that the judge could choose.

use serde::{Deserialize, Serialize};

/// Range of the scores of criteria and of final scores.
pub const SCORES: std::ops::RangeInclusive<u8> = 0..=5;

/// A chosen score and the judge's probability of each score.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Score {
    /// The most probable score.
    pub value: u8,
    /// Probabilities of the scores from 0 on; they sum to one.
    pub probabilities: Vec<f32>,
    /// Probability that the model gave to all scores together, before other tokens were excluded;
    /// `None` if it is not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub label_mass: Option<f32>,
    /// True if the probabilities of some scores are not known: they count as the largest value that
    /// they can have, or as zero.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_partial: bool,
}

impl Score {
    /// Chooses the score with the largest logit (the lowest score on a tie), and stores the softmax of
    /// the logits. `logits`: one per score, from score 0 on; at most 256.
    pub fn from_logits(logits: &[f32]) -> Self {
        let best = first_maximum(logits);
        let weights: Vec<f64> = logits.iter().map(|l| f64::from(l - logits[best]).exp()).collect();
        let total: f64 = weights.iter().sum();
        let probabilities = weights.into_iter().map(|w| (w / total) as f32).collect();
        Self { value: best as u8, probabilities, label_mass: None, is_partial: false }
    }

    /// Returns a score of 0 to 5 with probability 1. A value above 5 becomes 5.
    pub fn from_value(value: u8) -> Self {
        let value = value.min(*SCORES.end());
        let mut probabilities = vec![0.0; 6];
        probabilities[usize::from(value)] = 1.0;
        Self { value, probabilities, label_mass: None, is_partial: false }
    }

    /// Returns the mean of weighted distributions. Its value is the most probable score, the lowest on
    /// a tie. `weighted`: distributions over the same scores, with weights that sum to one.
    pub fn mixture(weighted: &[(f64, &Self)]) -> Self {
        let count = weighted.iter().map(|(_, score)| score.probabilities.len()).max().unwrap_or(0);
        let mut probabilities = vec![0.0_f64; count];
        for (weight, score) in weighted {
            for (sum, probability) in probabilities.iter_mut().zip(&score.probabilities) {
                *sum += weight * f64::from(*probability);
            }
        }
        let masses = weighted.iter().map(|(w, score)| Some(w * f64::from(score.label_mass?)));
        Self {
            value: first_maximum(&probabilities) as u8,
            probabilities: probabilities.into_iter().map(|p| p as f32).collect(),
            label_mass: masses.sum::<Option<f64>>().map(|mass| mass as f32),
            is_partial: weighted.iter().any(|(_, score)| score.is_partial),
        }
    }

    /// Returns the mean of the distribution, in the range of the scores.
    pub fn expected(&self) -> f64 {
        self.probabilities
            .iter()
            .enumerate()
            .map(|(score, probability)| score as f64 * f64::from(*probability))
            .sum()
    }

    /// Returns the standard deviation of the distribution, in score points.
    pub fn std_dev(&self) -> f64 {
        let mean = self.expected();
        let distribution = self.probabilities.iter().enumerate();
        distribution
            .map(|(score, probability)| (score as f64 - mean).powi(2) * f64::from(*probability))
            .sum::<f64>()
            .sqrt()
    }
}

/// Returns the index of the largest value, the first one on a tie; 0 without values.
fn first_maximum<T: PartialOrd>(values: &[T]) -> usize {
    let mut best = 0;
    for (i, value) in values.iter().enumerate() {
        if *value > values[best] {
            best = i;
        }
    }
    best
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn expected_score_of_two_equal_logits_is_their_mean() {
        let score = Score::from_logits(&[-40.0, 2.0, -40.0, 2.0, -40.0, -40.0]);
        assert_eq!(score.value, 1);
        assert!((score.expected() - 2.0).abs() < 1e-6);
        assert!((score.std_dev() - 1.0).abs() < 1e-6);
    }
}
