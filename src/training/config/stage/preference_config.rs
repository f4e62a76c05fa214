//! Preference pairs of a stage: the table `[stages.preferences]`.

use std::path::PathBuf;

use anyhow::{Result, bail};
use serde::{Deserialize, Serialize};

use super::negative::Negative;
use super::zero_value::is_zero;
use crate::checkpoints::panel::prompt_config::CONCLUSION;
use crate::training::config::activation_dtype::ActivationDtype;
use crate::training::config::validation_indices::VALIDATION_START;

/// Preference pairs of a stage, which are sampled or read once and repeat every epoch.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PreferenceConfig {
    /// Number of cases to sample. Each case gives a preference pair for every member that the stage
    /// trains.
    #[serde(default)]
    pub cases: u64,
    /// File of preference pairs to use instead, in the format of `acem3 data preferences` and of
    /// TRL; relative to the configuration. A tenth of the lines of each member, at most 48,
    /// becomes the validation split.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file: Option<PathBuf>,
    /// Beta of DPO. A larger value keeps the model closer to the reference model.
    #[serde(default = "default_beta")]
    pub beta: f64,
    /// Weight of the chosen evaluation's log-likelihood loss, which is added to the preference
    /// loss; 0 in the papers. If the weight is 0, both evaluations may become less probable while
    /// their difference grows.
    #[serde(default)]
    pub anchor: f64,
    /// Rejects the evaluations of the sampled cases that the panel itself writes before the stage and
    /// that are wrong, in both presentation orders, instead of changed correct ones. Cases that it
    /// evaluates correctly give no pair. The conclusion model gets none.
    #[serde(default, rename = "own", skip_serializing_if = "std::ops::Not::not")]
    pub rejects_own: bool,
    /// Weight of the consistency of the two presentation orders, which is added to the loss: along a
    /// chosen evaluation, the probabilities of the next token should be equal in both. Requires `own`.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub consistency: f64,
    /// Changes that turn chosen evaluations into rejected ones. Of a file, only the pairs of these
    /// changes are used, unless all are named.
    #[serde(default = "default_negatives")]
    pub negatives: Vec<Negative>,
    /// Element type of the frozen-activation cache.
    #[serde(default, rename = "store")]
    pub cache_dtype: ActivationDtype,
    /// Trains one model on the pairs of all members, instead of one head per member.
    #[serde(default, rename = "together")]
    pub is_joint: bool,
}

fn default_beta() -> f64 {
    0.1
}

fn default_negatives() -> Vec<Negative> {
    Negative::ALL.to_vec()
}

impl PreferenceConfig {
    /// Returns an error if a member has no applicable negative. Files contain their own rejected
    /// evaluations.
    pub(crate) fn check_negatives(
        &self,
        mut members: impl Iterator<Item = &'static str>,
    ) -> Result<()> {
        if self.file.is_some() {
            return Ok(());
        }
        if self.rejects_own {
            return match members.find(|member| *member == CONCLUSION) {
                Some(name) => bail!(
                    "[stages.preferences]: own rejects evaluations of the experts, but the stage trains {name} too\n\
                     hint: `members = [\"medical_knowledge\"]` trains the expert that looks at the image"
                ),
                None => Ok(()),
            };
        }
        let applies = |member: &str| self.negatives.iter().any(|n| n.applies_to(member));
        match members.find(|member| !applies(member)) {
            Some(member) => bail!(
                "[stages.preferences]: none of the negatives applies to {member}\n\
                 hint: reference-removal applies to medical_knowledge only; add another negative, or name other \
                 `members`"
            ),
            None => Ok(()),
        }
    }

    /// Checks the values that do not depend on the stage.
    pub(crate) fn check(&self) -> Result<()> {
        if self.file.is_some() == (self.cases > 0) {
            bail!("[stages.preferences]: expected either cases or a file");
        }
        if self.cases >= VALIDATION_START {
            bail!(
                "[stages.preferences]: cases is {}, expected fewer than {VALIDATION_START}",
                self.cases
            );
        }
        if self.negatives.is_empty() {
            bail!("[stages.preferences]: negatives is empty, expected at least one");
        }
        if !(self.beta.is_finite() && self.beta > 0.0) {
            bail!("[stages.preferences]: beta is {}, expected a positive number", self.beta);
        }
        if self.rejects_own && (self.file.is_some() || self.is_joint) {
            bail!(
                "[stages.preferences]: own requires sampled cases and a head per member\n\
                 hint: remove `file` and `together`"
            );
        }
        if !(self.consistency.is_finite() && self.consistency >= 0.0) {
            bail!("[stages.preferences]: consistency is {}, expected 0 or more", self.consistency);
        }
        if self.consistency > 0.0 && !self.rejects_own {
            bail!("[stages.preferences]: consistency has an effect only with `own = true`");
        }
        if !(self.anchor.is_finite() && self.anchor >= 0.0) {
            bail!("[stages.preferences]: anchor is {}, expected 0 or more", self.anchor);
        }
        Ok(())
    }
}
