//! Runs a probe on existing verdicts.

use super::audit_verdicts::AuditVerdicts;
use super::{position, self_consistency, symmetry, verbosity};
use crate::analysis::audit::probe::Probe;
use crate::analysis::audit::result::Finding;

impl AuditVerdicts<'_> {
    /// Runs a probe. A probe that has to judge perturbed pairs returns the outcome "not run".
    pub fn run_probe(&self, probe: Probe) -> Finding {
        if self.verdicts.count_unscored() == self.verdicts.pairs.len() {
            return Finding::not_run(probe, "no pair has a verdict");
        }
        match probe {
            Probe::Position => position::probe_position(self),
            Probe::Verbosity => verbosity::probe_verbosity(self),
            Probe::Symmetry => symmetry::probe_symmetry(self),
            Probe::SelfConsistency => self_consistency::probe_self_consistency(self),
            Probe::Identical
            | Probe::Formatting
            | Probe::Image
            | Probe::Reference
            | Probe::Planted
            | Probe::Neutral
            | Probe::Errors => {
                Finding::not_run(probe, "records have no images to judge again; pass the cases")
            }
        }
    }
}
