//! What a stage of preferences learns from.

use anyhow::{Result, bail};
use serde::{Deserialize, Serialize};

use super::rows::RowType;
use crate::preferences::Negative;

/// Right evaluations, each beside a worse one: drawn once, and gone through in every epoch.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PreferenceConfig {
    /// Pairs of responses; each gives a preference for every member that learns.
    pub cases: u64,
    /// How dear it is to leave the model that the stage began with.
    #[serde(default = "tenth")]
    pub beta: f64,
    /// What makes evaluations worse.
    #[serde(default = "all")]
    pub negatives: Vec<Negative>,
    /// The type in which what frozen layers compute is kept on disk.
    #[serde(default)]
    pub store: RowType,
    /// Whether one model learns the preferences of all members. Without it, each member's own head
    /// learns its own.
    #[serde(default)]
    pub together: bool,
}

fn tenth() -> f64 {
    0.1
}

fn all() -> Vec<Negative> {
    Negative::ALL.to_vec()
}

impl PreferenceConfig {
    pub(super) fn check(&self) -> Result<()> {
        if self.cases == 0 || self.negatives.is_empty() {
            bail!("[stages.preferences]: cases and negatives must not be empty");
        }
        if !(self.beta.is_finite() && self.beta > 0.0) {
            bail!(
                "[stages.preferences]: beta is {}, expected a positive number",
                self.beta
            );
        }
        Ok(())
    }
}
