//! What a stage of preferences learns from.

use std::path::PathBuf;

use anyhow::{Result, bail};
use serde::{Deserialize, Serialize};

use crate::training::preferences::data::Negative;
use crate::training::stages::activation_file::ActivationDtype;
use crate::training::stages::stage::VALIDATION_AT;

/// Right evaluations, each beside a worse one: drawn once, and gone through in every epoch.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PreferenceConfig {
    /// Pairs of responses to draw; each gives a preference for every member that learns.
    #[serde(default)]
    pub cases: u64,
    /// A file of preferences to learn from instead, as `data preferences` writes it and TRL reads it;
    /// relative to the configuration. A tenth of it, from all over it, validates.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file: Option<PathBuf>,
    /// How dear it is to leave the model that the stage began with.
    #[serde(default = "tenth")]
    pub beta: f64,
    /// The weight of the preferred evaluation's own loss beside that of the preference; the papers have
    /// none. Without it both evaluations may become unlikely as long as their difference grows.
    #[serde(default)]
    pub anchor: f64,
    /// What makes evaluations worse.
    #[serde(default = "all")]
    pub negatives: Vec<Negative>,
    /// The type in which what frozen layers compute is kept on disk.
    #[serde(default)]
    pub store: ActivationDtype,
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
    /// Refuses ways that make nothing of these members worse, where preferences are drawn.
    pub(crate) fn check_ways(&self, members: impl Iterator<Item = &'static str>) -> Result<()> {
        let learns = |member: &str| self.negatives.iter().any(|way| way.concerns(member));
        let mut idle = members.filter(|member| self.file.is_none() && !learns(member));
        match idle.next() {
            Some(member) => bail!(
                "[stages.preferences]: negatives makes no evaluation of {member} worse\n\
                 hint: references stand in those of medical knowledge alone; add another way, or name `members`"
            ),
            None => Ok(()),
        }
    }

    pub(crate) fn check(&self) -> Result<()> {
        if self.file.is_some() == (self.cases > 0) {
            bail!("[stages.preferences]: expected either cases or a file");
        }
        if self.cases >= VALIDATION_AT {
            bail!(
                "[stages.preferences]: cases is {}, expected fewer than {VALIDATION_AT}",
                self.cases
            );
        }
        if self.negatives.is_empty() {
            bail!("[stages.preferences]: negatives is empty, nothing would be worse");
        }
        if !(self.beta.is_finite() && self.beta > 0.0) {
            bail!(
                "[stages.preferences]: beta is {}, expected a positive number",
                self.beta
            );
        }
        if !(self.anchor.is_finite() && self.anchor >= 0.0) {
            bail!(
                "[stages.preferences]: anchor is {}, expected 0 or more",
                self.anchor
            );
        }
        Ok(())
    }
}
