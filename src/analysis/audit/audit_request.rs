//! Settings of an audit.

use super::perturbations::{Perturbation, PlantedKind};
use super::probe::Probe;
use super::result::Threshold;
use crate::statistics::Bootstrap;

/// Settings of an audit.
#[derive(Clone, Debug)]
pub struct AuditRequest {
    /// The probes, in the order in which they are listed.
    pub probes: Vec<Probe>,
    /// The kinds of text of the probe `planted`; empty for all.
    pub planted_kinds: Vec<PlantedKind>,
    /// Bootstrap settings; the seed also selects the perturbed responses.
    pub bootstrap: Bootstrap,
    /// The thresholds.
    pub thresholds: Vec<Threshold>,
}

impl AuditRequest {
    /// Returns true unless the perturbation plants a kind of text that was not selected.
    pub(super) fn selects(&self, perturbation: Perturbation) -> bool {
        let kind = perturbation.planted_kind();
        self.planted_kinds.is_empty() || kind.is_none_or(|kind| self.planted_kinds.contains(&kind))
    }
}
