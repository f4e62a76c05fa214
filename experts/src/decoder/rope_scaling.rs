//! Stretching of the rotary angles to contexts longer than those of the first training
//! (transformers' `modeling_rope_utils.py`).

use std::f64::consts::TAU;

use serde::{Deserialize, Serialize};

/// How the angles are stretched. Other kinds exist (`dynamic`, `yarn`, `longrope`) and are errors
/// that name them.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "rope_type", rename_all = "lowercase", deny_unknown_fields)]
pub enum RopeScaling {
    /// Every place counts as `1 / factor` of a place.
    Linear {
        /// How many times the context grows.
        factor: f64,
    },
    /// Llama 3: slow turns are stretched, fast ones kept, those between blended.
    Llama3 {
        /// How many times the context grows.
        factor: f64,
        /// Turns longer than `original_max_position_embeddings / low_freq_factor` are stretched.
        low_freq_factor: f64,
        /// Turns shorter than `original_max_position_embeddings / high_freq_factor` are kept.
        high_freq_factor: f64,
        /// The context of the first training.
        original_max_position_embeddings: usize,
    },
    /// By a table, as GGUF files hold it (`rope_freqs`).
    Table {
        /// How many times slower each pair of a head turns.
        factors: Vec<f64>,
    },
}

impl RopeScaling {
    /// What is wrong with these numbers for heads of size `d`, if anything is.
    pub(super) fn check(&self, d: usize) -> Result<(), String> {
        let factors = match self {
            Self::Linear { factor } | Self::Llama3 { factor, .. } => std::slice::from_ref(factor),
            Self::Table { factors } if factors.len() != d / 2 => {
                return Err(format!(
                    "rope_scaling: {} factors, a head has {} pairs",
                    factors.len(),
                    d / 2
                ));
            }
            Self::Table { factors } => factors.as_slice(),
        };
        let slower = |factor: &&f64| !(factor.is_finite() && **factor >= 1.0);
        if let Some(factor) = factors.iter().find(slower) {
            return Err(format!(
                "rope_scaling: factor is {factor}, expected at least 1"
            ));
        }
        match *self {
            Self::Llama3 {
                low_freq_factor: low,
                high_freq_factor: high,
                original_max_position_embeddings: context,
                ..
            } if !(low > 0.0 && high > low && high.is_finite() && context > 0) => Err(format!(
                "rope_scaling: low_freq_factor {low}, high_freq_factor {high} and \
                 original_max_position_embeddings {context} must be positive, the first below the \
                 second"
            )),
            _ => Ok(()),
        }
    }

    /// The stretched period (places per radian) of the pair at a place of a head whose unstretched
    /// one is `period`.
    pub(super) fn stretch(&self, pair: usize, period: f64) -> f64 {
        match *self {
            Self::Table { ref factors } => period * factors.get(pair).copied().unwrap_or(1.0),
            Self::Linear { factor } => period * factor,
            Self::Llama3 {
                factor,
                low_freq_factor: low,
                high_freq_factor: high,
                original_max_position_embeddings: context,
            } => {
                let turns = context as f64 / (TAU * period);
                if turns < low {
                    period * factor
                } else if turns > high {
                    period
                } else {
                    let kept = (turns - low) / (high - low);
                    period / ((1.0 - kept) / factor + kept)
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn llama3_stretches_slow_turns_only() {
        let scaling = RopeScaling::Llama3 {
            factor: 8.0,
            low_freq_factor: 1.0,
            high_freq_factor: 4.0,
            original_max_position_embeddings: 64,
        };
        let period = |turns: f64| 64.0 / (TAU * turns);
        assert!((scaling.stretch(0, period(0.5)) / period(0.5) - 8.0).abs() < 1e-12);
        assert!((scaling.stretch(0, period(5.0)) / period(5.0) - 1.0).abs() < 1e-12);
        // Half way between 1 and 4 turns: the mean of the frequencies 1 and 1/8.
        let half = scaling.stretch(0, period(2.5)) / period(2.5);
        assert!((half - 1.0 / 0.5625).abs() < 1e-12, "{half}");
    }

    #[test]
    fn another_kind_is_an_error_that_names_it() {
        let yarn = toml::from_str::<RopeScaling>("rope_type = \"yarn\"\nfactor = 2.0");
        assert!(yarn.unwrap_err().to_string().contains("yarn"));
        assert!(RopeScaling::Linear { factor: 0.5 }.check(8).is_err());
    }

    #[test]
    fn a_table_has_a_factor_for_each_pair() {
        let factors = vec![1.0, 3.0];
        let table = RopeScaling::Table { factors };
        assert!(table.check(4).is_ok() && table.check(8).is_err());
        assert!((table.stretch(1, 5.0) - 15.0).abs() < 1e-12);
        let factors = vec![1.0, f64::NAN];
        assert!(RopeScaling::Table { factors }.check(4).is_err());
    }
}
