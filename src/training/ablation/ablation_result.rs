//! Result of one trial of an ablation.

use serde::{Deserialize, Serialize};

use crate::support::digest::Digest;

/// Result of one trial.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct AblationResult {
    /// The seed.
    pub seed: u64,
    /// Hash of the training configuration and the test sets.
    #[serde(default)]
    pub of: Option<Digest>,
    /// Duration of the training; absent if it was interrupted.
    pub seconds: Option<f64>,
    /// Proportions by name.
    pub figures: Vec<(String, f64)>,
}
