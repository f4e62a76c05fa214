//! Result of one trial of an ablation.

use serde::{Deserialize, Serialize};

use crate::support::digest::Digest;

/// Result of one trial.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct AblationResult {
    /// Seed of the training.
    pub seed: u64,
    /// Hash of the training configuration and the test sets.
    #[serde(default, rename = "of")]
    pub fingerprint: Option<Digest>,
    /// Duration of the training in seconds; `None` if the training was interrupted and resumed.
    pub seconds: Option<f64>,
    /// Proportions by name.
    #[serde(rename = "figures")]
    pub statistics: Vec<(String, f64)>,
}
