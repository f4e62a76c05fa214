//! Definition of a probe that judges perturbed pairs: measures, controls and conclusion rule.

use super::trial_measure::{TrialControl, TrialMeasure, TrialValue};
use crate::analysis::audit::perturbations::Perturbation;
use crate::analysis::audit::result::MeasureName;
use crate::analysis::audit::rules::{AddedTextRule, IntervalRule};

/// Definition of a probe: how its trials become its finding.
pub(super) struct TrialProbe {
    /// Reason why the probe did not run, if no trial has a value.
    pub(super) not_run: &'static str,
    /// The measures, in the order of tables.
    pub(super) measures: &'static [MeasureScope],
    /// At least one of these perturbations needs a measure; empty if any perturbation suffices.
    pub(super) required_perturbations: &'static [Perturbation],
    /// A note for a perturbation without a measure.
    pub(super) missing_note: Option<(Perturbation, &'static str)>,
    /// The rule that turns measures into a conclusion.
    pub(super) rule: ConclusionRule,
}

/// Perturbations that a measure covers.
pub(super) enum MeasureScope {
    /// One measure over all perturbations.
    All(TrialMeasure),
    /// These measures for each perturbation.
    Each(&'static [TrialMeasure]),
}

/// Rule that turns measures into a finding.
pub(super) enum ConclusionRule {
    /// Identical responses have to tie.
    Identical(MeasureName),
    /// The interval of one measure decides. The sentence also states the estimate of another one.
    Interval {
        /// The measure that decides, minus its control.
        measure: MeasureName,
        /// The rule for it.
        rule: IntervalRule,
        /// The second measure.
        other: MeasureName,
        /// End of the sentence; `{other}` is the estimate of the second measure.
        suffix: &'static str,
    },
    /// The image has to change the knowledge score.
    Image,
    /// The reference has to change the knowledge score or the preference.
    Reference,
    /// The most effective text decides.
    AddedText(AddedTextRule),
}

/// Creates a measure that is compared with the control perturbation.
pub(super) const fn with_perturbation_control(
    name: MeasureName,
    value: TrialValue,
) -> TrialMeasure {
    TrialMeasure { name, value, control: TrialControl::Perturbation }
}
