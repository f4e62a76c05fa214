//! RoPE scaling: slower rotation for contexts longer than that of the pretraining (transformers'
//! `modeling_rope_utils.py`).

use std::f64::consts::TAU;

use serde::{Deserialize, Serialize};

/// RoPE scaling method. Other methods (`dynamic`, `yarn`, `longrope`) are rejected by name.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "rope_type", rename_all = "lowercase", deny_unknown_fields)]
pub enum RopeScaling {
    /// Divides all positions by `factor`.
    Linear {
        /// Ratio of the new context length to the original one.
        factor: f64,
    },
    /// Llama 3: scales long wavelengths, keeps short ones, and interpolates between them.
    Llama3 {
        /// Ratio of the new context length to the original one.
        factor: f64,
        /// Wavelengths above `original_max_position_embeddings / low_freq_factor` are scaled.
        low_freq_factor: f64,
        /// Wavelengths below `original_max_position_embeddings / high_freq_factor` are kept.
        high_freq_factor: f64,
        /// Context length of the pretraining, in tokens.
        original_max_position_embeddings: usize,
    },
    /// A factor for each pair of dimensions, as in the `rope_freqs` of GGUF files.
    Table {
        /// Factors by which the periods of the `d / 2` pairs of dimensions of a head grow.
        factors: Vec<f64>,
    },
}

impl RopeScaling {
    /// Returns an error if a value is invalid for heads of size `d`.
    pub(super) fn validate(&self, d: usize) -> Result<(), String> {
        let factors = match self {
            Self::Linear { factor } | Self::Llama3 { factor, .. } => std::slice::from_ref(factor),
            Self::Table { factors } if factors.len() != d / 2 => {
                return Err(format!(
                    "rope_scaling: expected a factor for each of the {} pairs of dimensions of a \
                     head, found {}",
                    d / 2,
                    factors.len()
                ));
            }
            Self::Table { factors } => factors.as_slice(),
        };
        let is_invalid = |factor: &&f64| !(factor.is_finite() && **factor >= 1.0);
        if let Some(factor) = factors.iter().find(is_invalid) {
            return Err(format!("rope_scaling: factor is {factor}, expected at least 1"));
        }
        match *self {
            Self::Llama3 {
                low_freq_factor: low,
                high_freq_factor: high,
                original_max_position_embeddings: context,
                ..
            } if !(low > 0.0 && high > low && high.is_finite() && context > 0) => Err(format!(
                "rope_scaling: expected 0 < low_freq_factor < high_freq_factor and a positive \
                 original_max_position_embeddings, found {low}, {high} and {context}"
            )),
            _ => Ok(()),
        }
    }

    /// Returns the scaled period of a pair of dimensions of a head. `period` and the result:
    /// positions per radian.
    pub(super) fn scaled_period(&self, pair: usize, period: f64) -> f64 {
        match *self {
            Self::Table { ref factors } => period * factors.get(pair).copied().unwrap_or(1.0),
            Self::Linear { factor } => period * factor,
            Self::Llama3 {
                factor,
                low_freq_factor: low,
                high_freq_factor: high,
                original_max_position_embeddings: context,
            } => {
                // Number of rotations over the original context.
                let rotations = context as f64 / (TAU * period);
                if rotations < low {
                    period * factor
                } else if rotations > high {
                    period
                } else {
                    let unscaled_weight = (rotations - low) / (high - low);
                    period / ((1.0 - unscaled_weight) / factor + unscaled_weight)
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn llama3_scales_long_wavelengths_only() {
        let scaling = RopeScaling::Llama3 {
            factor: 8.0,
            low_freq_factor: 1.0,
            high_freq_factor: 4.0,
            original_max_position_embeddings: 64,
        };
        let period = |rotations: f64| 64.0 / (TAU * rotations);
        assert!((scaling.scaled_period(0, period(0.5)) / period(0.5) - 8.0).abs() < 1e-12);
        assert!((scaling.scaled_period(0, period(5.0)) / period(5.0) - 1.0).abs() < 1e-12);
        // Halfway between 1 and 4 rotations: the mean of the frequencies 1 and 1/8.
        let ratio = scaling.scaled_period(0, period(2.5)) / period(2.5);
        assert!((ratio - 1.0 / 0.5625).abs() < 1e-12, "{ratio}");
    }

    #[test]
    fn unknown_method_is_named_in_error() {
        let yarn = toml::from_str::<RopeScaling>("rope_type = \"yarn\"\nfactor = 2.0");
        assert!(yarn.unwrap_err().to_string().contains("yarn"));
        assert!(RopeScaling::Linear { factor: 0.5 }.validate(8).is_err());
    }

    #[test]
    fn table_needs_one_valid_factor_per_pair() {
        let factors = vec![1.0, 3.0];
        let table = RopeScaling::Table { factors };
        assert!(table.validate(4).is_ok() && table.validate(8).is_err());
        assert!((table.scaled_period(1, 5.0) - 15.0).abs() < 1e-12);
        let factors = vec![1.0, f64::NAN];
        assert!(RopeScaling::Table { factors }.validate(4).is_err());
    }
}
