//! Hyperparameters of the optimizer: the table `[optimizer]` of a training.

use serde::{Deserialize, Serialize};

/// Rule that updates the matrices of layers and of the projector.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum MatrixRule {
    /// The rule of all other parameters.
    #[default]
    AdamW,
    /// Orthogonalised momentum.
    Muon,
}

impl MatrixRule {
    #[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
    fn is_default(&self) -> bool {
        *self == Self::default()
    }
}

/// Hyperparameters of the optimizer.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct OptimizerConfig {
    /// Decay rate of the mean gradient in AdamW.
    pub beta1: f64,
    /// Decay rate of the mean squared gradient in AdamW.
    pub beta2: f64,
    /// Constant added to the denominator in AdamW.
    pub eps: f64,
    /// Weight decay of matrices. Norms and biases have none.
    pub weight_decay: f64,
    /// Rule of the matrices of layers and of the projector. Both rules take the same learning rate.
    #[serde(skip_serializing_if = "MatrixRule::is_default")]
    pub matrices: MatrixRule,
    /// Decay rate of the mean gradient in Muon.
    #[serde(skip_serializing_if = "is_default_momentum")]
    pub momentum: f64,
}

/// Momentum of `torch.optim.Muon`.
const DEFAULT_MOMENTUM: f64 = 0.95;

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_default_momentum(momentum: &f64) -> bool {
    *momentum == DEFAULT_MOMENTUM
}

impl OptimizerConfig {
    /// Returns true if the momentum is set and no rule uses it.
    pub fn has_unused_momentum(&self) -> bool {
        self.matrices != MatrixRule::Muon && !is_default_momentum(&self.momentum)
    }
}

impl Default for OptimizerConfig {
    fn default() -> Self {
        Self {
            beta1: 0.9,
            beta2: 0.98,
            eps: 1e-8,
            weight_decay: 0.01,
            matrices: MatrixRule::default(),
            momentum: DEFAULT_MOMENTUM,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rule_has_a_name_and_defaults_are_left_out() {
        let config: OptimizerConfig = serde_json::from_str(r#"{"matrices": "muon"}"#).unwrap();
        assert_eq!((config.matrices, config.momentum), (MatrixRule::Muon, 0.95));
        let default = serde_json::to_string(&OptimizerConfig::default()).unwrap();
        assert!(!default.contains("matrices") && !default.contains("momentum"), "{default}");
        assert!(serde_json::from_str::<OptimizerConfig>(r#"{"matrices": "sgd"}"#).is_err());
    }
}
